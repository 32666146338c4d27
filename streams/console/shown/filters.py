"""Which rows a list shows, as the query of its address, so that every filter is a link.

Promise: what `query` writes `read` reads back. A value that nothing can have is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from multidict import MultiMapping
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.operations.review.moments import read_age
from ticketgate.streams.operations.review.rows import Kind, State, Wanted

# A query that a person made by links and words; what is longer was made by somebody else.
MOST_CHARS = 200
MOST_VALUES = 8
# Those that may be given several times; all must hold.
SEVERAL = ("rule", "label")
# Filters are kept of what waits alone.
FILTERED = (State.WAITING, State.EXPIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What was asked for. older: an age such as `2d`."""

    state: State = State.WAITING
    kind: Kind = Kind.DECISION
    stage: str | None = None
    policy: str | None = None
    tenant: str | None = None
    rule: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    words: str | None = None
    older: str | None = None

    @property
    def given(self) -> tuple[tuple[str, str], ...]:
        """What narrows the list, by name, one by one."""
        found: list[tuple[str, str]] = []
        for name in ("stage", "policy", "tenant", "words", "older"):
            value = getattr(self, name)
            found += [] if value is None else [(name, value)]
        found += [("rule", each) for each in self.rule] + [("label", each) for each in self.label]
        return tuple(found)

    def with_(self, name: str, value: str) -> Filter:
        """Narrowed by one more."""
        held: tuple[str, ...] = getattr(self, name) if name in SEVERAL else ()
        return self._changed(name, tuple(dict.fromkeys((*held, value))) if name in SEVERAL else value)

    def without(self, name: str, value: str) -> Filter:
        """Without one of `given`."""
        if name in SEVERAL:
            return self._changed(name, tuple(each for each in getattr(self, name) if each != value))
        return self._changed(name, None)

    def _changed(self, name: str, value: object) -> Filter:
        changes: dict[str, Any] = {name: value}
        return replace(self, **changes)

    @property
    def query(self) -> str:
        """As a query without its question mark; empty for what waits, all of it."""
        pairs = [("state", str(self.state))] if self.state is not State.WAITING else []
        pairs += [("kind", str(self.kind))] if self.kind is not Kind.DECISION else []
        return urlencode([*pairs, *self.given])

    def wanted(self, now_ms: int) -> Wanted:
        """As the view is asked."""
        if self.state not in FILTERED:
            return Wanted(state=self.state)
        return Wanted(
            state=self.state,
            kind=self.kind,
            stage=self.stage,
            policy=self.policy,
            tenant=self.tenant,
            rules=self.rule,
            labels=self.label,
            words=self.words,
            older_than_ms=None if self.older is None else now_ms - _ms(self.older),
        )


NAMES = tuple(each.name for each in fields(Filter))


def read_filter(query: MultiMapping[str]) -> Filter:
    """The filter in a query; what else is in it is not its concern. Raises PageRefusal."""
    found: dict[str, Any] = {}
    for name in NAMES:
        values = [value for value in query.getall(name, []) if value.strip()][:MOST_VALUES]
        if not values:
            continue
        if any(len(value) > MOST_CHARS for value in values):
            raise PageRefusal(400, f"{name}: longer than {MOST_CHARS} characters", next_step="Shorten it.")
        found[name] = tuple(values) if name in SEVERAL else _one(name, values[-1])
    made = Filter(**found)
    if made.given and made.state not in FILTERED:
        return Filter(state=made.state)
    return made


def _one(name: str, value: str) -> str:
    kinds: Mapping[str, type[State | Kind]] = {"state": State, "kind": Kind}
    if name in kinds:
        try:
            return kinds[name](value)
        except ValueError as err:
            known = ", ".join(kinds[name])
            raise PageRefusal(400, f"{name}: one of {known}", next_step="Go back to the list.") from err
    if name == "older":
        _ms(value)
    return value


def _ms(text: str) -> int:
    found = read_age(text)
    if found is None:
        raise PageRefusal(400, "older: an age such as 30m, 12h or 2d", next_step="Go back to the list.")
    return found
