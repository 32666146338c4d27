"""Files that people give to commands, `-` for standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.codecs.values.strict import JsonValue


def named(path: Path) -> str:
    """How messages call a file."""
    return "standard input" if str(path) == "-" else str(path)


def read_bytes(path: Path) -> bytes:
    """A file's content, unpacked if it is a gzip. Raises `CommandError`."""
    from ticketgate.codecs.files.reading import read_file
    from ticketgate.codecs.values.limits import MAX_FILE_BYTES
    from ticketgate.streams.cli.packed import GZIP_MAGIC, InputFault, other_packing, unpack

    with told():
        if str(path) != "-":
            content = read_file(path, kind="file", remedy="name a readable file, or - for stdin")
        else:
            content = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise CommandError(f"standard input: more than the {MAX_FILE_BYTES} bytes that are read; give less")
    if what := other_packing(content):
        raise CommandError(f"{named(path)}: this is {what}")
    if content.startswith(GZIP_MAGIC):
        try:
            return unpack(content)
        except InputFault as err:
            raise CommandError(f"{named(path)}: {err}") from err
    return content


def read_text(path: Path) -> str:
    """A file's text, in UTF-8. Raises `CommandError`."""
    from ticketgate.codecs.files.reading import text_of

    with told():
        return text_of(read_bytes(path), named(path))


def read_json(path: Path) -> JsonValue:
    """A JSON file, read as strictly as a record. Raises `CommandError`."""
    from ticketgate.codecs.files.json_text import read_json as read

    with told():
        return read(read_bytes(path), source=named(path), is_our_own=True)


@contextmanager
def told() -> Iterator[None]:
    """A file's fault as a command's: one line, as it is."""
    from ticketgate.codecs.files.fault import FileFault

    try:
        yield
    except FileFault as err:
        raise CommandError(str(err)) from err


def json_lines(path: Path) -> Iterator[JsonValue]:
    """The values of a file of JSON lines, as consume prints them; empty lines pass. Raises `CommandError`."""
    from ticketgate.codecs.files.json_text import json_lines as read

    remedy = "give one JSON object a line, as consume prints them"
    with told():
        for _, value in read(read_bytes(path), source=named(path), remedy=remedy):
            yield value
