"""Why a document is not the JSON that we take: a second reading of refused bytes, for a precise reason.

Promise: linear in the document, no recursion; `explain` reports the first fault in the order of the document
and names the path of a duplicate key. It applies every rule of `codecs.strict` by itself, so it is also a
check on it: what one refuses the other does.
Only refused documents come here, so it is written to be read, in Python, token by token.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field

from ticketgate.codecs.values.limits import MAX_DEPTH, MAX_INTEGER, MAX_WHOLE_DIGITS, MIN_INTEGER
from ticketgate.codecs.values.malformed import Malformed, quote, shorten
from ticketgate.codecs.verdict import Stage

__all__ = ["explain"]

# The quantifiers are possessive (++, *+), the groups atomic: without that a failed match would be tried again from
# every length, and one long broken string would cost the square of its length.
_SPACE = re.compile(r"[ \t\n\r]*+")
_INSIDE_STRING = r'(?>(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)'
_STRING = re.compile(f'"{_INSIDE_STRING}"')
_STRING_START = re.compile(f'"{_INSIDE_STRING}')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?>(\.[0-9]++)?)(?>([eE][+-]?[0-9]++)?)")
_RUNS_ON_AS_NUMBER = re.compile(r"[0-9.eE+-]")
_WORD = re.compile(r"-?[A-Za-z_][A-Za-z0-9_]*+")
_WHOLE_DIGITS = re.compile(r"-?([0-9]++)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_NOT_FINITE = {"NaN": "nan", "-NaN": "nan", "Infinity": "infinity", "-Infinity": "infinity"}
_LITERALS = frozenset({"true", "false", "null"})

# A 64-bit integer has at most 20 digits. More are refused uncounted: int() of a long text is not linear.
_MAX_INTEGER_DIGITS = 20

# A path is for finding the place again; its beginning does.
_MAX_PATH_CHARS = 200


class _Fault(Exception):
    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason


@dataclass(slots=True)
class _Open:
    """An object or array that has not ended: where the reader is in it."""

    is_object: bool
    key: str = ""
    index: int = 0
    keys: set[str] = field(default_factory=set)


def explain(data: bytes, *, max_depth: int = MAX_DEPTH) -> Malformed | None:
    """The first fault in `data`, or None if it is a document that `strict.decode` must take."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as err:
        return Malformed(
            Stage.PARSE, "not_utf8", f"not UTF-8: byte 0x{data[err.start]:02x} at offset {err.start}"
        )
    try:
        _Reader(text, max_depth).read()
    except _Fault as fault:
        return Malformed(Stage.PARSE, fault.code, fault.reason)
    return None


