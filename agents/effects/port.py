"""The port that effects go through: prepare, execute, read back; each with every answer that can come, as a value.

Promise of an adapter: a command executed twice under one key has one effect, or `is_idempotent_by_key` is False. A
lost answer is `TimedOut`, never an error and never a success. Source: DESIGN section 7.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ticketgate.codecs.strict import JsonValue


@dataclass(frozen=True, slots=True)
class Command:
    """One effect: the tool, its arguments in one spelling for equal values, and the key that it happens once under."""

    tool: str
    arguments: Mapping[str, JsonValue]
    key: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """The key is bound to this command, and nothing has happened yet."""

    command: Command


@dataclass(frozen=True, slots=True)
class Collision:
    """The key is bound to another effect, which stands."""


@dataclass(frozen=True, slots=True)
class Executed:
    """The provider says that the effect stands. is_replay: it stood before this command."""

    provider_id: str
    state: Mapping[str, JsonValue]
    is_replay: bool


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider says for certain that it did nothing, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """No answer. The effect may stand or not."""


@dataclass(frozen=True, slots=True)
class Found:
    """What stands under the key, as read back from authoritative state."""

    provider_id: str
    state: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class NotFound:
    """Nothing stands under the key. is_final: read from authoritative state after the provider's settle time."""

    is_final: bool


@dataclass(frozen=True, slots=True)
class CannotRead:
    """No read-back is to be had."""


ExecuteResult = Executed | Refused | Collision | TimedOut
ReadBackResult = Found | NotFound | CannotRead


class EffectPort(Protocol):
    """One provider."""

    @property
    def is_idempotent_by_key(self) -> bool:
        """Whether the provider itself sees to it that a key takes effect once: what a resend hangs on."""
        ...

    async def prepare(self, command: Command) -> Prepared | Collision:
        """Bind the key to the command. Again with the same command: prepared, as before."""
        ...

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        """Ask for the effect. Only what was prepared."""
        ...

    async def read_back(self, key: str) -> ReadBackResult:
        """What stands under a key."""
        ...
