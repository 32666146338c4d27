"""What a test looks at of `ticketgate worker --processes`: its processes, and their own pages behind its port."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import time
from pathlib import Path

from .deployment import Worker


def processes(worker: Worker) -> dict[str, int]:
    """Name and id of each worker process that runs."""
    told = worker.ready().get("processes", {})
    return {name: each["pid"] for name, each in told.items() if each["pid"] is not None}


def family(pid: int) -> set[int]:
    """A process and all that it started, and so on."""
    found = {pid}
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _text(listed).split():
            found |= family(int(child))
    return found


def living(pids: set[int]) -> set[int]:
    """Those that still run."""
    return {pid for pid in pids if _state(pid) not in ("", "Z")}


def wait_gone(pids: set[int], timeout_s: float = 60) -> None:
    """Wait until none of them runs."""
    deadline = time.monotonic() + timeout_s
    while left := living(pids):
        names = {pid: _text(Path(f"/proc/{pid}/cmdline")) for pid in left}
        assert time.monotonic() < deadline, f"left behind: {names}"
        time.sleep(0.05)


def own_page(pid: int, path: str) -> str:
    """A page of one worker process, from its own socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(socket_of(pid))
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: worker\r\n\r\n".encode())
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.read().decode()


def kill(pid: int) -> None:
    """SIGKILL."""
    os.kill(pid, signal.SIGKILL)


def socket_of(pid: int) -> str:
    """The path at which a process listens, as the kernel lists it."""
    held = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        try:
            held.add(str(descriptor.readlink()))
        except OSError:
            continue
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if len(fields) == 8 and f"socket:[{fields[6]}]" in held and fields[7].endswith(".sock"):
            return fields[7]
    raise AssertionError(f"process {pid} listens at no path")


def _state(pid: int) -> str:
    return (_text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split() or [""])[0]


def _text(path: Path) -> str:
    """What the kernel tells; nothing of a process or thread that ended meanwhile."""
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
