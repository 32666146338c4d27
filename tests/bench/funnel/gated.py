"""The funnel itself behind the toy model: its judging, its second look, its executor and its reconciler.

Nothing here decides anything: what a call may do is said by `ticketgate.agents.funnel` and `ticketgate.agents.effects`,
as in a worker, with a ledger in memory and a clock that is moved by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.ledger import Collided, Command, Entry, Order, Settlement
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.agents.funnel.evidence import Evidence
from ticketgate.agents.funnel.judge import Judged, judge, judge_again
from ticketgate.agents.funnel.repair import Attempt
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.codecs.verdict import Stage, Status, Verdict

from .provider import Provider
from .request_set import AT, Asked
from .results import Done, Result, Told
from .variants import Variant

# Looks of the reconciler, with its back-off some hours of the ledger's clock.
MOST_ROUNDS = 12
_PROVIDER = "bank"


@dataclass(slots=True)
class Gated:
    """The funnel for one request."""

    asked: Asked
    variant: Variant
    provider: Provider
    result: Result
    now_s: float = 0.0
    attempts: list[Attempt] = field(default_factory=list)

    def judge(self, text: str) -> Judged:
        """Judge one attempt on the evidence as it stands first."""
        started = time.perf_counter()
        judged = judge(
            self._proposal(text, len(self.attempts) + 1),
            catalogue=self.variant.catalogue,
            evidence=self._evidence(0),
            at=AT,
            namespace="bench",
            committed=tuple(self.attempts),
            observe=self._observe,
        )
        self.result.work.checking_s += time.perf_counter() - started
        self.result.work.look_ups += 2
        permitted = () if judged.repair is None else judged.repair.permitted
        self.attempts.append(Attempt(len(self.attempts) + 1, text, judged.verdict, permitted))
        return judged

    async def finish(self, text: str, judged: Judged) -> None:
        """Do what the last verdict lets be done."""
        result, verdict = self.result, judged.verdict
        result.stage = str(verdict.stage)
        if verdict.status is not Status.ACCEPT:
            result.told = Told.ABSTAINED if verdict.stage is Stage.ABSTENTION else Told.STOPPED
        elif verdict.stage is Stage.ABSTENTION:
            result.told = Told.ABSTAINED
        elif judged.command is None:
            result.has_command, result.told = True, Told.DONE
            arguments = {name: str(value) for name, value in judged.decision.arguments.items()}
            result.quoted = Done("quote", arguments)
        else:
            await self._act(text, judged.command, judged.confirmations)

    async def _act(self, text: str, command: Command, confirmations: tuple[str, ...]) -> None:
        result = self.result
        again = self._judge_again(text, confirmations)
        if again is not None:
            result.told, result.stage = Told.STOPPED, str(again.stage)
            return
        result.has_command = True
        started = time.perf_counter()
        ledger = LedgerInMemory(clock=lambda: self.now_s)
        executor = Executor(ledger, {_PROVIDER: self.provider}, clock=lambda: self.now_s)
        order = Order(
            command=command,
            provider=_PROVIDER,
            subject=self.asked.id,
            proposal={},
            confirmations=confirmations,
        )
        (entry,) = await executor.prepare([order], token=None, claimed=0)
        if isinstance(entry, Collided):
            raise RuntimeError("a fresh ledger has nothing to collide with")
        entry = await executor.carry_out(entry, token=None)
        if entry.is_open:
            result.was_unknown = True
            entry = await self._reconcile(text, ledger, executor, entry)
        result.work.acting_s += time.perf_counter() - started
        result.stage = "" if entry.verdict is None else str(entry.verdict.stage)
        if entry.state is EffectState.COMMITTED:
            result.told = Told.DONE
        else:
            result.told = Told.HELD if entry.is_open else Told.STOPPED

    async def _reconcile(self, text: str, ledger: LedgerInMemory, executor: Executor, entry: Entry) -> Entry:
        async def again(entry: Entry) -> Settlement | None:
            verdict = self._judge_again(text, entry.order.confirmations)
            return None if verdict is None else Settlement(state=EffectState.REJECTED, verdict=verdict)

        reconciler = Reconciler(ledger, executor, judge_again=again, announce=_to_nobody)
        for rounds in range(MOST_ROUNDS):
            self.now_s += 2.0 * 2**rounds
            await reconciler.run_once()
            entry = await ledger.read(entry.key) or entry
            if not entry.is_open:
                self.result.unknown_s = self.now_s
                break
        return entry

    def _judge_again(self, text: str, confirmations: tuple[str, ...]) -> Verdict | None:
        started = time.perf_counter()
        verdict = judge_again(
            self._proposal(text, len(self.attempts)),
            catalogue=self.variant.catalogue,
            evidence=self._evidence(1),
            at=AT,
            # Its own, which no other request of the set could use up.
            confirmation=confirmations[0] if confirmations else None,
            observe=self._observe,
        )
        self.result.work.checking_s += time.perf_counter() - started
        self.result.work.look_ups += 2
        return verdict

    def _proposal(self, text: str, number: int) -> Proposal:
        return Proposal(case_id=self.asked.id, attempt=number, call=text, request=self.asked.request)

    def _evidence(self, look: int) -> Evidence:
        authority = self.variant.authority(self.asked.authority[look])
        return Evidence(authority=authority, world=self.asked.world[look])

    def _observe(self, stage: Stage) -> Callable[[Verdict | None], None]:
        self.result.work.gates += 1
        return _seen


def _seen(verdict: Verdict | None) -> None:
    """The gate is counted when it begins."""


async def _to_nobody(receipts: Sequence[EffectReceipt]) -> None:
    """Nobody rebuilds this ledger."""
