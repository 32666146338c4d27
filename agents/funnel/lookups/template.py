"""A URL or a key with places for what is looked up: `authority:{tenant}:{actor_id}`.

Promise: two proposals whose parts differ never fill one template alike. So each part is percent-encoded, the colon and
the slash too; a tenant `a:b` would otherwise read what belongs to the tenant `a`. Between two places stands a character
that no part has, or `{tenant}-{actor_id}` would be one key for `a`, `b-c` and for `a-b`, `c`. A number or a truth value
begins with `=`, which no text does: 1 and "1" are two keys.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from urllib.parse import quote

from ticketgate.codecs.records.proposal import Proposal

# What a template may name beside `values.NAME`.
PLACES = ("actor_id", "operation", "tenant")

_VALUES = "values."
# What no encoded part holds.
_SEPARATOR = re.compile(r"[^A-Za-z0-9_.~@%=-]")
_PLACE = re.compile(r"\{([^{}]*)\}")


class TemplateError(ValueError):
    """The template cannot be filled: it names no place, an unknown one, or has a brace too many."""


@dataclass(frozen=True, slots=True)
class Template:
    """A text and the places in it, in their order."""

    text: str
    places: tuple[str, ...]

    @classmethod
    def read(cls, text: str, *, must: Iterable[str] = (), may: Iterable[str] = PLACES) -> Self:
        """The template that a text writes. must: places that have to stand in it. `values.` in may: any value."""
        places = tuple(_PLACE.findall(text))
        known = (*must, *may)
        for place in places:
            is_value = place.startswith(_VALUES) and len(place) > len(_VALUES) and _VALUES in known
            if (place not in known or place == _VALUES) and not is_value:
                told = ", ".join(f"{{{each}NAME}}" if each == _VALUES else f"{{{each}}}" for each in known)
                raise TemplateError(f"has no place {{{place}}}; there are {told}")
        if "{" in _PLACE.sub("", text) or "}" in _PLACE.sub("", text):
            raise TemplateError("has a brace that belongs to no place")
        for between in _PLACE.split(text)[2:-1:2]:
            if not _SEPARATOR.search(between):
                told = f"only {between!r}" if between else "nothing"
                raise TemplateError(
                    f"has {told} between two places, so that different parts could fill it alike; put a : between them"
                )
        for place in must:
            if place not in places:
                raise TemplateError(f"lacks {{{place}}}")
        return cls(text, places)

    def fill(self, proposal: Proposal) -> str | None:
        """The text for a proposal; None if the request binds no such value."""
        parts: dict[str, str] = {}
        for place in self.places:
            part = _part(place, proposal)
            if part is None:
                return None
            parts[place] = part
        return _PLACE.sub(lambda found: parts[found[1]], self.text)


def encoded(text: str) -> str:
    """A part as it stands in a template: letters, digits and `-._~@` as they are, every other byte as %XX."""
    return quote(text, safe="@", errors="surrogatepass")


def _part(place: str, proposal: Proposal) -> str | None:
    request = proposal.request
    if place.startswith(_VALUES):
        value = request.values.get(place.removeprefix(_VALUES))
        if value is None:
            return None
        if isinstance(value, str):
            return encoded(value)
        return f"={str(value).lower() if isinstance(value, bool) else value}"
    return encoded(
        {"actor_id": request.actor_id, "operation": request.operation, "tenant": proposal.tenant}[place]
    )
