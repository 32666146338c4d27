"""The catalogue: every word that a page says stands in it, and every word in it is said."""

from __future__ import annotations

import re
from pathlib import Path

from ticketgate.streams.console.words import WORDS

CONSOLE = Path(__file__).resolve().parents[3] / "streams" / "console"


def sources() -> str:
    files = [*CONSOLE.rglob("*.html"), *CONSOLE.rglob("*.py")]
    return "\n".join(each.read_text(encoding="utf-8") for each in files if each.name != "words.py")


def test_what_is_said_stands_in_the_catalogue() -> None:
    said = set(re.findall(r'\bsay\(\s*"([a-z_.]+[a-z_])"(?!\s*~)', sources()))

    assert said
    assert not said - set(WORDS)


def test_what_stands_in_the_catalogue_is_said() -> None:
    text = sources()
    names = set(re.findall(r"[\"']([a-z0-9_.]+)[\"']", text))
    begun = set(re.findall(r"[\"']([a-z_.]+[._])[\"'] ~", text)) | set(re.findall(r'f"([a-z_.]+_)\{', text))

    unused = {
        name
        for name in WORDS
        if name not in names
        and not any(name.startswith(part) for part in begun)
        # say(action ~ ".title")
        and not re.fullmatch(r"(reject|return)\.(title|hint|press)", name)
    }
    assert not unused


def test_templates_never_mark_text_as_safe_or_leave_escaping_out() -> None:
    for each in CONSOLE.rglob("*.html"):
        text = each.read_text(encoding="utf-8")
        assert not re.search(
            r"\|\s*safe\b|autoescape|Markup|\bon[a-z]+=|style=|<script(?![^>]*src=)|hx-on|hx-vals", text
        ), each


def test_the_vendored_library_is_the_one_that_was_looked_at() -> None:
    import hashlib

    found = (CONSOLE / "static" / "htmx.min.js").read_bytes()

    # htmx.org 2.0.11 of npm, dist/htmx.min.js.
    assert (
        hashlib.sha256(found).hexdigest()
        == "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
    )
