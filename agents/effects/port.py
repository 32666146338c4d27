"""The port that effects go through: prepare, execute, read back; each with every answer that can come, as a value.

Promise of an adapter: a command executed twice under one key has one effect, or `is_idempotent_by_key` is False. A
lost answer is `TimedOut`, never an error and never a success; `Refused` says for certain that nothing was done.
Whatever an adapter raises all the same is taken for `TimedOut` or `CannotRead`. What bounds absence:

    LATEST_START_S + the adapter's time-out + the provider's own settle time <= EffectPort.settle_s
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from ticketgate.codecs.values.strict import JsonValue
from ticketgate.store.ledger.entries import Command

__all__ = [
    "LATEST_START_S",
    "CannotRead",
    "Collision",
    "Command",
    "EffectPort",
    "ExecuteResult",
    "Executed",
    "Found",
    "NotFound",
    "Prepared",
    "ReadBackResult",
    "Refused",
    "TimedOut",
]


# A process that was stopped between writing `unknown` and sending must not send when it goes on: by then the effect may
# have been found absent, and sent by another. This bounds how late it starts, and cannot exclude it. As long as a Redis
# may take for one answer (`redis_timeout`), or an effect that is not sent a second time would be left to a person.
LATEST_START_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that can be known before sending is in order, and nothing has left yet."""

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
    """Nothing stands under the key now. is_authoritative: not read from a copy that may lag. Whether it will stay so is
    not the port's to say: that hangs on how long ago the command was sent."""

    is_authoritative: bool = True


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

    @property
    def settle_s(self) -> float:
        """How long after a sending was written down it may still take effect: nothing found later than this is absent.
        An adapter adds up `LATEST_START_S`, its time-out, and what its provider takes after that."""
        ...

    async def prepare(self, command: Command) -> Prepared | Refused:
        """Look at what can be known without sending: whether the command can be written and its key be carried.
        Sends nothing, binds nothing."""
        ...

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        """Ask for the effect, once. The caller has written down that its outcome is unknown from now on."""
        ...

    async def read_back(self, key: str) -> ReadBackResult:
        """What stands under a key, from authoritative state."""
        ...
