"""The machine: Hypothesis chooses who goes on and what is lost or forgotten; after each rule the promises hold."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.codecs.records.receipt import EffectState

from .processes import STOPS, lane, reconciler
from .world import SETTLE_S, Process, Request, Rules, World

MOST_PROCESSES = 5
choices = st.integers(0, MOST_PROCESSES - 1)
stops = st.sampled_from(STOPS)


class Violated(AssertionError):
    """A promise did not hold."""


class Effects(RuleBasedStateMachine):
    """Lanes and reconcilers on one effect, and a rival for its confirmation; killed and paused anywhere; requests and
    answers lost, late, repeated; a ledger that is emptied and rebuilt."""

    is_idempotent_by_key: ClassVar[bool] = True
    protocol: ClassVar[Rules] = Rules()
    executor_type: ClassVar[type[Executor]] = Executor
    reconciler_type: ClassVar[type[Reconciler]] = Reconciler

    def __init__(self) -> None:
        super().__init__()
        self.world = World(is_idempotent_by_key=self.is_idempotent_by_key, rules=self.protocol)
        self.started: list[Process] = []
        self.is_broken = False

    # --- processes ---

    @property
    def alive(self) -> list[Process]:
        """Who may go on, zombies too, the oldest first."""
        return [each for each in self.started if each.is_alive]

    @property
    def undecided(self) -> list[Request]:
        """Requests on the network."""
        return [each for each in self.world.requests if each.answer is None and not each.is_lost]

    @precondition(lambda self: len(self.alive) < MOST_PROCESSES)
    @rule(stop=stops)
    def a_lane_opens(self, stop: str) -> None:
        """A worker comes, or a rebalance: what served the partition is a zombie now."""
        self._start(lane(self.world, len(self.started) + 1, self.executor_type)).go_to(stop)

    @precondition(lambda self: len(self.alive) < MOST_PROCESSES)
    @rule(stop=stops)
    def a_reconciler_looks(self, stop: str) -> None:
        made = reconciler(self.world, len(self.started) + 1, self.executor_type, self.reconciler_type)
        self._start(made).go_to(stop)

    @precondition(lambda self: self.alive)
    @rule(which=choices, count=st.integers(1, 4))
    def a_process_goes_on(self, which: int, count: int) -> None:
        self._one(which).go(count)

    @precondition(lambda self: self.alive)
    @rule(which=choices, stop=stops)
    def a_process_goes_on_to(self, which: int, stop: str) -> None:
        process = self._one(which)
        process.go()
        process.go_to(stop)

    @precondition(lambda self: self.alive)
    @rule(which=choices)
    def a_process_is_killed(self, which: int) -> None:
        self._one(which).kill()

    @precondition(lambda self: any(each.write for each in self.alive))
    @rule(which=choices)
    def the_network_holds_a_write(self, which: int) -> None:
        """The process has no answer of Redis and gives up: a lane begins anew, a reconciler looks again later."""
        writing = [each for each in self.alive if each.write is not None]
        process = writing[which % len(writing)]
        assert process.write is not None
        self.world.held.append(process.write)
        process.kill()

    @precondition(lambda self: self.world.held)
    @rule()
    def a_held_write_comes(self) -> None:
        self.world.bring()

    def _one(self, which: int) -> Process:
        return self.alive[which % len(self.alive)]

    def _start(self, process: Process) -> Process:
        self.started.append(process)
        process.go()
        return process

    # --- the provider, the network and time ---

    @precondition(lambda self: self.undecided)
    @rule(which=choices, is_answer_lost=st.booleans())
    def a_request_arrives(self, which: int, is_answer_lost: bool) -> None:
        request = self.undecided[which % len(self.undecided)]
        self.world.deliver(request)
        request.is_lost = is_answer_lost

    @precondition(lambda self: self.undecided)
    @rule(which=choices)
    def a_request_is_lost(self, which: int) -> None:
        self.undecided[which % len(self.undecided)].is_lost = True

    @precondition(lambda self: self.is_idempotent_by_key and self.world.requests)
    @rule(which=choices)
    def a_request_arrives_again(self, which: int) -> None:
        self.world.deliver(self.world.requests[which % len(self.world.requests)])

    @rule(seconds=st.sampled_from((3.0, SETTLE_S + 1, 700.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(is_readable=st.booleans())
    def reading_back_breaks_or_heals(self, is_readable: bool) -> None:
        self.world.is_readable = is_readable

    # --- Redis ---

    @rule()
    def redis_is_emptied(self) -> None:
        self.world.empty()

    @rule()
    def the_ledger_is_rebuilt(self) -> None:
        """While the group has no members: the newest lane is one, zombies are none."""
        lanes = [each for each in self.alive if each.name.startswith("lane")]
        if lanes:
            lanes[-1].kill()
        self.world.rebuild()

    @rule()
    def a_rival_asks_for_the_confirmation(self) -> None:
        self.world.ask_for_the_rival()

    # --- what holds ---

    @invariant()
    def promises_hold(self) -> None:
        self.is_broken = True
        world = self.world
        if self.is_idempotent_by_key:
            _require(len(world.transfers) <= 1, f"{len(world.transfers)} transfers")
            _require(world.sends <= 2, f"sent {world.sends} times")
        else:
            _require(world.sends <= 1, f"sent {world.sends} times to a provider that is not idempotent")
        if world.sends == 2:
            _require(world.was_absent, "sent again without having found nothing after the settle time")
        _require(world.rival is None or not world.sends, "one confirmation allowed two effects")
        entry = world.entry()
        if entry is not None and entry.state is EffectState.COMMITTED:
            _require(bool(world.transfers), "committed, and nothing stands")
        _require(
            not any(each.effect_state is EffectState.COMMITTED for each in world.receipts)
            or bool(world.transfers),
            "a receipt tells of what does not stand",
        )
        self.is_broken = False

    def teardown(self) -> None:
        if not self.is_broken:
            self._come_to_rest()

    def _come_to_rest(self) -> None:
        """All heals: what was sent arrives, zombies end, the ledger is rebuilt, lanes and reconcilers run through."""
        world = self.world
        world.is_readable = True
        for process in self.alive:
            process.go_to("nowhere", most=200)
            process.kill()
        for request in self.undecided:
            world.deliver(request)
        while world.held:
            world.bring()
        self.promises_hold()
        world.rebuild()
        for _ in range(3):
            self._start(lane(world, len(self.started) + 1, self.executor_type)).go_to("nowhere", most=200)
            self._answer_all()
        for _ in range(12):
            world.now += 700
            made = reconciler(world, len(self.started) + 1, self.executor_type, self.reconciler_type)
            self._start(made)
            while made.is_alive:
                made.go()
                self._answer_all()
            self.promises_hold()
        entry = world.entry()
        _require(world.committed == 1, f"the record was not committed: {[e.error for e in self.started]}")
        _require(entry is not None and entry.state is not EffectState.PREPARED, "the effect was forgotten")
        assert entry is not None
        _require(
            entry.state is EffectState.COMMITTED
            if world.transfers
            else entry.is_open or (entry.is_stopped and world.rival is not None),
            f"{len(world.transfers)} transfers, and the effect is {entry.state}: neither settled nor held",
        )
        told = world.last_receipt()
        _require(told is not None, "nothing was told")
        assert told is not None
        _require(
            told.effect_state is entry.state, f"the last receipt says {told.effect_state}, not {entry.state}"
        )

    def _answer_all(self) -> None:
        for request in self.undecided:
            self.world.deliver(request)


def _require(condition: bool, said: str) -> None:
    if not condition:
        raise Violated(said)


class EffectsAtAPlainProvider(Effects):
    """The same, with a provider that is not idempotent by key."""

    is_idempotent_by_key = False
