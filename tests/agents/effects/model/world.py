"""A provider, a network, a ledger that may be emptied, a broker's topic and a group's offset: one effect's world.

Every call that a process makes of it stops twice, before it happens and before its reply is had; the machine chooses
who goes on, and what is lost. One effect, `k1`, of one dispatched record, at offset 0, which a person confirmed once;
and a rival, `k2`, of another partition, that the same confirmation would allow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory, Used, _Row
from ticketgate.agents.effects.ledger import Collided, Command, Entry, Moved, Open, Order, Settlement
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
from ticketgate.agents.effects.rules import NO_ANSWER, STANDS
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState, EffectStatus
from ticketgate.codecs.verdict import Verdict
from ticketgate.store.ledger.ledger_rebuild import STEPS_LOST_AT_MOST, is_still_open
from ticketgate.store.tokens import LaneToken, Superseded

SETTLE_S = 30.0
KEY = "k1"
RIVAL = "k2"
CONFIRMATION = "c1"


class Fenced(Exception):
    """Another lane has opened the partition since."""


class Refusal(Exception):
    """The marks say that the ledger lost something."""


@dataclass
class Stop:
    """Where a process waits for the machine. Awaiting it gives what the machine sends. `write`: what it is about to
    write to Redis, which a network may hold."""

    what: str
    write: Callable[[], Coroutine[Any, Any, object]] | None = None

    def __await__(self) -> Generator[Stop, None, None]:
        yield self


@dataclass
class Request:
    """A request on the network. `is_answered`: the provider has dealt with it."""

    command: Command
    answer: ExecuteResult | None = None
    is_lost: bool = False


@dataclass(frozen=True)
class Rules:
    """What mutants break, one each."""

    guards_by_token: bool = True
    announces_before_sending: bool = True
    commits_position: bool = True
    compares: bool = True
    restores_prepared_as_unknown: bool = True
    restores_sends: bool = True
    counts_on_from_the_time: bool = True
    restores_confirmations: bool = True
    restores_rivals_apart: bool = True
    confirms_once: bool = True


@dataclass
class World:
    """What outlives a process."""

    is_idempotent_by_key: bool = True
    rules: Rules = field(default_factory=Rules)
    now: float = 1_000_000.0
    transfers: list[Command] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    sends: int = 0
    # When the first sending began in the ledger, and when a read-back last found nothing.
    begun_at: float | None = None
    nothing_at: float | None = None
    # Whether, when it was sent again, nothing had been found later than the settle time.
    was_absent: bool = False
    is_readable: bool = True
    receipts: list[EffectReceipt] = field(default_factory=list)
    committed: int | None = None
    fence: int = 0
    token: str = ""
    claimed: int | None = None
    held: list[Callable[[], Coroutine[Any, Any, object]]] = field(default_factory=list)
    """Writes that the network has taken and not yet brought. Redis gets them once: its client repeats nothing."""
    rival: Entry | None = None
    """The effect that had the confirmation instead, carried out and told of."""
    ledger: LedgerInMemory = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = self._new_ledger()

    def _new_ledger(self) -> LedgerInMemory:
        used = Used() if self.rules.confirms_once else _Lavish()
        return LedgerInMemory(clock=lambda: self.now, used=used)

    # --- the provider and the network ---

    def deliver(self, request: Request) -> None:
        """The provider deals with a request, maybe once more than it was sent."""
        is_replay = bool(self.transfers)
        if not is_replay or not self.is_idempotent_by_key:
            self.transfers.append(request.command)
        request.answer = Executed("tr_1", request.command.arguments, is_replay)

    # --- the ledger's Redis and its rebuilding ---

    def bring(self) -> None:
        """What was held first comes. Nobody hears how it is answered."""
        with contextlib.suppress(Superseded):
            self._now_done(self.held.pop(0)())

    def empty(self) -> None:
        """Redis forgets everything: entries, tokens, marks."""
        self.ledger = self._new_ledger()
        self.token, self.claimed = "", None
        self.held.clear()  # as connections do, they end with the server that they went to

    def rebuild(self) -> None:
        """As ledger_rebuild.py does, with the record at hand. It takes its time, as starting a process does."""
        self.now += 1
        last = self.last_receipt()
        if last is not None and KEY not in self.ledger._rows:
            self._restore(last)
        if self.rival is not None and RIVAL not in self.ledger._rows:
            self._put(self.rival)
        if self.committed is not None:
            self.claimed = max(self.claimed or 0, self.committed)

    def last_receipt(self) -> EffectReceipt | None:
        """As streams/operations/ledger_rebuild.py finds it: who announced a second sending and died has not sent, so
        another step
        of that sequence holds."""
        told = [each for each in self.receipts if each.sequence > 0]
        return max(
            told,
            key=lambda each: (each.sequence, each.effect_state is not EffectState.PREPARED),
            default=None,
        )

    def _restore(self, last: EffectReceipt) -> None:
        was_prepared = last.effect_state is EffectState.PREPARED
        state = last.effect_state
        if was_prepared and self.rules.restores_prepared_as_unknown:
            state = EffectState.UNKNOWN
        sends = max(1, last.sends) if state is EffectState.UNKNOWN else last.sends
        sequence = last.sequence
        if is_still_open(last):
            now_ms = round(self.now * 1000) if self.rules.counts_on_from_the_time else 0
            sequence = max(last.sequence + STEPS_LOST_AT_MOST, now_ms)
        entry = Entry(
            order=order(),
            state=state,
            sequence=sequence,
            sends=sends if self.rules.restores_sends else min(1, sends),
            age_s=0.0,
            at=self.ledger._now(),
            provider_id=last.provider_id,
            observed=last.state or None,
            status=last.status,
            verdict=last.verdict or NO_ANSWER,
            settled_by=last.settled_by,
            judged_again=last.judged_again,
            confirmation=last.confirmation,
        )
        self._put(entry)
        if entry.is_open:
            self.ledger._due[KEY] = self.ledger._since[KEY] = self.now

    def _put(self, entry: Entry) -> None:
        row = self.ledger._rows[entry.key] = _Row(entry, sent_at=self.now)
        if entry.confirmation is not None and self.rules.restores_confirmations and not entry.is_undone:
            self._hold(entry.confirmation, row)

    def _hold(self, confirmation: str, row: _Row) -> None:
        """As the rebuild's script does where another effect has the confirmation."""
        holders = self.ledger._used._holders
        holder = holders.setdefault(confirmation, row)
        if holder is row or not self.rules.restores_rivals_apart:
            return
        if holder.entry.state is EffectState.PREPARED and not holder.entry.sends:
            holder.entry = replace(holder.entry, confirmation=None, spent_by=row.entry.key)
            holders[confirmation] = row
        else:
            for each in (holder, row):
                each.entry = replace(each.entry, is_restored=True)

    def ask_for_the_rival(self) -> None:
        """Another lane asks for the rival, from its opening to its commit, if the confirmation is left to it."""
        if self.is_behind:
            return
        (entry,) = self._now_done(self.ledger.prepare([order(RIVAL)], token=None, claimed=0))
        if not isinstance(entry, Entry) or entry.state is not EffectState.PREPARED or entry.is_unconfirmed:
            return
        sent = self._now_done(self.ledger.begin_send(entry, verdict=NO_ANSWER, token=None, read_back_in_s=0))
        settlement = Settlement(state=EffectState.COMMITTED, verdict=STANDS, status=EffectStatus.CREATED)
        settled = self._now_done(
            self.ledger.settle(
                sent, settlement, token=LaneToken("dispatch", 1, "lane", "rival"), read_back_in_s=0
            )
        )
        assert isinstance(settled, Entry)
        self.rival = settled

    def _now_done(self, writing: Coroutine[Any, Any, Any]) -> Any:
        try:
            writing.send(None)  # nothing is waited for in memory
        except StopIteration as done:
            return done.value
        raise AssertionError("a write that waits")

    @property
    def is_behind(self) -> bool:
        """Whether a partition was committed further than the ledger's marks tell: it lost something."""
        lost_ours = self.committed is not None and (self.claimed is None or self.committed > self.claimed)
        return lost_ours or (self.rival is not None and RIVAL not in self.ledger._rows)

    def is_absent(self) -> bool:
        """Whether nothing was found later than the settle time after the first sending began."""
        return (
            self.nothing_at is not None
            and self.begun_at is not None
            and self.nothing_at >= self.begun_at + SETTLE_S
        )

    def entry(self) -> Entry | None:
        """The effect as the ledger has it."""
        row = self.ledger._rows.get(KEY)
        return None if row is None else self.ledger._shown(row)


