"""What the console says, in English: one catalogue, `english.toml`, by name.

Promise: a page says nothing but what stands there, or what a record says. A name that is not there is an error, and
tests hold that each is used.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from ticketgate.agents.plural import counted

WORDS: Mapping[str, str] = tomllib.loads((Path(__file__).parent / "english.toml").read_text(encoding="utf-8"))


def say(name: str, /, **values: object) -> str:
    """What stands under a name, filled in. Raises KeyError."""
    return WORDS[name].format_map(values) if values else WORDS[name]


def many(count: int, noun: str) -> str:
    """`1 ticket`, `3 tickets`."""
    return counted(count, noun)
