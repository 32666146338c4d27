"""What the gates believe beside the request: who may do what, and how the world stands; and the port to both.

Promise: nothing of this comes from a proposal. Both carry a version, so that a receipt can name what it rested on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from pydantic import AwareDatetime, ConfigDict
from ticketgate.codecs.proposal import Request, Scalar

_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A person's yes to exactly these values: an event of its own. Another value of a bound field voids it."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    event_id: str
    actor_id: str
    operation: str
    bound: Mapping[str, Scalar]
    confirmed_at: AwareDatetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """What one actor may do. tools: delegated by name. limits: decimal text by limit's name."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    actor_id: str
    tools: frozenset[str] = frozenset()
    limits: Mapping[str, str] = field(default_factory=dict)
    confirmations: tuple[Confirmation, ...] = ()
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """How the world stands: facts by name; request_version: the newest that the requester made, if known."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    facts: Mapping[str, Scalar] = field(default_factory=dict)
    request_version: int | None = None
    version: str = ""


class Lookup(Protocol):
    """Where authority and world state come from. Asked before judging, and again just before an effect."""

    async def authority(self, actor_id: str) -> Authority | None:
        """What the actor may do; None if nothing is known of them, which denies."""
        ...

    async def world(self, request: Request) -> World:
        """The facts that bear on the request. A fact that cannot be had is left out, and its gate stops the case."""
        ...
