"""Why a part is not there: it cannot be, or it did not come to answer."""

from __future__ import annotations

from pathlib import Path

LOG_TAIL_LINES = 25


class PartMissing(Exception):
    """Something that a part needs is not installed. Not retried: the message names the remedy."""


class PartFailed(Exception):
    """A part did not come to answer; the message ends with the tail of its log, if it got as far as to write one."""

    def __init__(self, part: str, reason: str, *, log_file: Path | None = None) -> None:
        tail = f"; the end of {log_file}:\n{_tail(log_file)}" if log_file is not None else ""
        super().__init__(f"{part} {reason}{tail}")
        self.part, self.reason, self.log_file = part, reason, log_file


def _tail(log_file: Path) -> str:
    try:
        lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return "  (no log)"
    return "\n".join(f"  {line}" for line in lines[-LOG_TAIL_LINES:]) or "  (empty)"
