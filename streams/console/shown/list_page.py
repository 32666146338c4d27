"""What the list shows: rows, the filters that are links, and where it goes on.

Promise: pure; a row says all that a person needs to choose it, and nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from ticketgate.streams.console.desk.notes import Deferred, Press
from ticketgate.streams.console.shown.filters import Filter
from ticketgate.streams.console.shown.foreign import Foreign, foreign
from ticketgate.streams.operations.review.moments import age
from ticketgate.streams.operations.review.rows import Case, Count, Kind, State

PAGE_ROWS = 50
# What expires within this time is pressing.
PRESSING_MS = 2 * 86_400_000
SHOWN_LABELS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One ticket of the list. ends: in how long it can be settled no more; empty for what has no end. press: what is
    under way for it. lookers: names of those who look at it."""

    place: str
    url: str
    name: Foreign
    says: Foreign
    why: tuple[Foreign, ...]
    labels: tuple[str, ...]
    more_labels: int
    tenant: str
    age: str
    ends: str
    is_pressing: bool
    press: Press | None
    deferred: Deferred | None
    lookers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facet:
    """A filter that is a link: what it is of, its value, how many have it, and where it leads."""

    name: str
    value: str
    rows: int
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """The list. given: what narrows it, each with the address without it. newest: the last row's number when it was
    made, behind which all is news. next_url: of the next page, or None. is_full: False where
    looking ended before the page was full."""

    filter: Filter
    rows: tuple[Row, ...]
    count: Count
    numbers: Mapping[str, int]
    oldest: str
    given: tuple[tuple[str, str, str], ...]
    facets: tuple[Facet, ...]
    newest: int
    after: int
    next_url: str | None
    is_full: bool
    hidden: int
    shows_deferred: bool

    @property
    def settles(self) -> bool:
        """Whether these rows are of a kind that people settle."""
        return self.filter.kind is Kind.DECISION and self.filter.state is State.WAITING


def row_of(
    case: Case,
    *,
    listed: Filter,
    now_ms: int,
    press: Press | None = None,
    deferred: Deferred | None = None,
    lookers: Sequence[str] = (),
) -> Row:
    """One row."""
    settles = case.kind is Kind.DECISION and case.state is State.WAITING
    left_ms = case.expires_ms - now_ms
    return Row(
        place=case.place,
        url=ticket_url(case, listed),
        name=foreign(case.ticket_id, most=80),
        says=foreign(case.says),
        why=tuple(foreign(each, most=160) for each in case.reasons[:2]),
        labels=case.labels[:SHOWN_LABELS],
        more_labels=max(0, len(case.labels) - SHOWN_LABELS),
        tenant=case.tenant,
        age=age(now_ms - case.at_ms),
        ends=age(left_ms) if settles else "",
        is_pressing=settles and left_ms < PRESSING_MS,
        press=press,
        deferred=deferred,
        lookers=tuple(lookers),
    )


def ticket_url(case: Case, listed: Filter | None = None) -> str:
    """Where a row leads: the ticket, with the list that one came from."""
    query = urlencode([("at", case.place)]) if case.kind is not Kind.DECISION else ""
    parts = [each for each in (query, listed.query if listed else "") if each]
    return f"/ticket/{quote(case.key or case.place, safe='')}" + (f"?{'&'.join(parts)}" if parts else "")


def list_url(listed: Filter, *, after: int = 0, deferred: bool = False) -> str:
    """A list's address."""
    parts = [each for each in (listed.query, f"after={after}" if after else "") if each]
    parts += ["deferred=1"] if deferred else []
    return "/" + (f"?{'&'.join(parts)}" if parts else "")
