"""HTML as the text that a reader of the mail sees.

Blocks become lines, a quoted block's lines begin with "> " as in plain mail (so that `replies` knows them), and what
is not shown (scripts, styles, the head, hidden elements) is left out. A text without a tag of HTML stays as it is,
"a < b" too.

By lxml's parser with a target, event by event: no tree is built, and no shape of input was found that costs it more
than in proportion (html.parser of Python 3.11 needs 30 s for 60 KB of `<a `; trees recurse into nested elements).
"""

import re
from collections.abc import Mapping

# With `<` in front and no letter behind, one of these makes a text HTML. A word in angle brackets does not.
_KNOWN = re.compile(
    r"</?(?:html|head|body|div|span|p|br|hr|a|b|i|u|em|strong|font|table|tbody|tr|td|th|ul|ol|li|h[1-6]|img|pre"
    r"|blockquote|center|section|article|style|script)(?=[\s/>])|<!doctype html",
    re.IGNORECASE,
)
_BLOCKS = frozenset(
    (
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "br",
        "center",
        "dd",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tr",
        "ul",
    )
)
_CELLS = frozenset(("td", "th"))
_UNSEEN = frozenset(("head", "script", "style", "template", "title", "noscript", "object", "svg", "math"))
_BLANKS = re.compile(r"[ \t\r\n\f\xa0]+")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def text_of(text: str) -> str:
    """What the text shows where it is HTML; the text itself where it is not."""
    if _KNOWN.search(text) is None:
        return text
    # Not at the top: what has no HTML to read need not load a parser.
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  # a compiled module without stubs

    shown = _Shown()
    parser = etree.HTMLParser(target=shown, encoding="utf-8", huge_tree=True, remove_comments=True)
    # A lone surrogate or NUL stands in no ticket that was decoded; the parser would end at the latter.
    parser.feed(text.replace("\x00", "").encode("utf-8", "replace"))
    parser.close()
    return shown.text()


class _Shown:
    """Gathers what is shown, line by line."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._is_quoted = False
        self._quotes = self._unseen = self._kept = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self._unseen or tag in _UNSEEN or _is_hidden(attributes):
            self._unseen += 1
            return
        if tag in _BLOCKS:
            self._end_line()
        elif tag in _CELLS and self._line:
            self._line.append(" ")
        elif tag == "img" and (named := attributes.get("alt")):
            self.data(named)
        self._quotes += tag == "blockquote"
        self._kept += tag == "pre"

    def end(self, tag: str) -> None:
        if self._unseen:
            self._unseen -= 1
            return
        if tag in _BLOCKS:
            self._end_line()
        self._quotes -= tag == "blockquote"
        self._kept -= tag == "pre"

    def data(self, text: str) -> None:
        if self._unseen:
            return
        for number, part in enumerate(text.split("\n") if self._kept else (text,)):
            if number:
                self._end_line()
            if not self._line:
                self._is_quoted = self._quotes > 0
            self._line.append(_BLANKS.sub(" ", part))

    def close(self) -> None:
        self._end_line()

    def text(self) -> str:
        return "\n".join(self._lines)

    def _end_line(self) -> None:
        # One line break between two lines: nested blocks open and close many at one place.
        if line := _BLANKS.sub(" ", "".join(self._line)).strip():
            self._lines.append(f"> {line}" if self._is_quoted else line)
        self._line.clear()


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    return "hidden" in attributes or _HIDDEN.search(attributes.get("style", "")) is not None
