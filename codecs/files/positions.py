"""Where each key of a TOML or JSON document stands, which neither parser tells.

Promise: for a document that its parser accepted, `locate` maps the path of every key and array element to
its line, counted from 1. It reads no values: meaning is the parser's alone.
Relies on: the text being valid. On other text it gives fewer positions, never an exception.
"""

import json
import re
import tomllib
from collections.abc import Mapping

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?>(?:[ \t\r\n]++|#[^\n]*+)*)")
_INLINE_BLANK = re.compile(r"[ \t]*")
# The longest forms first: ''' would otherwise read as an empty '' and a stray quote.
STRING = re.compile(
    r'"""(?>(?:[^"\\]++|\\.|"(?!""))*)"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})|"(?>(?:[^"\\\n]++|\\.)*)"|\'[^\'\n]*+\'',
    re.DOTALL,
)
MOST_PLACES_ANYWAY = 4096
CHARS_A_PLACE = 32

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")


def locate(text: str) -> Mapping[Path, int]:
    """The line of every key and array element of a TOML document, or of a JSON one if it begins with `{`."""
    scan = _Scan(text)
    try:
        if text.lstrip().startswith("{"):
            scan.value(())
        else:
            scan.document()
    except (_StopError, RecursionError):
        # Positions serve messages only: one that cannot be found costs a line number, not the message.
        return scan.lines
    return scan.lines


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """The line of `path`, or of the nearest thing around it that has one."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


class _StopError(Exception):
    """The text is not what a parser would accept; what was found so far stands."""


class _Scan:
    """A walk over the text that skips values and notes keys."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        # A place takes a hundred times as much as `1,` that stands there; messages about the first of them do.
        self.most = MOST_PLACES_ANYWAY + len(text) // CHARS_A_PLACE
        self._counted_to, self._line = 0, 1

    def document(self) -> None:
        """TOML's top level: headers and statements."""
        table: Path = ()
        elements: dict[Path, int] = {}
        while True:
            self.skip(_BLANK)
            if self.at >= len(self.text):
                return
            if self.take("[["):
                line, name = self.line(), self.key()
                place = self._inside(name, elements)
                elements[place] = elements.get(place, -1) + 1
                table = (*place, elements[place])
                self.note(place, line)
                self.note(table, line)
                self.expect("]]")
            elif self.take("["):
                line, name = self.line(), self.key()
                table = self._inside(name, elements)
                self.note(table, line)
                self.expect("]")
            else:
                self.statement(table, "=")

    @staticmethod
    def _inside(name: Path, elements: Mapping[Path, int]) -> Path:
        """A header's path: below an array of tables it means that array's latest element."""
        place: Path = ()
        for part in name[:-1]:
            place = (*place, part)
            if place in elements:
                place = (*place, elements[place])
        return (*place, *name[-1:])

    def statement(self, table: Path, assign: str) -> None:
        line, key = self.line(), self.key()
        for length in range(1, len(key) + 1):
            self.note((*table, *key[:length]), line)
        self.skip(_INLINE_BLANK if assign == "=" else _BLANK)
        self.expect(assign)
        self.value((*table, *key))

    def key(self) -> Path:
        parts: list[str] = []
        while True:
            self.skip(_INLINE_BLANK)
            if (quoted := STRING.match(self.text, self.at)) is not None:
                parts.append(_unquote(quoted.group()))
                self.at = quoted.end()
            elif (bare := _BARE_KEY.match(self.text, self.at)) is not None:
                parts.append(bare.group())
                self.at = bare.end()
            else:
                raise _StopError
            self.skip(_INLINE_BLANK)
            if not self.take("."):
                return tuple(parts)

    def value(self, path: Path) -> None:
        self.skip(_BLANK)
        if self.take("{"):
            self.members(path)
        elif self.take("["):
            self.elements(path)
        elif (string := STRING.match(self.text, self.at)) is not None:
            self.at = string.end()
        elif (scalar := _SCALAR.match(self.text, self.at)) is not None:
            self.at = scalar.end()
        else:
            raise _StopError

    def members(self, path: Path) -> None:
        """An inline table or a JSON object; the sign after the key tells which."""
        while True:
            self.skip(_BLANK)
            if self.take("}"):
                return
            mark = self.at
            self.key()
            self.skip(_BLANK)
            assign = ":" if self.text.startswith(":", self.at) else "="
            self.at = mark
            self.statement(path, assign)
            self.skip(_BLANK)
            self.take(",")

    def elements(self, path: Path) -> None:
        index = 0
        while True:
            self.skip(_BLANK)
            if self.take("]"):
                return
            self.note((*path, index), self.line())
            self.value((*path, index))
            index += 1
            self.skip(_BLANK)
            self.take(",")

    def note(self, path: Path, line: int) -> None:
        if len(self.lines) < self.most:
            self.lines.setdefault(path, line)

    def line(self) -> int:
        """The line of the present position; positions only grow, bar one key, so each newline counts once."""
        if self.at < self._counted_to:
            return self._line - self.text.count("\n", self.at, self._counted_to)
        self._line += self.text.count("\n", self._counted_to, self.at)
        self._counted_to = self.at
        return self._line

    def skip(self, pattern: re.Pattern[str]) -> None:
        if (match := pattern.match(self.text, self.at)) is not None:
            self.at = match.end()

    def take(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def expect(self, text: str) -> None:
        if not self.take(text):
            raise _StopError


def _unquote(quoted: str) -> str:
    """A quoted key's text. TOML knows escapes that JSON does not (\\U, \\e) and JSON one that TOML does not (\\/)."""
    try:
        return str(tomllib.loads(f"k = {quoted}")["k"])
    except tomllib.TOMLDecodeError:
        try:
            return str(json.loads(quoted))
        except json.JSONDecodeError as err:
            raise _StopError from err
