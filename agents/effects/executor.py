"""One effect carried out: written down as unknown, sent once, read back, settled.

Promise: an effect is sent only by who made it `unknown` in the ledger, so of two executors one sends, and one that dies
leaves an outcome that is read back and not a command that is sent again. Whatever an adapter raises is an answer that
was lost. A request is out at most `LATEST_START_S` and its adapter's time-out after it was written down, and nothing is
absent before that and the provider's settle time are over (the inequality in port.py).
Steps: 1 look at what can be known without sending, 2 begin to send, 3 execute, 4 read back, 5 settle.
Relies on: a ledger that keeps what it said (store/ledger/ledger.py).
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ticketgate.agents.effects.faults import EntryLost, ProviderMissing
from ticketgate.agents.effects.ledger import Collided, EffectLedger, Entry, Moved, Order, Settlement
from ticketgate.agents.effects.port import (
    LATEST_START_S,
    CannotRead,
    Collision,
    Command,
    EffectPort,
    Executed,
    ExecuteResult,
    Prepared,
    ReadBackResult,
    Refused,
    TimedOut,
)
from ticketgate.agents.effects.rules import (
    COLLISION,
    NO_ANSWER,
    STANDS,
    after_read_back,
    after_success,
    may_resend,
    refused,
)
from ticketgate.agents.effects.states import NO_STATES, States
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState, EffectStatus

if TYPE_CHECKING:
    from ticketgate.store.tokens import LaneToken

log = logging.getLogger(__name__)

# An outcome is mostly known by then; before the settle time nothing can be said to be absent.
READ_BACK_FIRST_S: Final = 2.0
# What stands under no key, and is not sent again, is a person's; it is read back now and then for a request that was
# on its way for longer than its provider promised.
READ_BACK_ABSENT_S: Final = 60.0
# Others may move an entry while it is read back; each time one of them has got further.
MOST_LOOKS: Final = 4


# Known from the provider itself, and not from a person's word.
_VERIFIED: Final = (EffectStatus.CREATED, EffectStatus.REPLAYED, EffectStatus.VERIFIED_BY_READBACK)


class Executor:
    """Carries effects out through ports by provider name. `clock` gives seconds, from anywhere, and only rises.
    states: by tool, which observed states stand; of a tool without them, whatever has its content does.

    The ledger's errors pass through; nothing was sent then, or its outcome is unknown and stays so.
    """

    def __init__(
        self,
        ledger: EffectLedger,
        ports: Mapping[str, EffectPort],
        *,
        states: Mapping[str, States] = NO_STATES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self._ports = ports
        self._states = states
        self._clock = clock

    async def prepare(
        self, orders: Sequence[Order], *, token: "LaneToken | None", claimed: int
    ) -> tuple[Entry | Collided, ...]:
        """Bind each order's key, or find what stands under it; in one round trip, in order. See `EffectLedger.prepare`.

        The caller commits the receipts of what is prepared before it calls `carry_out`.
        """
        return await self._ledger.prepare(orders, token=token, claimed=claimed)

    async def stop(self, entry: Entry, objection: Settlement, *, token: "LaneToken | None") -> Entry:
        """Something stands against it before it is sent: nothing is. What is no longer prepared stays as it is."""
        if entry.state is not EffectState.PREPARED:
            return entry
        return await self._settle(entry, objection, token)

    async def hand_over(self, entry: Entry, *, token: "LaneToken | None") -> None:
        """Leave an open effect to a person: it may stand, and is neither sent nor read back by itself any more."""
        await self._ledger.hold(entry, token=token)

    async def carry_out(self, entry: Entry, *, token: "LaneToken | None") -> Entry:
        """Send what is prepared, once; read back what was sent before; leave what is settled. The entry afterwards."""
        if entry.state is EffectState.PREPARED:
            return await self.send(entry, token=token)
        return await self.read_again(entry, token=token)

    async def read_again(self, entry: Entry, *, token: "LaneToken | None" = None) -> Entry:
        """Read back what is open, and settle what that shows. Sends nothing."""
        return (await self.look(entry, token=token))[0]

    async def send(self, entry: Entry, *, token: "LaneToken | None") -> Entry:
        """Send what is prepared, or an absent effect a second time. Raises ValueError where it may not be sent."""
        port = self.port(entry)
        # 1
        prepared = await _prepare(port, entry.order.command)
        if isinstance(prepared, Refused):
            return await self._settle(entry, refused(entry, prepared), token)
        # 2
        started_at = self._clock()
        read_back_in_s = max(READ_BACK_FIRST_S, port.settle_s)
        sent = await self._ledger.begin_send(
            entry, verdict=NO_ANSWER, token=token, read_back_in_s=read_back_in_s
        )
        if isinstance(sent, Moved):
            return await self.read_again(_standing(sent, entry), token=token)
        if self._clock() - started_at > LATEST_START_S:
            log.warning("effect %s was held up before it was sent, and is not sent now", entry.key)
            return sent
        # 3
        answer = await _execute(port, prepared)
        # 4, 5
        return await self._after(sent, answer, port, token)

    async def look(self, entry: Entry, *, token: "LaneToken | None" = None) -> tuple[Entry, ReadBackResult]:
        """`read_again`, and what was read last; `CannotRead` where the entry is settled already."""
        found: ReadBackResult = CannotRead()
        for _ in range(MOST_LOOKS):
            if not entry.is_open:
                return entry, CannotRead()
            port = self.port(entry)
            found = await _read_back(port, entry.key)
            settlement = after_read_back(
                entry, found, settle_s=port.settle_s, states=self._states.get(entry.order.command.tool)
            )
            if settlement is None:
                return entry, found
            written = await self._write(entry, settlement, token)
            if isinstance(written, Entry):
                return written, found
            entry = _standing(written, entry, knows=settlement)
        return entry, CannotRead()

    def port(self, entry: Entry) -> EffectPort:
        """The port of an entry's provider. Raises `ProviderMissing`."""
        port = self._ports.get(entry.order.provider)
        if port is None:
            raise ProviderMissing(entry.order.provider, entry.key)
        return port

    def may_arrive_for_s(self, entry: Entry) -> float:
        """For how many seconds from now what was sent may still take effect; 0 or less: no longer. Raises
        `ProviderMissing`."""
        return self.port(entry).settle_s - entry.age_s

    async def _after(
        self, sent: Entry, answer: ExecuteResult, port: EffectPort, token: "LaneToken | None"
    ) -> Entry:
        match answer:
            case Refused() | Collision():
                return await self._settle(sent, refused(sent, answer), token)
            case Executed():
                found, states = await _read_back(port, sent.key), self._states.get(sent.order.command.tool)
                return await self._settle(sent, after_success(sent, answer, found, states=states), token)
            case TimedOut():
                return await self.read_again(sent, token=token)

    async def _settle(self, entry: Entry, settlement: Settlement, token: "LaneToken | None") -> Entry:
        written = await self._write(entry, settlement, token)
        if isinstance(written, Entry):
            return written
        # Another was faster. Whatever it found, what stands at the provider decides.
        return await self.read_again(_standing(written, entry, knows=settlement), token=token)

    async def _write(self, entry: Entry, settlement: Settlement, token: "LaneToken | None") -> Entry | Moved:
        return await self._ledger.settle(
            entry, settlement, token=token, read_back_in_s=self._pause_s(entry, settlement)
        )

    def _pause_s(self, entry: Entry, settlement: Settlement) -> float:
        """When to look at the entry again, once it is settled so."""
        if settlement.state is EffectState.UNKNOWN:
            return READ_BACK_FIRST_S
        if settlement.state is EffectState.ABSENT:
            after = replace(entry, state=settlement.state, verdict=settlement.verdict)
            return 0.0 if may_resend(after, self.port(entry)) else READ_BACK_ABSENT_S
        # To be told again, should who is about to tell of it die first.
        return READ_BACK_FIRST_S


