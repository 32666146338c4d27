"""Which observed states of an effect stand: done, pending or undone, as its tool declares.

Promise: equal content is no success by itself: a transfer with the right payee and amount that was cancelled is undone.
A state that nobody declared says nothing, and stays open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from ticketgate.codecs.values.malformed import shorten
from ticketgate.codecs.values.strict import JsonValue, canonical

Standing = Literal["done", "pending", "undone", "undeclared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """What the field `field` of an observed state may say. done: the effect stands. pending: it may come to stand, and
    is read again for `pending_s` seconds after it was sent, then it is unknown and a person's. undone: it does not
    stand, though something was made under its key."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    done: Annotated[tuple[str, ...], Field(min_length=1)]
    pending: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    field: Annotated[str, Field(min_length=1)] = "status"
    pending_s: Annotated[float, Field(gt=0, le=30 * 86400)] = 3600.0

    def standing(self, observed: Mapping[str, JsonValue]) -> Standing:
        """What an observed state is declared as."""
        said = observed.get(self.field)
        if said in self.done:
            return "done"
        if said in self.pending:
            return "pending"
        return "undone" if said in self.undone else "undeclared"

    def told(self, observed: Mapping[str, JsonValue]) -> str:
        """The field and what it says, as reasons write it; `none` where it says nothing."""
        said = observed.get(self.field)
        text = "none" if said is None else said if isinstance(said, str) else canonical(said).decode()
        return f"{self.field}={shorten(text)}"

    def twice(self) -> Iterator[str]:
        """Values that are declared in more than one way."""
        every = (*self.done, *self.pending, *self.undone)
        yield from dict.fromkeys(value for value in every if every.count(value) > 1)


NO_STATES: Final[Mapping[str, States]] = {}
"""By tool, for tools of which nobody declared any."""
