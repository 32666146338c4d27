"""Takes the end of a partition's log away on a stopped broker's disk, as a machine does that loses its power."""

from __future__ import annotations

import struct
from pathlib import Path


def cut_end(data: Path, topic: str, partition: int, *, first: int) -> None:
    """Cut the log of a killed broker before the batch that begins at offset `first`. Its indexes are made anew."""
    (folder,) = data.rglob(f"{topic}-{partition}")
    (log,) = folder.glob("*.log")
    content = log.read_bytes()
    at = 0
    while at < len(content):
        base, length = struct.unpack_from(">qi", content, at)
        if base >= first:
            break
        at += 12 + length
    assert at < len(content), f"no batch at {first} or behind"
    log.write_bytes(content[:at])
    for stale in (*folder.glob("*.index"), *folder.glob("*.timeindex"), *folder.glob("*.snapshot")):
        stale.unlink()
    for checkpoint in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (folder.parent / checkpoint).unlink(missing_ok=True)
