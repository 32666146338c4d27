"""A provider in memory behind the effect port: for cases and tests, as strict as a provider should be.

Promise: a key takes effect once; executing what was not prepared raises. Faults are lined up and happen once each, in
the order of the calls: a time-out before or after the commit, an answer that is no answer, a read-back that fails.
What stands is in the first state that its tool declares as done.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import Field
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
from ticketgate.agents.effects.states import States
from ticketgate.codecs.values.strict import JsonValue

# commits_twice: the provider breaks its promise of one effect a key.
ExecuteFault = Literal["timeout_before_commit", "timeout_after_commit", "refused", "commits_twice"]
# unsettled: not found, in a copy that may lag. altered: something else stands. state:X: it stands, in state X.
ReadBackFault = Literal["unreadable", "unsettled", "altered"] | Annotated[str, Field(pattern=r"^state:.")]
_STATE = "state:"


_COMMITTED = States(done=("committed",))


class MemoryProvider:
    """One provider's state: what stands there, which a ledger of effect states knows of by hearsay alone.

    `committed` counts effects, `sent` every execution asked for.
    """

    def __init__(
        self, *, is_idempotent_by_key: bool = True, states: Mapping[str, States] | None = None
    ) -> None:
        self._is_idempotent_by_key = is_idempotent_by_key
        self._states = states or {}
        self._prepared: dict[str, Command] = {}
        self._standing: dict[str, Found] = {}
        self._execute_faults: deque[ExecuteFault] = deque()
        self._read_back_faults: deque[ReadBackFault] = deque()
        self.committed = 0
        self.sent = 0

    @property
    def is_idempotent_by_key(self) -> bool:
        """As the provider declares itself."""
        return self._is_idempotent_by_key

    @property
    def settle_s(self) -> float:
        """Memory settles at once."""
        return 0.0

    def declare(self, *, is_idempotent_by_key: bool) -> None:
        """From now on the provider sees to it, or not, that a key takes effect once."""
        self._is_idempotent_by_key = is_idempotent_by_key

    def fail_next(
        self, *, execute: Iterable[ExecuteFault] = (), read_back: Iterable[ReadBackFault] = ()
    ) -> None:
        """Line up what the next calls meet; what was lined up before and not met is forgotten."""
        self._execute_faults = deque(execute)
        self._read_back_faults = deque(read_back)

    async def prepare(self, command: Command) -> Prepared | Refused:
        """Anything can be asked for here. What was asked for first under a key is what the key is for."""
        self._prepared.setdefault(command.key, command)
        return Prepared(command)

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        """Commit the effect if nothing stands under the key. Raises ValueError for what was not prepared."""
        command = prepared.command
        if command.key not in self._prepared:
            raise ValueError(
                f"key {command.key!r} was not prepared; prepare looks at a command before it is sent"
            )
        self.sent += 1
        if self._prepared[command.key].content != command.content:
            return Collision()
        fault = self._execute_faults.popleft() if self._execute_faults else None
        if fault == "timeout_before_commit":
            return TimedOut()
        if fault == "refused":
            return Refused("not today")
        is_replay = command.key in self._standing
        if not is_replay or not self._is_idempotent_by_key:
            self.committed += 2 if fault == "commits_twice" else 1
            states = self._states.get(command.tool, _COMMITTED)
            state: dict[str, JsonValue] = {**command.arguments, states.field: states.done[0]}
            self._standing[command.key] = Found(f"tr_{self.committed:04d}", state)
        if fault == "timeout_after_commit":
            return TimedOut()
        standing = self._standing[command.key]
        return Executed(standing.provider_id, dict(standing.state), is_replay)

    async def read_back(self, key: str) -> ReadBackResult:
        """What stands under the key."""
        fault = self._read_back_faults.popleft() if self._read_back_faults else None
        if fault == "unreadable":
            return CannotRead()
        standing = None if fault == "unsettled" else self._standing.get(key)
        if standing is None:
            return NotFound(is_authoritative=fault != "unsettled")
        if fault == "altered":
            return Found(standing.provider_id, dict.fromkeys(standing.state, "altered"))
        if fault is not None and fault.startswith(_STATE):
            field = self._states.get(self._prepared[key].tool, _COMMITTED).field
            return Found(standing.provider_id, {**standing.state, field: fault.removeprefix(_STATE)})
        return Found(standing.provider_id, dict(standing.state))
