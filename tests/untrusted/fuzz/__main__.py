"""`python -m tests.untrusted.fuzz [--seconds N] [TARGET…]`: each reader under the fuzzer for so long, in turn.

What the fuzzer finds on the way goes to build/fuzz/TARGET and is begun from the next time; inputs that break a promise
are named at the end. Bring these to corpus/TARGET, and the mend with them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from .targets import TARGETS

HERE = Path(__file__).parent
FOUND = Path("build/fuzz")
# Above any allowance for an input of the longest length, beside the interpreter and the instrumented code.
MOST_MEMORY_MB = 1024
LONGEST = 65_536


def fuzz(name: str, seconds: int) -> bool:
    """Whether a reader kept its promise for so long."""
    found = FOUND / name
    found.mkdir(parents=True, exist_ok=True)
    command = [
        *(sys.executable, "-m", "tests.untrusted.fuzz.run", name, str(found), str(HERE / "corpus" / name)),
        *(f"-max_total_time={seconds}", f"-max_len={LONGEST}", f"-rss_limit_mb={MOST_MEMORY_MB}"),
        *("-timeout=10", f"-artifact_prefix={FOUND}/{name}-", "-print_final_stats=1", "-verbosity=0"),
    ]
    return subprocess.run(command, check=False).returncode == 0


def main() -> int:
    """0 if all promises held."""
    parser = argparse.ArgumentParser(prog="python -m tests.untrusted.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all if none")
    parser.add_argument("--seconds", type=int, default=600, help="for each")
    asked = parser.parse_args()
    broken = [name for name in asked.targets or TARGETS if not fuzz(name, asked.seconds)]
    print(f"{len(asked.targets or TARGETS)} readers, broken: {', '.join(broken) or 'none'}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