class _Lavish(Used):
    """Gives a confirmation to whoever asks."""

    def confirm(self, row: _Row, order: Order) -> None:
        row.entry = replace(row.entry, confirmation=CONFIRMATION)


def order(key: str = KEY) -> Order:
    """The one effect, or its rival."""
    command = Command("pay", {"amount_gbp": "600.00"}, key)
    return Order(command=command, provider="bank", confirmations=(CONFIRMATION,))


class StoppingLedger:
    """The world's ledger as a process sees it: each call stops before and after, and tokens guard it."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def prepare(
        self, orders: Sequence[Order], *, token: LaneToken | None, claimed: int
    ) -> tuple[Entry | Collided, ...]:
        async def write() -> tuple[Entry | Collided, ...]:
            self._guard(token)
            found = await self._world.ledger.prepare(orders, token=token, claimed=claimed)
            self._world.claimed = max(self._world.claimed or 0, claimed)
            return found

        await Stop("before prepare", write)
        found = await write()
        await Stop("after prepare")
        return found

    async def begin_send(
        self, entry: Entry, *, verdict: Verdict, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        async def write() -> Entry | Moved:
            self._guard(token)
            written = await self._world.ledger.begin_send(
                self._seen(entry), verdict=verdict, token=token, read_back_in_s=read_back_in_s
            )
            if isinstance(written, Entry) and self._world.begun_at is None:
                self._world.begun_at = self._world.now
            return written

        await Stop("before begin_send", write)
        written = await write()
        await Stop("after begin_send")
        return written

    async def settle(
        self, entry: Entry, settlement: Settlement, *, token: LaneToken | None, read_back_in_s: float
    ) -> Entry | Moved:
        async def write() -> Entry | Moved:
            self._guard(token)
            return await self._world.ledger.settle(
                entry, settlement, token=token, read_back_in_s=read_back_in_s
            )

        await Stop("before settle", write)
        written = await write()
        await Stop("after settle")
        return written

    async def tell(self, entry: Entry) -> None:
        await Stop("before tell")
        await self._world.ledger.tell(entry)

    async def hold(self, entry: Entry, *, token: LaneToken | None) -> None:
        await Stop("before hold")
        self._guard(token)
        await self._world.ledger.hold(entry, token=token)

    async def take_due(self, limit: int) -> tuple[Entry, ...]:
        await Stop("before take_due")
        found = await self._world.ledger.take_due(limit)
        await Stop("after take_due")
        return found

    async def read(self, key: str) -> Entry | None:
        return await self._world.ledger.read(key)

    async def held(self, limit: int) -> tuple[Entry, ...]:
        return await self._world.ledger.held(limit)

    async def count_open(self) -> Open:
        return await self._world.ledger.count_open()

    def _guard(self, token: LaneToken | None) -> None:
        if self._world.rules.guards_by_token and token is not None and token.value != self._world.token:
            raise Superseded

    def _seen(self, entry: Entry) -> Entry:
        """Without comparing, whoever comes writes over what stands."""
        stands = self._world.entry()
        if self._world.rules.compares or stands is None:
            return entry
        row = self._world.ledger._rows[KEY]
        row.entry = replace(row.entry, state=entry.state, sequence=entry.sequence, sends=entry.sends)
        return entry


class StoppingBank:
    """The provider as a process sees it."""

    settle_s = SETTLE_S

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def is_idempotent_by_key(self) -> bool:
        return self._world.is_idempotent_by_key

    async def prepare(self, command: Command) -> Prepared | Refused:
        return Prepared(command)

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        await Stop("before it leaves")
        request = Request(prepared.command)
        self._world.requests.append(request)
        self._world.sends += 1
        self._world.was_absent = self._world.is_absent()
        await Stop("after it left")
        # Whether an answer came is the network's doing until here.
        return TimedOut() if request.answer is None or request.is_lost else request.answer

    async def read_back(self, key: str) -> ReadBackResult:
        await Stop("before read_back")
        if not self._world.is_readable:
            return CannotRead()
        found = self._world.transfers[:1]
        if not found:
            self._world.nothing_at = self._world.now
        await Stop("after read_back")
        return Found("tr_1", found[0].arguments) if found else NotFound()


class Process:
    """A lane or a reconciler: a coroutine that the machine drives from stop to stop."""

    def __init__(self, name: str, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self.name = name
        self._coroutine = work()
        self.is_alive = True
        self.at = "start"
        self.error: Exception | None = None
        self.write: Callable[[], Coroutine[Any, Any, object]] | None = None

    def go(self, stops: int = 1) -> None:
        """Go on to the next stop, or the one after that."""
        for _ in range(stops):
            if not self.is_alive:
                return
            try:
                stop = self._coroutine.send(None)
                self.at, self.write = stop.what, stop.write
            except StopIteration:
                self.is_alive = False
            except Exception as err:  # noqa: BLE001 - what ends a process, a worker would start it anew after
                self.is_alive, self.error = False, err

    def go_to(self, what: str, *, most: int = 40) -> None:
        """Go on until it stops there, or ends."""
        for _ in range(most):
            if not self.is_alive or self.at == what:
                return
            self.go()

    def kill(self) -> None:
        """End it where it stands."""
        self.is_alive = False
        self._coroutine.close()
