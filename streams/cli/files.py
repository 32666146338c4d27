"""Files that people give to commands, `-` for standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.codecs.values.strict import JsonValue


def named(path: Path) -> str:
    """How messages call a file."""
    return "standard input" if str(path) == "-" else str(path)


def read_bytes(path: Path) -> bytes:
    """A file's content. Raises `CommandError`."""
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as err:
        raise CommandError(
            f"cannot read {path}: {err.strerror}; name a readable file, or - for stdin"
        ) from err


def read_text(path: Path) -> str:
    """A file's text, in UTF-8. Raises `CommandError`."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as err:
        raise CommandError(f"{named(path)}: not UTF-8 at byte {err.start}; save it as UTF-8") from err


def read_json(path: Path) -> JsonValue:
    """A JSON file, read as strictly as a record. Raises `CommandError`."""
    from ticketgate.codecs.values.limits import MAX_FILE_BYTES
    from ticketgate.codecs.values.strict import Malformed, decode

    value = decode(read_bytes(path), max_bytes=MAX_FILE_BYTES, is_our_own=True)
    if isinstance(value, Malformed):
        raise CommandError(f"{named(path)}: {value.reason}; give one JSON value")
    return value
