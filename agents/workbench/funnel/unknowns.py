"""How long an outcome stays unknown: the reconciler at work on a case that ended so, under a clock that is turned.

Promise: no time is waited for. The rules are the worker's, for it is its reconciler that reads back; what it does not
settle within the horizon is held.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory
from ticketgate.agents.effects.executor import READ_BACK_FIRST_S, Executor
from ticketgate.agents.effects.ledger import Collided, Entry, Moved, Order, Settlement
from ticketgate.agents.effects.port import EffectPort
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.agents.effects.states import NO_STATES, States
from ticketgate.agents.workbench.funnel.watch import Trace
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.codecs.verdict import Verdict

# After an hour of reading back it is a person who finds out, so more would say nothing of the machine.
HORIZON_S: Final = 3600.0
_TICK_S: Final = 1.0
_PROVIDER = "provider"


@dataclass(slots=True)
class _Clock:
    """Seconds since the command was sent."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


async def unknown_for_s(
    trace: Trace, verdict: Verdict, port: EffectPort, *, states: Mapping[str, States] = NO_STATES
) -> float | None:
    """The seconds from sending until a command that ended `unknown` is settled, to the tick; None if it is held.

    verdict: how the case ended. The provider goes on from where the case left it, and may be sent the command a
    second time where the rules allow that.
    """
    if trace.command is None:
        raise ValueError("there is no command whose outcome could be unknown")
    clock = _Clock()
    ledger = LedgerInMemory(clock=clock)
    executor = Executor(ledger, {_PROVIDER: port}, states=states, clock=clock)
    reconciler = Reconciler(ledger, executor, judge_again=None, announce=_to_nobody)
    entry = await _as_sent(ledger, Order(command=trace.command, provider=_PROVIDER), trace, verdict)
    while entry.is_open:
        if clock.now_s >= HORIZON_S:
            return None
        clock.now_s += _TICK_S
        await reconciler.run_once()
        entry = await ledger.read(entry.key) or entry
    return clock.now_s


async def _as_sent(ledger: LedgerInMemory, order: Order, trace: Trace, verdict: Verdict) -> Entry:
    """The entry as it stands after the case: written down as sent, and not sent, for that has been done."""
    (entry,) = await ledger.prepare([order], token=None, claimed=0)
    sent: Entry | Moved | Collided = entry
    for nth, _ in enumerate(trace.answers):
        if nth and isinstance(sent, Entry):
            absent = Settlement(state=EffectState.ABSENT, verdict=verdict)
            sent = await ledger.settle(sent, absent, token=None, read_back_in_s=0.0)
        if isinstance(sent, Entry):
            sent = await ledger.begin_send(
                sent, verdict=verdict, token=None, read_back_in_s=READ_BACK_FIRST_S
            )
    if not isinstance(sent, Entry):
        raise TypeError("a ledger that nobody else writes to has neither collisions nor races")
    return sent


async def _to_nobody(receipts: Sequence[EffectReceipt]) -> None:
    """Nobody rebuilds this ledger."""
