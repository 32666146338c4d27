"""A file's bytes up to a limit, and its text.

Promise: no more is read than may be, so that a log or a dump under the name of a policy costs nothing.
"""

from __future__ import annotations

from pathlib import Path

from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.values.limits import MAX_FILE_BYTES

# What a policy, a catalogue or a file of settings may have: people wrote it. A megabyte is a wrong path.
MAX_WRITTEN_BYTES = 2**20

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_ENCODINGS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def read_file(path: Path, *, kind: str, remedy: str, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """The bytes of the file at `path`. Raises FileFault.

    kind: what the file is, as in "the policy cannot be read". remedy: what to do if it cannot be.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, ValueError) as err:
        # ValueError: a path with a zero in it.
        told = getattr(err, "strerror", None) or str(err)
        raise FileFault(str(path), f"the {kind} cannot be read: {told}", remedy, is_unreadable=True) from err
    if len(content) > max_bytes:
        article = "an" if kind[0] in "aeiou" else "a"
        what = f"larger than the {max_bytes} bytes that {article} {kind} may have"
        raise FileFault(str(path), what, remedy)
    return content


def text_of(content: bytes, source: str) -> str:
    """The text that the bytes write in UTF-8. Raises FileFault."""
    if content.startswith(_BYTE_ORDER_MARK):
        raise FileFault(source, "begins with a byte order mark", "save the file as UTF-8 without one", line=1)
    if other := _OTHER_ENCODINGS.get(content[:2]):
        raise FileFault(source, f"is {other}, not UTF-8", "save the file as UTF-8", line=1)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as err:
        line = content.count(b"\n", 0, err.start) + 1
        what = f"not UTF-8: byte 0x{content[err.start]:02x}"
        raise FileFault(source, what, "save the file as UTF-8", line=line) from None


def read_text(path: Path, *, kind: str, remedy: str, max_bytes: int = MAX_WRITTEN_BYTES) -> str:
    """The text of the file at `path`, as `read_file` and `text_of` say. Raises FileFault."""
    return text_of(read_file(path, kind=kind, remedy=remedy, max_bytes=max_bytes), str(path))
