"""What the view is fed with, and what it gives: plain rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ticketgate.codecs.records.settled import Outcome


class Kind(StrEnum):
    """What lies in review. Decisions are settled; the others are looked into."""

    DECISION = "decision"
    COLLISION = "collision"
    CASE = "case"
    RECEIPT = "receipt"


class State(StrEnum):
    """How a record in review stands."""

    WAITING = "waiting"
    EXPIRED = "expired"
    """It waits, and its ticket's claim is over: it can be settled no more."""
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    RETURNED = "returned"
    REPLACED = "replaced"
    """The ticket was decided anew since."""


EFFECTIVE: Mapping[str, State] = {str(each): State(str(each)) for each in Outcome if each.takes_effect}
"""What may become of a settlement that takes effect, and how its record in review stands then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """A record in review. place: its coordinate. key: the ticket's, or what else stands as its key. text: of the
    ticket, for the search."""

    place: str
    key: str
    ticket_id: str
    tenant: str
    kind: Kind
    at_ms: int
    sha256: str
    stage: str
    policy: str
    rules: tuple[str, ...]
    labels: tuple[str, ...]
    reasons: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A settlement as it lies on `settlements`."""

    coordinate: str
    id: str
    key: str
    review: str
    action: str
    by: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of a settlement."""

    coordinate: str
    id: str
    key: str
    review: str
    action: str
    by: str
    at_ms: int
    outcome: str
    code: str
    reasons: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A row of the view. id: grows with age, the oldest first; `after` of the next page."""

    id: int
    place: str
    key: str
    ticket_id: str
    tenant: str
    kind: Kind
    state: State
    at_ms: int
    expires_ms: int
    sha256: str
    stage: str
    policy: str
    rules: tuple[str, ...]
    labels: tuple[str, ...]
    reasons: tuple[str, ...]
    says: str
    settlement: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A filter: all that is given must hold. state: waiting unless told. words: all of them in the text.
    older_than_ms: before that moment."""

    state: State = State.WAITING
    kind: str | None = None
    stage: str | None = None
    policy: str | None = None
    tenant: str | None = None
    rules: Sequence[str] = ()
    labels: Sequence[str] = ()
    words: str | None = None
    older_than_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """How many; `is_whole` False: at least so many, counting ended there."""

    rows: int
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, the oldest first. next_after: behind which id to go on, None at the end. is_full False: there may be
    more than these, but looking ended there, so that no page waits for what is hardly ever found."""

    rows: Sequence[Case]
    next_after: int | None
    is_full: bool
