"""One command carried out and verified in one go, on a ledger that is forgotten afterwards: for `ticketgate funnel`.

Promise: the rules are those of the worker, for it is the executor and the reconciler that work here. No time passes:
what reading back does not settle at once stays `unknown`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory
from ticketgate.agents.effects.executor import NO_STATES, Executor, receipt_of
from ticketgate.agents.effects.ledger import Collided, Command, Order
from ticketgate.agents.effects.port import EffectPort
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.agents.effects.rules import COLLISION, NO_ANSWER
from ticketgate.agents.effects.states import States
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.codecs.verdict import Verdict

_PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class Settled:
    """How a command ended, with the receipt if an effect stands that was verified."""

    verdict: Verdict
    receipt: EffectReceipt | None = None


async def carry_out(
    command: Command, port: EffectPort, *, states: Mapping[str, States] = NO_STATES
) -> Settled:
    """Carry a command out and verify it, and send it a second time where the rules allow that. The caller judges
    evidence just before."""
    ledger = LedgerInMemory(clock=lambda: 0.0)
    executor = Executor(ledger, {_PROVIDER: port}, states=states)
    order = Order(command=command, provider=_PROVIDER)
    (prepared,) = await executor.prepare([order], token=None, claimed=0)
    if isinstance(prepared, Collided):  # a fresh ledger has nothing to collide with
        return Settled(COLLISION)
    entry = await executor.carry_out(prepared, token=None)
    if entry.is_open:
        # What is absent is due at once, and has its resend; what is unknown is due later, which never comes here.
        await Reconciler(ledger, executor, judge_again=None, announce=_to_nobody).run_once()
        entry = await ledger.read(command.key) or entry
    receipt = receipt_of(entry) if entry.state is EffectState.COMMITTED else None
    return Settled(entry.verdict or NO_ANSWER, receipt)


async def _to_nobody(receipts: Sequence[EffectReceipt]) -> None:
    """Nobody rebuilds this ledger."""
