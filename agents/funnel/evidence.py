"""What the gates believe beside the request: who may do what, and how the world stands; and the port to both.

Promise: nothing of this comes from what a model wrote. Both carry a version, so that a receipt can name what it rested
on. Nobody answering and an answer that is no evidence are told apart: the first is waited for, the second is reviewed.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, ClassVar, Final, Protocol

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, ConfigDict, FailFast
from ticketgate.codecs.records.identity import confirmation_digest
from ticketgate.codecs.records.proposal import Proposal, Scalar
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.times import parse_rfc3339, rfc3339

# So far ahead of ours may be the clock of who signs a record, or takes a confirmation. Neither is taken longer for it:
# expiry has no such grace.
CLOCK_SKEW_S: Final = 5.0

_STRICT = ConfigDict(extra="forbid")

# FailFast, here and below: what is said of each wrong entry takes a hundred times as much as the entry.
_Facts = Annotated[Mapping[str, Scalar], FailFast()]


def _writable(moment: datetime) -> datetime:
    """`moment`, if a receipt can name it. At the calendar's ends an offset leads out of it."""
    try:
        rfc3339(moment)
    except OverflowError:
        raise ValueError("lies outside the years 1 to 9999") from None
    return moment


# A moment with its zone, of which every record can tell.
def _read(given: object) -> object:
    return parse_rfc3339(given) if isinstance(given, str) else given


# Read as every moment of ours is; pydantic would take a dozen spellings more.
WritableMoment = Annotated[AwareDatetime, AfterValidator(_writable), BeforeValidator(_read)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A person's yes to exactly these values: an event of its own. Another value of a bound field voids it."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    event_id: str
    actor_id: str
    operation: str
    bound: _Facts
    confirmed_at: WritableMoment

    @property
    def digest(self) -> str:
        """The act of confirming by name, whatever it says: it allows one effect."""
        return confirmation_digest(self.actor_id, self.event_id)

    def to_json(self) -> dict[str, JsonValue]:
        """The confirmation as a JSON object, every field written."""
        return {
            "event_id": self.event_id,
            "actor_id": self.actor_id,
            "operation": self.operation,
            "bound": dict(self.bound),
            "confirmed_at": rfc3339(self.confirmed_at),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """What one actor may do. tools: delegated by name. limits: decimal text by limit's name. channels: by tool, those
    that its effects may be asked for through; a tool that is not named may be asked for through any."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    actor_id: str
    tools: Annotated[frozenset[str], FailFast()] = frozenset()
    limits: Annotated[Mapping[str, str], FailFast()] = field(default_factory=dict)
    confirmations: Annotated[tuple[Confirmation, ...], FailFast()] = ()
    version: str = ""
    channels: Annotated[Mapping[str, tuple[str, ...]], FailFast()] = field(default_factory=dict)

    def to_json(self) -> dict[str, JsonValue]:
        """The authority as a JSON object, tools sorted, every field written but channels where there are none."""
        record: dict[str, JsonValue] = {
            "actor_id": self.actor_id,
            "tools": [*sorted(self.tools)],
            "limits": dict(self.limits),
            "confirmations": [each.to_json() for each in self.confirmations],
            "version": self.version,
        }
        if self.channels:
            record["channels"] = {name: list(each) for name, each in self.channels.items()}
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How the world stands: facts by name; request_version: the newest that the requester made, if known."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    facts: _Facts = field(default_factory=dict)
    request_version: int | None = None
    version: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        """The world as a JSON object, every field written."""
        return {"facts": dict(self.facts), "request_version": self.request_version, "version": self.version}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one look-up brought. unreadable: `authority:why` or `world:why` for an answer that is no evidence; what it
    stood for is then None or empty, which lets nothing pass."""

    authority: Authority | None
    world: World
    unreadable: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """Authority and world, whole, as a case's record carries them; `unreadable` only if anything is."""
        evidence: dict[str, JsonValue] = {
            "authority": None if self.authority is None else self.authority.to_json(),
            "world": self.world.to_json(),
        }
        if self.unreadable:
            evidence["unreadable"] = [*self.unreadable]
        return evidence


class LookupUnavailable(Exception):
    """Nobody answers now: no connection, no answer in time, or too busy. Waited for and asked again; nothing is
    decided meanwhile."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class EvidenceUnreadable(Exception):
    """There is an answer, and it is no evidence: another shape, another actor, a bad signature. Asking again would
    bring the same, so the case goes to review."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Lookup(Protocol):
    """Where authority and world state come from. Asked before judging, and again just before an effect.

    Both raise LookupUnavailable or EvidenceUnreadable, and nothing else that a source could cause.
    """

    async def authority(self, proposal: Proposal) -> Authority | None:
        """What the request's actor may do; None if nothing is known of them, which denies."""
        ...

    async def world(self, proposal: Proposal) -> World:
        """The facts that bear on the request. A fact that cannot be had is left out, and its gate stops the case."""
        ...


async def look_up(proposal: Proposal, lookup: Lookup) -> Evidence:
    """Ask for both at once. Raises LookupUnavailable; what is unreadable is told in the evidence."""
    authority, world = await asyncio.gather(
        lookup.authority(proposal), lookup.world(proposal), return_exceptions=True
    )
    unreadable: list[str] = []
    if isinstance(authority, EvidenceUnreadable):
        unreadable.append(f"authority:{authority.what}")
        authority = None
    if isinstance(world, EvidenceUnreadable):
        unreadable.append(f"world:{world.what}")
        world = World()
    # Only now: one that is away must not leave the other's task behind.
    if isinstance(authority, BaseException):
        raise authority
    if isinstance(world, BaseException):
        raise world
    return Evidence(authority=authority, world=world, unreadable=tuple(unreadable))
