"""What Linux tells of a process, without a package: its CPU time and its memory."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of the process, to a hundredth of a second."""
    # The name in parentheses may hold blanks; utime and stime are the 14th and 15th field.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_bytes(pid: int) -> int:
    """VmRSS: the memory of the process that lies in RAM."""
    return _memory(pid, "VmRSS:")


def peak_bytes(pid: int) -> int:
    """VmHWM: the most memory that the process had in RAM."""
    return _memory(pid, "VmHWM:")


def _memory(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))
