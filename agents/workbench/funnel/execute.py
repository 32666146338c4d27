"""Commands carried out and verified in one go, on ledgers that are forgotten afterwards: for `ticketgate funnel`.

Promise: the rules are those of the worker, for it is the executor and the reconciler that work here. A confirmation
allows one effect of a run. No time passes: what reading back does not settle at once stays `unknown`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory, Used
from ticketgate.agents.effects.executor import Executor, receipt_of
from ticketgate.agents.effects.ledger import Collided, Command, Entry, Order, Settlement
from ticketgate.agents.effects.port import EffectPort
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.agents.effects.rules import COLLISION, NO_ANSWER, confirmation_spent
from ticketgate.agents.effects.states import NO_STATES, States
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.codecs.verdict import Verdict

_PROVIDER = "provider"


@dataclass(frozen=True, slots=True)
class Settled:
    """How a command ended, with the receipt if an effect stands that was verified."""

    verdict: Verdict
    receipt: EffectReceipt | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """One command under way. entry: as it was prepared; confirmation: the digest of the one that it used up."""

    executor: Executor
    ledger: LedgerInMemory
    entry: Entry

    @property
    def confirmation(self) -> str | None:
        """The digest of the confirmation that the command used up, if any."""
        return self.entry.confirmation

    @property
    def objection(self) -> Verdict | None:
        """Why it is not sent: the confirmation that would allow it is used up."""
        spent = confirmation_spent(self.entry)
        return None if spent is None else spent.verdict

    async def stop(self, verdict: Verdict) -> None:
        """Send nothing."""
        objection = Settlement(state=EffectState.REJECTED, verdict=verdict)
        await self.executor.stop(self.entry, objection, token=None)

    async def carry_out(self) -> Settled:
        """Carry the command out and verify it, and send it a second time where the rules allow that. The caller judges
        evidence just before."""
        entry = await self.executor.carry_out(self.entry, token=None)
        if entry.is_open:
            # What is absent is due at once, and has its resend; what is unknown is due later, which never comes here.
            await Reconciler(self.ledger, self.executor, judge_again=None, announce=_to_nobody).run_once()
            entry = await self.ledger.read(entry.key) or entry
        receipt = receipt_of(entry) if entry.state is EffectState.COMMITTED else None
        return Settled(entry.verdict or NO_ANSWER, receipt)


@dataclass(frozen=True, slots=True)
class Run:
    """What the commands of one run share: which confirmations they have used up."""

    used: Used = field(default_factory=Used)

    async def begin(
        self,
        command: Command,
        port: EffectPort,
        confirmations: Sequence[str] = (),
        *,
        states: Mapping[str, States] = NO_STATES,
    ) -> Execution | Settled:
        """Prepare a command, which uses up a confirmation if it needs one."""
        # A ledger of its own: a key that was used before meets what stands at the provider.
        ledger = LedgerInMemory(clock=lambda: 0.0, used=self.used)
        executor = Executor(ledger, {_PROVIDER: port}, states=states)
        order = Order(command=command, provider=_PROVIDER, confirmations=tuple(confirmations))
        (prepared,) = await executor.prepare([order], token=None, claimed=0)
        if isinstance(prepared, Collided):  # a fresh ledger has nothing to collide with
            return Settled(COLLISION)
        return Execution(executor, ledger, prepared)


async def _to_nobody(receipts: Sequence[EffectReceipt]) -> None:
    """Nobody rebuilds this ledger."""
