"""A process in a worker's place, each kind shaped like a fault. A script: `fake_member.py KIND MARKS`.

It loads nothing but the standard library, to start at once. `MARKS` is a folder in which it leaves `PID.listens` once
it listens, and `PID.drained` when it was told to drain.
"""

import os
import signal
import sys
import time
from pathlib import Path


def main(kind: str, marks: Path) -> None:
    size = int.from_bytes(sys.stdin.buffer.read(8), "big")
    sys.stdin.buffer.read(size)
    if kind == "dies":
        sys.exit(70)
    if kind == "refused":
        sys.exit(2)
    if kind == "hangs":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hung_up: list[int] = []
    signal.signal(signal.SIGHUP, lambda number, _: hung_up.append(number))
    sys.stderr.write("first half, ")
    sys.stderr.flush()
    time.sleep(0.02)
    sys.stderr.write(f"second half of {os.getpid()}\n" + "x" * 5000 + "\nno line feed")
    sys.stderr.flush()
    if kind == "closes":
        os.close(0)
        (marks / f"{os.getpid()}.listens").touch()
        time.sleep(600)
    (marks / f"{os.getpid()}.listens").touch()
    while order := os.read(0, 1):
        if kind == "hangs":
            continue
        if order == b"d":
            (marks / f"{os.getpid()}.drained").write_text(str(len(hung_up)))
            sys.exit(0)
        if order == b"e":
            sys.exit(143)
    # The supervisor is gone.
    if kind == "hangs":
        time.sleep(600)
    (marks / f"{os.getpid()}.drained").write_text(str(len(hung_up)))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
