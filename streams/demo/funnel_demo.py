"""The funnel's demo: a broker, a Redis, a bank and a worker on this machine, proposed payments through them, and what
came of each.

Promise: `run_funnel_demo` tells of every case that it proposed, by what the topics and the bank's own book say, and
leaves nothing running and no data behind. See ARCHITECTURE.md#a-proposal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime

from ticketgate.agents.plural import counted
from ticketgate.agents.workbench.funnel.cases import Expectation
from ticketgate.codecs.records.receipt import EffectState
from ticketgate.codecs.verdict import Status
from ticketgate.streams.config.settings import Guarantee, Settings
from ticketgate.streams.demo.funnel_cases import DemoCase, mended, script_of, seed_cases, write_funnel_file
from ticketgate.streams.demo.funnel_seen import Outcome, look, outcome_of
from ticketgate.streams.demo.ground import OUTCOME_TIMEOUT_S, POLL_S, open_ground, running, send
from ticketgate.streams.demo.worker import GateWorker, has_taken
from ticketgate.streams.parts.bank_process import BankProcess, Book

ROLES = "propose,effects"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of one attempt. unmet: how it is not what was expected."""

    case: DemoCase
    outcome: Outcome
    unmet: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FunnelDemoResult:
    """All attempts in the order of proposing; the bank's book at the end."""

    results: tuple[CaseResult, ...]
    book: Book
    guarantee: Guarantee
    broker: str
    seconds: float

    def count(self, went_to: str) -> int:
        """How many decisions went there."""
        return sum(each.outcome.went_to == went_to for each in self.results)

    @property
    def effects(self) -> int:
        """How many effects the dispatched cases asked for."""
        return sum(each.outcome.asks_for_effect for each in self.results)

    @property
    def bank_faults(self) -> tuple[str, ...]:
        """Each key under which not exactly one transfer stands, of those that a committed effect or the bank names."""
        effects = (each.outcome.effect for each in self.results)
        committed = {
            each.idempotency_key for each in effects if each and each.effect_state is EffectState.COMMITTED
        }
        return tuple(
            f"{counted(len(standing), 'transfer')} under the key {key}"
            for key in sorted(committed | set(self.book.transfers))
            if len(standing := self.book.transfers.get(key, ())) != 1
        )

    @property
    def is_as_expected(self) -> bool:
        """Whether each case came out as it must, and the bank has one transfer a key."""
        return not self.bank_faults and not any(each.unmet for each in self.results)


async def run_funnel_demo(*, say: Callable[[str], None], advance: Callable[[int], None]) -> FunnelDemoResult:
    """Start the parts, propose the cases one after the other, and account for each. `say` gets a line for people at
    each step, `advance` how many more are done. Raises `PartMissing`, `PartFailed`, and what start-up refuses.
    """
    cases = seed_cases(datetime.now(UTC))
    async with AsyncExitStack() as stack:
        ground = await stack.enter_async_context(open_ground(say))
        settings = ground.settings
        say(f"starting a bank of its own and a worker with the roles {ROLES}")
        bank = BankProcess(script_of(cases))
        await stack.enter_async_context(running(bank))
        funnel = write_funnel_file(bank.folder, bank.url)
        worker = GateWorker({**ground.given, "roles": ROLES, "funnel": str(funnel)})
        await stack.enter_async_context(running(worker))
        say(
            f"proposing {counted(len(cases), 'case')} on the topic {settings.topic_proposals}, one after the other"
        )
        started = time.monotonic()
        proposer = _Proposer(settings, bank, advance, deadline=started + OUTCOME_TIMEOUT_S)
        for case in cases:
            await proposer.propose(case)
        for case in await proposer.next_attempts():
            say(f"proposing {case.name}: mended as the topic {settings.topic_repairs} says")
            await proposer.propose(case)
        seconds = time.monotonic() - started
        # What the effects' lanes send later would be missing from the bank's book.
        dispatched = sum(each.outcome.went_to == settings.topic_dispatch for each in await proposer.results())
        await has_taken(worker, settings.topic_dispatch, dispatched)
        results = await proposer.results()
        book = await asyncio.to_thread(bank.book)
    return FunnelDemoResult(results, book, ground.guarantee, ground.broker, seconds)


class _Proposer:
    """Proposes one case after the other: each may meet what the one before it left under a key."""

    def __init__(
        self, settings: Settings, bank: BankProcess, advance: Callable[[int], None], *, deadline: float
    ) -> None:
        self._settings = settings
        self._bank = bank
        self._advance = advance
        self._deadline = deadline
        # The case, and how many transfers stood once it was told of.
        self._proposed: list[tuple[DemoCase, int]] = []

    async def propose(self, case: DemoCase) -> None:
        """Send one, and wait until all of it is told, or the deadline has passed."""
        await send(self._settings, self._settings.topic_proposals, [case.record()])
        while not outcome_of(case.attempt, await look(self._settings)).is_told:
            if time.monotonic() > self._deadline:
                break
            await asyncio.sleep(POLL_S)
        self._proposed.append((case, (await asyncio.to_thread(self._bank.book)).count))
        self._advance(1)

    async def next_attempts(self) -> list[DemoCase]:
        """What `repairs` lets mend of the cases proposed so far, mended."""
        seen = await look(self._settings)
        decisions = [(case, outcome_of(case.attempt, seen).decision) for case, _ in self._proposed]
        return [
            mended(case, decision.repair)
            for case, decision in decisions
            if decision is not None and decision.verdict.status is Status.REPAIR and decision.repair
        ]

    async def results(self) -> tuple[CaseResult, ...]:
        """What came of each, by all that the topics hold now."""
        seen = await look(self._settings)
        found: list[CaseResult] = []
        for case, committed in self._proposed:
            outcome = outcome_of(case.attempt, seen)
            found.append(CaseResult(case, outcome, tuple(unmet_by(case.expect, outcome, committed))))
        return tuple(found)


def unmet_by(expect: Expectation, outcome: Outcome, committed: int) -> Iterator[str]:
    """How an outcome is not what was expected. committed: the transfers at the bank after it."""
    if not outcome.is_told:
        yield "not accounted for"
    if outcome.decisions > 1:
        yield f"decided {outcome.decisions} times"
    verdict, effect, decision = outcome.verdict, outcome.effect, outcome.decision
    repair = None if decision is None else decision.repair
    observed: Mapping[str, object] = {
        "status": None if verdict is None else verdict.status,
        "stage": None if verdict is None else verdict.stage,
        "reasons": None if verdict is None else verdict.reasons,
        "receipt": None if effect is None else effect.status,
        "provider_id": None if effect is None else effect.provider_id,
        "stop_reason": None if repair is None else repair.stop_reason,
        "committed": committed,
    }
    yield from expect.unmet(observed)
