"""Builders and a provider shaped like its faults, for the tests of effects."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.ledger import Command, EffectLedger, Entry, Order
from ticketgate.agents.effects.port import (
    CannotRead,
    Executed,
    ExecuteResult,
    Found,
    NotFound,
    Prepared,
    ReadBackResult,
    Refused,
    TimedOut,
)
from ticketgate.agents.effects.reconcile import JudgeAgain, Reconciler
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.store.tokens import LaneToken

# What stands for a lane in memory; on Redis a real one is taken.
LANE = LaneToken("dispatch", 0, "lane", "token")
ARGUMENTS = {"payee_id": "supplier_7", "amount_gbp": "600.00"}


def order(key: str = "k1", *, offset: int = 0, proposal: Any = None, **changed: Any) -> Order:
    """The order of a payment, with the arguments that a test changes."""
    return Order(
        command=Command("pay", {**ARGUMENTS, **changed}, key),
        provider="bank",
        subject="T-1",
        source=Coordinate("dispatch", 0, offset),
        proposal=proposal,
    )


class Clock:
    """Time that passes when a test says so; seconds since 1970."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float) -> None:
        self.now += seconds


Answer = ExecuteResult | ReadBackResult | BaseException | str


@dataclass
class Bank:
    """A provider of fixed answers: what is lined up comes first, then it does what it is asked.

    An execution's answer may be `lost_after` (it commits, and times out), `lost_before`, a value to answer with, or an
    exception to raise. A reading's may be a value or an exception.
    """

    is_idempotent_by_key: bool = True
    settle_s: float = 0.0
    answers: deque[Answer] = field(default_factory=deque)
    readings: deque[Answer] = field(default_factory=deque)
    transfers: list[Command] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    reads: int = 0
    refuses_to_prepare: bool = False

    async def prepare(self, command: Command) -> Prepared | Refused:
        return Refused("no such key") if self.refuses_to_prepare else Prepared(command)

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        command = prepared.command
        self.sent.append(command.key)
        answer = self.answers.popleft() if self.answers else None
        if isinstance(answer, BaseException):
            raise answer
        if answer == "lost_before":
            return TimedOut()
        if answer is not None and not isinstance(answer, str):
            return answer  # type: ignore[return-value]
        is_replay = any(each.key == command.key for each in self.transfers)
        if not is_replay or not self.is_idempotent_by_key:
            self.transfers.append(command)
        if answer == "lost_after":
            return TimedOut()
        found = self.standing(command.key)
        assert found is not None
        return Executed(found.provider_id, found.state, is_replay)

    async def read_back(self, key: str) -> ReadBackResult:
        self.reads += 1
        answer = self.readings.popleft() if self.readings else None
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, (Found, NotFound, CannotRead)):
            return answer
        return self.standing(key) or NotFound()

    def standing(self, key: str) -> Found | None:
        """What stands under a key."""
        for place, command in enumerate(self.transfers):
            if command.key == key:
                return Found(f"tr_{place}", {**command.arguments, "status": "booked"})
        return None


class Scene:
    """A bank, a ledger in memory whose time the test lets pass, an executor and a reconciler."""

    def __init__(self, bank: Bank | None = None, *, judge_again: JudgeAgain | None = None) -> None:
        self.clock = Clock()
        self.bank = Bank() if bank is None else bank
        self.ledger: EffectLedger = LedgerInMemory(clock=self.clock)
        self.executor = Executor(self.ledger, {"bank": self.bank}, clock=self.clock)
        self.told: list[EffectReceipt] = []
        self.reconciler = Reconciler(
            self.ledger, self.executor, judge_again=judge_again, announce=self.announce
        )

    async def announce(self, receipts: Sequence[EffectReceipt]) -> None:
        self.told += receipts

    async def carry_out(self, asked: Order | None = None) -> Entry:
        """What a lane does with one effect."""
        (prepared,) = await self.executor.prepare([asked or order()], token=LANE, claimed=1)
        assert isinstance(prepared, Entry)
        return await self.executor.carry_out(prepared, token=LANE)

    async def reconcile(self, *, after_s: float = 0.0) -> Entry:
        """Let time pass, look at what is due, and give the one effect."""
        self.clock.passes(after_s)
        await self.reconciler.run_once()
        entry = await self.ledger.read("k1")
        assert entry is not None
        return entry

    async def reconcile_often(self, times: int) -> Entry:
        """As `reconcile`, each time after more than the longest pause."""
        for _ in range(times - 1):
            await self.reconcile(after_s=700)
        return await self.reconcile(after_s=700)


def said(entry: Entry) -> tuple[EffectState, str, tuple[str, ...]]:
    """State, stage and reasons."""
    assert entry.verdict is not None
    return entry.state, str(entry.verdict.stage), entry.verdict.reasons
