"""JSON that people give in files: one value, or one value a line.

Promise: read as strictly as a record. Lines end at a line feed alone, for JSON may hold the other line ends of Unicode;
a carriage return before it is white space.
"""

from __future__ import annotations

from collections.abc import Iterator

from ticketgate.codecs.files.fault import of_malformed
from ticketgate.codecs.files.reading import text_of
from ticketgate.codecs.values.strict import JsonValue, Malformed, decode

Line = tuple[int, JsonValue]


def read_json(
    content: bytes, *, source: str, remedy: str = "give one JSON value", is_our_own: bool = False
) -> JsonValue:
    """The JSON value that a file holds. is_our_own: as `strict.decode` has it. Raises FileFault."""
    _refuse_other_encodings(content, source)
    value = decode(content, max_bytes=max(len(content), 1), is_our_own=is_our_own)
    if isinstance(value, Malformed):
        raise of_malformed(value, source, remedy)
    return value


def json_lines(
    content: bytes, *, source: str, remedy: str = "write one JSON object a line"
) -> Iterator[Line]:
    """Each value with its line's number, from 1. Lines of white space are passed over. Raises FileFault."""
    _refuse_other_encodings(content, source)
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            value = decode(line, max_bytes=len(line), is_our_own=True)
            if isinstance(value, Malformed):
                raise of_malformed(value, source, remedy, line=number)
            yield number, value


def _refuse_other_encodings(content: bytes, source: str) -> None:
    """Worded as for a text: here the file can be saved anew, which a record cannot."""
    text_of(content[:3] if content[:1] in (b"\xef", b"\xff", b"\xfe") else b"", source)