def receipt_of(found: Entry | Collided, *, asked: Order | None = None) -> EffectReceipt:
    """The receipt of an entry as it stands, or of a collision.

    asked: the order that it is written for, where another one may have had the effect: an effect that stood before is
    `replayed` to it. A collision's receipt has sequence 0: it says nothing of what stands under the key.
    """
    if isinstance(found, Collided):
        order = found.order
        return EffectReceipt(
            status=None,
            tool=order.command.tool,
            arguments=order.command.arguments,
            provider_id=None,
            idempotency_key=order.command.key,
            state={},
            effect_state=EffectState.REJECTED,
            provider=order.provider,
            source=order.source,
            subject=order.subject,
            verdict=COLLISION,
            at=found.stands.at,
        )
    order = found.order if asked is None else asked
    # However it was verified then, to this order it is an effect that stands as asked for.
    is_replay = order.source != found.order.source and found.status in _VERIFIED
    return EffectReceipt(
        status=EffectStatus.REPLAYED if is_replay else found.status,
        tool=order.command.tool,
        arguments=order.command.arguments,
        provider_id=found.provider_id,
        idempotency_key=found.key,
        state=found.observed or {},
        effect_state=found.state,
        sequence=found.sequence,
        sends=found.sends,
        provider=found.order.provider,
        source=order.source,
        subject=order.subject,
        verdict=STANDS if is_replay else found.verdict,
        settled_by=found.settled_by,
        judged_again=found.judged_again,
        at=found.at,
        confirmation=found.confirmation,
    )


def _standing(moved: Moved, seen: Entry, *, knows: Settlement | None = None) -> Entry:
    """How the entry stands now. `knows`: what could not be written since; where a person's word says something else,
    they may act on it, and nobody looks any more."""
    stands = moved.entry
    if stands is None:
        raise EntryLost(seen.key)
    if knows is not None and stands.settled_by is not None and stands.state is not knows.state:
        log.error(
            "effect %s was settled as %s by a person, and a later answer or read-back says %s; compare the two",
            seen.key,
            stands.state,
            _outcome(knows),
        )
    return stands


def _outcome(settlement: Settlement) -> str:
    return ", ".join((str(settlement.state), *settlement.verdict.reasons))


async def _prepare(port: EffectPort, command: Command) -> Prepared | Refused:
    try:
        return await port.prepare(command)
    except Exception as err:  # noqa: BLE001 - an adapter's fault must not stop a lane
        log.error("effect %s cannot be prepared: %r", command.key, err)
        return Refused(f"the adapter failed before sending ({type(err).__name__})")


async def _execute(port: EffectPort, prepared: Prepared) -> ExecuteResult:
    try:
        return await port.execute(prepared)
    except Exception as err:  # noqa: BLE001 - whatever it is, the request may have left
        log.warning("effect %s: the adapter failed while sending: %r", prepared.command.key, err)
        return TimedOut()


async def _read_back(port: EffectPort, key: str) -> ReadBackResult:
    try:
        return await port.read_back(key)
    except Exception as err:  # noqa: BLE001 - what cannot be read says nothing
        log.warning("effect %s: the adapter failed while reading back: %r", key, err)
        return CannotRead()
