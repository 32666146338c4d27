"""What a TOML text may not be, seen before it is parsed: keys of very many parts.

tomllib takes time and memory with the square of a dotted key's parts, and ends the process of half a megabyte of dots.
"""

import re

MOST_KEY_PARTS = 64

_PART = r"""(?:(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?:{_PART}[ \t]*+\.[ \t]*+){{{MOST_KEY_PARTS}}}")


def long_key_line(text: str) -> int | None:
    """The line of the first key of more than MOST_KEY_PARTS parts; None if there is none."""
    found = _LONG_KEY.search(text)
    return None if found is None else text.count("\n", 0, found.start()) + 1
