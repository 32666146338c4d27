"""What passes between a case and its provider, taken down on the way: for the failure profile.

Promise: nothing is changed, and nothing is asked that would not be asked anyway.
"""

from dataclasses import dataclass
from typing import Literal

from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.effects.delegating import DelegatingPort
from ticketgate.agents.effects.port import (
    CannotRead,
    Collision,
    Command,
    Executed,
    ExecuteResult,
    Found,
    NotFound,
    Prepared,
    ReadBackResult,
    Refused,
    TimedOut,
)

Answer = Literal["executed", "refused", "collision", "timed_out"]
# stale: not found in a copy that may lag, which says nothing.
Reading = Literal["found", "not_found", "stale", "unreadable"]


@dataclass(frozen=True, slots=True)
class Trace:
    """What a case had to do with its provider. command: None if no call got that far. answers: one a sending; reads:
    one a read-back. created: effects that came into being meanwhile."""

    command: Command | None = None
    answers: tuple[Answer, ...] = ()
    reads: tuple[Reading, ...] = ()
    created: int = 0

    @property
    def is_accepted(self) -> bool:
        """Whether the command was sent and not turned down: time-outs are among these."""
        return bool(self.answers) and self.answers[-1] in ("executed", "timed_out")

    @property
    def is_executed_at_once(self) -> bool:
        """Whether the provider answered the first sending that the effect stands."""
        return self.answers[:1] == ("executed",)

    @property
    def is_read_back(self) -> bool:
        """Whether some read-back was authoritative, whatever it found."""
        return any(each in ("found", "not_found") for each in self.reads)


class WatchedPort(DelegatingPort):
    """The provider's port, watched for one case."""

    def __init__(self, provider: MemoryProvider) -> None:
        super().__init__(provider)
        self._provider = provider
        self._committed_before = provider.committed
        self._command: Command | None = None
        self._answers: list[Answer] = []
        self._reads: list[Reading] = []

    async def prepare(self, command: Command) -> Prepared | Refused:
        """Passed on; a call that comes here has passed every gate."""
        self._command = command
        return await super().prepare(command)

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        """Passed on, and the answer taken down."""
        answer = await super().execute(prepared)
        self._answers.append(_answer(answer))
        return answer

    async def read_back(self, key: str) -> ReadBackResult:
        """Passed on, and what was read taken down."""
        found = await super().read_back(key)
        self._reads.append(_reading(found))
        return found

    def trace(self) -> Trace:
        """What has been seen so far."""
        created = self._provider.committed - self._committed_before
        return Trace(self._command, tuple(self._answers), tuple(self._reads), created)


def _answer(answer: ExecuteResult) -> Answer:
    match answer:
        case Executed():
            return "executed"
        case Refused():
            return "refused"
        case Collision():
            return "collision"
        case TimedOut():
            return "timed_out"


def _reading(found: ReadBackResult) -> Reading:
    match found:
        case Found():
            return "found"
        case NotFound():
            return "not_found" if found.is_authoritative else "stale"
        case CannotRead():
            return "unreadable"
