"""Files that programs keep for their owner alone, and that several may change.

Promise: what is written is there whole or not at all, also after a power cut, and nobody else can read it. Who changes
it under `alone` loses nobody's change.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock beside a file; others wait. Raises OSError."""
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def write_whole(path: Path, text: str) -> None:
    """Put it in the place of what is there. Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
