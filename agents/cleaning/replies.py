"""A mail without what it quotes of earlier ones.

By lines, as no library that was found is linear in what it reads (mail-parser-reply is quadratic). The rule:
1. A line that begins with ">" is quoted, and goes.
2. "On <date> <somebody> wrote:", on one line or two, goes. If no line with ">" follows, all below is quoted, and goes.
3. "-----Original Message-----", or a head of lines "From: … Sent: … To: … Subject: …" below words of one's own, goes
   with all below it.
4. From "Forwarded message" on everything stays: what somebody forwards is what they want read. So does a mail that
   begins with such a head.
"""

import re
from collections.abc import Iterator

# A mail program breaks its lines at 80 or so, and names a date, a person and an address here.
_LONGEST_HEAD = 400
_HEAD_LINES = 6
_FORWARDED = re.compile(r"(?:-{2,}\s*)?(?:begin )?forwarded message(?:\s*-{2,}|:)?$", re.IGNORECASE)
_ORIGINAL = re.compile(r"-{2,}\s*(?:original message|ursprüngliche nachricht)\s*-{2,}$", re.IGNORECASE)
_OPENS = ("On ", "Am ", "Le ", "El ", "Il ", "Op ", "Em ")
_WROTE = (
    "wrote:",
    "writes:",
    "schrieb:",
    "a écrit :",
    "a écrit:",
    "escribió:",
    "ha scritto:",
    "schreef:",
    "escreveu:",
)
# In German and Dutch the name stands behind the verb.
_WROTE_WHO = (" schrieb ", " schreef ")
_DATED = ("sent:", "date:", "gesendet:", "datum:", "envoyé :")
_ADDRESSED = ("to:", "subject:", "an:", "betreff:", "à :", "objet :")

Span = tuple[int, int]


def without_quotes(text: str) -> str:
    """The text without its quoted parts; the same text where it quotes nothing."""
    kept, lines = _Kept(text), _Lines(text)
    while (line := lines.take()) is not None:
        said = lines.said(line)
        if said.startswith(">"):
            continue
        if len(said) <= _LONGEST_HEAD:
            if _FORWARDED.match(said):
                kept.keep(line[0], len(text))
                break
            if _ORIGINAL.match(said) or (kept.has_words and _is_head(said, lines)):
                break
            if introduced := _introduces(said, lines):
                for _ in range(introduced - 1):
                    lines.take()
                if not _is_quote_next(lines):
                    break
                continue
        kept.keep(*line)
        kept.has_words = kept.has_words or bool(said)
    return kept.joined()


class _Kept:
    """What is kept of a text. Lines that follow one another are one piece: a piece a line would cost ten times them."""

    def __init__(self, text: str) -> None:
        self.has_words = False
        self._text = text
        self._pieces: list[str] = []
        self._start = self._end = 0

    def keep(self, start: int, end: int) -> None:
        if start != self._end:
            self._pieces.append(self._text[self._start : self._end])
            self._start = start
        self._end = end

    def joined(self) -> str:
        if self._start == 0 and self._end == len(self._text):
            return self._text
        self._pieces.append(self._text[self._start : self._end])
        return "".join(self._pieces).rstrip()


class _Lines:
    """A text's lines as places in it, one after the other, with a look at the next few."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._ahead: list[Span] = []

    def take(self) -> Span | None:
        """The next line, its end included; None at the end."""
        if self._ahead:
            return self._ahead.pop(0)
        return self._read()

    def ahead(self, count: int) -> Iterator[str]:
        """What the next lines say, `count` of them at most; they are still to be taken."""
        for place in range(count):
            if place == len(self._ahead):
                if (found := self._read()) is None:
                    return
                self._ahead.append(found)
            yield self.said(self._ahead[place])

    def said(self, line: Span) -> str:
        """A line without blanks at its ends."""
        return self._text[line[0] : line[1]].strip()

    def _read(self) -> Span | None:
        start = self._at
        if start >= len(self._text):
            return None
        end = self._text.find("\n", start) + 1 or len(self._text)
        self._at = end
        return start, end


def _introduces(said: str, lines: _Lines) -> int:
    """How many lines say who wrote what is quoted below, 0 if none."""
    if not said.startswith(_OPENS) or not any(map(str.isdigit, said)):
        return 0
    if _says_who(said):
        return 1
    follows = next(lines.ahead(1), "")
    return 2 if len(follows) <= _LONGEST_HEAD and _says_who(follows) else 0


def _says_who(said: str) -> bool:
    return said.endswith(_WROTE) or (said.endswith(":") and any(verb in said for verb in _WROTE_WHO))


def _is_head(said: str, lines: _Lines) -> bool:
    if not said.lower().startswith(("from:", "von:", "de :", "de:")):
        return False
    below = [each[:20].lower() for each in lines.ahead(_HEAD_LINES)]
    return any(each.startswith(_DATED) for each in below) and any(
        each.startswith(_ADDRESSED) for each in below
    )


def _is_quote_next(lines: _Lines) -> bool:
    return next((each for each in lines.ahead(_HEAD_LINES) if each), "").startswith(">")