class _Reader:
    """Reads one document token by token; `stack` holds what is open, so depth costs no Python frames."""

    def __init__(self, text: str, max_depth: int) -> None:
        self.text = text
        self.max_depth = max_depth
        self.at = 0
        self.stack: list[_Open] = []

    def read(self) -> None:
        """Returns after one whole value with nothing behind it; raises _Fault at the first fault."""
        self._skip_space()
        self._begin_value()
        while self.stack:
            self._continue()
        self._skip_space()
        if self.at < len(self.text):
            raise _Fault("trailing_content", f"trailing content after the JSON value {self._place()}")

    def _continue(self) -> None:
        """One step after a value or an opening bracket inside the innermost open container."""
        inner = self.stack[-1]
        closer = "}" if inner.is_object else "]"
        self._skip_space()
        if self._peek() == closer:
            self._close()
            return
        if inner.index:
            if self._peek() != ",":
                raise self._unexpected(f"a comma or {closer}")
            self.at += 1
            self._skip_space()
            if self._peek() == closer:
                raise _Fault("not_json", f"not JSON: a comma with nothing after it {self._place()}")
        inner.index += 1
        if inner.is_object:
            self._key(inner)
        self._begin_value()

    def _key(self, inner: _Open) -> None:
        if self._peek() != '"':
            raise self._unexpected("a key in double quotes")
        key = self._string()
        if key in inner.keys:
            raise _Fault("duplicate_key", f"duplicate key {quote(key)} at {self._path()}")
        inner.keys.add(key)
        inner.key = key
        self._skip_space()
        if self._peek() != ":":
            raise self._unexpected("a colon after the key")
        self.at += 1
        self._skip_space()

    def _begin_value(self) -> None:
        """A scalar whole, or a container's opening bracket."""
        char = self._peek()
        if char in ("{", "["):
            if len(self.stack) == self.max_depth:
                raise _Fault("too_deep", f"nested more than {self.max_depth} levels deep {self._place()}")
            self.stack.append(_Open(is_object=char == "{"))
            self.at += 1
        elif char == '"':
            self._string()
        elif (number := _NUMBER.match(self.text, self.at)) is not None:
            self._number(number)
        else:
            self._word()

    def _close(self) -> None:
        self.stack.pop()
        self.at += 1

    def _string(self) -> str:
        """The text that a string token writes, its escapes resolved."""
        token = _STRING.match(self.text, self.at)
        if token is None:
            raise self._broken_string()
        written = token.group()
        value = json.loads(written) if "\\" in written else written[1:-1]
        if _SURROGATE.search(value) is not None:
            raise _Fault("lone_surrogate", f"lone surrogate in the string that begins {self._place()}")
        self.at = token.end()
        return str(value)

    def _broken_string(self) -> _Fault:
        start = _STRING_START.match(self.text, self.at)
        begin, self.at = self.at, start.end() if start else self.at
        char = self._peek()
        if not char:
            self.at = begin
            return _Fault("not_json", f"not JSON: a string without an end begins {self._place()}")
        if char == "\\":
            shown = quote(self.text[self.at : self.at + 6])
            return _Fault("not_json", f"not JSON: no such escape as at the start of {shown} {self._place()}")
        return _Fault(
            "not_json", f"not JSON: control character U+{ord(char):04X} in a string {self._place()}"
        )

    def _number(self, token: re.Match[str]) -> None:
        written = token.group()
        if _RUNS_ON_AS_NUMBER.match(self.text, token.end()):
            raise _Fault(
                "not_json", f"not JSON: no such number as begins with {shorten(written)} {self._place()}"
            )
        if token.group(1) is not None or token.group(2) is not None:
            if not math.isfinite(float(written)) or _whole_digits(written) > MAX_WHOLE_DIGITS:
                raise _Fault("number_out_of_range", f"number out of range: {shorten(written)}")
        elif len(written) > _MAX_INTEGER_DIGITS or not MIN_INTEGER <= int(written) <= MAX_INTEGER:
            raise _Fault("integer_out_of_range", f"integer beyond 64 bits: {shorten(written)}")
        self.at = token.end()

    def _word(self) -> None:
        word = _WORD.match(self.text, self.at)
        if word is None:
            raise self._unexpected("a value")
        written = word.group()
        if written in _NOT_FINITE:
            raise _Fault(_NOT_FINITE[written], f"{written} is not JSON {self._place()}")
        if written not in _LITERALS:
            raise self._unexpected("a value")
        self.at = word.end()

    def _skip_space(self) -> None:
        space = _SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at

    def _peek(self) -> str:
        """The next character, or nothing at the end."""
        return self.text[self.at : self.at + 1]

    def _unexpected(self, wanted: str) -> _Fault:
        word = _WORD.match(self.text, self.at)
        found = quote(word.group() if word else self._peek()) if self._peek() else "the end"
        return _Fault("not_json", f"not JSON: {found} where {wanted} must stand, {self._place()}")

    def _place(self) -> str:
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1
        return f"at line {line}, column {column}"

    def _path(self) -> str:
        """Where the innermost open container lies: `$`, `$.attributes`, `$.items[3]`, `$["two words"]`."""
        path = "$"
        for outer in self.stack[:-1]:
            if not outer.is_object:
                path += f"[{outer.index - 1}]"
            elif _PLAIN_KEY.match(outer.key):
                path += f".{shorten(outer.key)}"
            else:
                path += f"[{quote(outer.key)}]"
        return shorten(path, _MAX_PATH_CHARS)


def _whole_digits(number: str) -> int:
    """How many digits `number` has before its point or exponent."""
    match = _WHOLE_DIGITS.match(number)
    return len(match[1]) if match else 0
