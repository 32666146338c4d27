"""However settlers, policies, lifetimes, crashes and losses fall, a ticket is settled once; and each rule is needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from .invariants import Violated
from .lane_model import Lane
from .machine import MOST_RECORDS, Deliveries, partitions
from .settling import LIFETIME, Office, Rules, SettleLane, lacking
from .world import TOPIC_PARTITIONS

MOST_EFFECTS = 400
keys = st.sampled_from("KKL")


class Settlements(Deliveries):
    """Two partitions of settlements, with all that happens to lanes, and people beside them."""

    kept: ClassVar[Rules] = Rules()

    def __init__(self) -> None:
        super().__init__()
        self.office = Office(self.world)

    # --- what is sent ---

    @initialize(first=st.lists(keys, min_size=1, max_size=2, unique=True))
    def upstream_began(self, first: list[str]) -> None:  # type: ignore[override]
        for key in first:
            self.office.ticket_comes(key)

    @precondition(lambda self: not self.is_lost and not self.world.redis.is_foreign)
    @rule(key=keys)
    def upstream_sends(self, key: str) -> None:  # type: ignore[override]
        """A ticket, perhaps one that was sent before."""
        self.office.ticket_comes(key)

    @precondition(lambda self: sum(map(len, self.world.broker.logs)) < MOST_RECORDS)
    @rule(partition=partitions, key=keys, rejects=st.booleans())
    def somebody_settles(self, partition: int, key: str, rejects: bool) -> None:
        self.office.send(partition, key, rejects=rejects)

    @precondition(lambda self: self.office.decided and sum(map(len, self.world.broker.logs)) < MOST_RECORDS)
    @rule(partition=partitions, which=st.integers(0, 3))
    def somebody_settles_what_was_seen_long_ago(self, partition: int, which: int) -> None:
        key, at, _ = self.office.decided[which % len(self.office.decided)]
        self.office.send(partition, key, of=at)

    @rule()
    def the_policy_changes(self) -> None:
        self.office.policy = 1 - self.office.policy

    @rule()
    def time_passes(self) -> None:
        """By far more than a batch takes: who was in the midst of one is gone, and what the network held as well."""
        for lane in self.alive:
            if lane._batch is not None:
                lane.kill()
        for partition in range(TOPIC_PARTITIONS):
            self.world.broker.time_out(partition)
        self.world.broker.complete()
        self.world.held.clear()
        invariants_of(self.office)
        self.office.tick()

    # --- losses ---

    is_lost = False

    @rule(lost_writes=st.integers(1, 8))
    def redis_forgets_its_last_writes(self, lost_writes: int) -> None:
        for lane in self.alive:
            lane.kill()
        self.world.restart_redis(lost_writes=lost_writes)
        self.office.loses_writes()

    @rule(lost_writes=st.integers(0, 8))
    def redis_is_replaced(self, lost_writes: int) -> None:
        """Under lanes at work."""
        self.world.replace_redis(lost_writes=lost_writes)
        self.office.loses_writes()

    @rule()
    def redis_is_emptied(self) -> None:
        for lane in self.alive:
            lane.kill()
        self.world.restart_redis(lost_writes=None)
        self.is_lost = True

    @rule()
    def claims_are_rebuilt(self) -> None:
        for lane in self.alive:
            lane.kill()
        self.office.rebuild(self.kept)
        self.is_lost = False

    # --- lanes ---

    def _start(self, partition: int, batch_size: int) -> Lane:
        lane = self._lane_of(partition, number=len(self.started), batch_size=batch_size)
        self.started.append(lane)
        return lane

    def _lane_of(self, partition: int, *, number: int, batch_size: int = 1) -> Lane:
        return SettleLane(
            self.office,
            partition,
            number=number,
            batch_size=batch_size,
            rules=self.kept,
            protocol=self.protocol,
        )

    # --- what holds ---

    @invariant()
    def invariants_hold(self) -> None:
        self.is_broken = True
        invariants_of(self.office)
        self.is_broken = False

    def teardown(self) -> None:
        if self.is_broken:
            return
        while self.world.held:
            self.world.deliver(0)
            invariants_of(self.office)
        if self.is_lost:
            self.claims_are_rebuilt()
        self._drain()
        for zombie in self.alive:
            zombie.go(30)
            zombie.kill()
        self._drain()
        self._all_are_accounted_for()
        for key in (waiting := self.office.open_keys()):
            self.office.send(0, key)
        self._drain()
        if left := set(waiting) & set(self.office.open_keys()):
            raise Violated(f"nobody can settle {left} any more")

    def _drain(self) -> None:
        lanes = [self._lane_of(p, number=-1 - p, batch_size=2) for p in range(TOPIC_PARTITIONS)]
        for _ in range(MOST_EFFECTS):
            for lane in lanes:
                lane.go()
                invariants_of(self.office)
            if "claims_lost" in {lane.refusal for lane in lanes}:
                self.office.rebuild(self.kept)
            if all(lane.is_idle for lane in lanes):
                self.world.broker.complete()
                return
        raise Violated(f"the lanes do not come to rest: {[(lane.step, lane.refusal) for lane in lanes]}")

    def _all_are_accounted_for(self) -> None:
        broker = self.world.broker
        told = {at for each in broker.history for at in each.account}
        for partition, log in enumerate(broker.logs):
            for offset in range(broker.starts[partition], len(log)):
                if (partition, offset) not in told:
                    raise Violated(f"{partition}:{offset} was passed over")


def invariants_of(office: Office) -> None:
    """Those of settlements, and of delivery that no offset is taken twice."""
    office.check()
    accounts = [at for each in office.world.broker.history for at in each.account]
    if len(accounts) != len(set(accounts)):
        raise Violated(f"taken twice: {accounts}")


def machine(rules: Rules) -> type[Settlements]:
    return type("Settlements", (Settlements,), {"kept": rules})


some = settings(
    max_examples=int(os.environ.get("TICKETGATE_EXAMPLES", "200")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
bounded = settings(
    some,
    max_examples=4_000,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
)


def test_a_ticket_is_settled_once() -> None:
    run_state_machine_as_test(machine(Rules()), settings=some)


@pytest.mark.chaos
def test_a_ticket_is_settled_once_however_long() -> None:
    run_state_machine_as_test(machine(Rules()), settings=settings(some, max_examples=10_000))


def test_the_machine_fails_where_the_tickets_own_claim_is_not_asked_for() -> None:
    with pytest.raises(Violated) as violated:
        run_state_machine_as_test(machine(lacking("requires_ticket_claim")), settings=bounded)
    print(violated.value)


# --- what is rare for the machine, as plain examples: each fails without a rule and holds with it ---


class Scene:
    """Lanes that go on to the step that they are told."""

    def __init__(self, rules: Rules) -> None:
        self.machine = machine(rules)()
        self.office = self.machine.office
        self.office.ticket_comes("K")

    def lane(self, partition: int, *, at: str = "") -> Lane:
        lane = self.machine._start(partition, 1)
        if at:
            self.goes(lane, at)
        return lane

    def goes(self, lane: Lane, step: str) -> None:
        assert lane.go_to(step), f"stands at {lane.step}, wanted {step}"
        invariants_of(self.office)

    def drains(self, partition: int) -> Lane:
        lane = self.lane(partition)
        for _ in range(80):
            if not lane.is_idle:
                lane.go()
        assert lane.is_idle, f"stands at {lane.step}"
        invariants_of(self.office)
        return lane

    def rests(self) -> None:
        self.machine.teardown()


def a_void_is_taken_back_while_another_takes_the_claim_over(rules: Rules) -> None:
    """The first claims and dies; the policy changes, and it is not taken; its lane dies before it commits that, and
    the policy changes back: it is taken after all. Another had looked at the void meanwhile."""
    scene = Scene(rules)
    scene.office.send(0, "K")
    scene.lane(0, at="4 mark").kill()
    scene.office.policy = 1
    scene.office.send(1, "K")
    scene.lane(0, at="4 mark").kill()
    other = scene.lane(1, at="4 claim")
    other.go()
    scene.office.policy = 0
    scene.drains(0)
    for _ in range(8):
        other.go()
        invariants_of(scene.office)
    scene.rests()


def a_zombie_lets_go_of_what_its_successor_was_given(rules: Rules) -> None:
    """Not taken by the policy of a moment; the successor takes the same settlement, and commits it."""
    scene = Scene(rules)
    scene.office.send(0, "K")
    scene.office.policy = 1
    zombie = scene.lane(0, at="4 voids")
    scene.office.policy = 0
    scene.drains(0)
    scene.office.send(1, "K")
    zombie.go()
    scene.drains(1)
    scene.rests()


def what_is_let_go_after_the_commit_may_stay_for_ever(rules: Rules) -> None:
    """The lane dies in between."""
    scene = Scene(rules)
    scene.office.send(0, "K")
    scene.lane(0, at="4 mark").kill()
    scene.office.policy = 1
    scene.lane(0, at="6 prepare").kill()
    scene.rests()


def redis_loses_a_claim_behind_its_mark(rules: Rules) -> None:
    """Not taken the first time, which raises the mark; taken the second time, and the claim is lost."""
    scene = Scene(rules)
    scene.office.send(0, "K")
    scene.office.policy = 1
    lane = scene.lane(0, at="4 mark")
    lane.kill()
    scene.office.world.redis.sync()
    scene.office.policy = 0
    scene.lane(0, at="6 prepare").kill()
    scene.office.world.restart_redis(lost_writes=3)
    scene.office.send(1, "K")
    scene.drains(1)
    scene.rests()


def a_ticket_is_sent_again_while_its_settlement_lives(rules: Rules) -> None:
    """Settled late in the life of its claim."""
    scene = Scene(rules)
    scene.office.tick()
    scene.office.send(0, "K")
    scene.drains(0)
    scene.office.tick()
    scene.office.tick()
    scene.office.ticket_comes("K")
    scene.rests()


def what_was_claimed_and_is_not_taken_keeps_others_out(rules: Rules) -> None:
    """The lane died behind its claim, and the policy changed."""
    scene = Scene(rules)
    scene.office.send(0, "K")
    scene.lane(0, at="4 mark").kill()
    scene.office.policy = 1
    scene.drains(0)
    scene.rests()


def what_is_not_taken_takes_anothers_claim_away(rules: Rules) -> None:
    scene = Scene(rules)
    scene.office.send(0, "K")
    scene.drains(0)
    scene.office.send(1, "K")
    scene.office.policy = 1
    scene.drains(1)
    scene.office.send(1, "K")
    scene.drains(1)
    scene.rests()


def a_rebuild_forgets_what_was_rejected(rules: Rules) -> None:
    scene = Scene(rules)
    scene.office.send(0, "K", rejects=True)
    scene.drains(0).kill()
    scene.office.world.restart_redis(lost_writes=None)
    scene.office.rebuild(rules)
    scene.office.send(1, "K")
    scene.drains(1)
    scene.rests()


def a_rebuild_forgets_for_how_long_a_settled_tickets_claim_lives(rules: Rules) -> None:
    scene = Scene(rules)
    scene.office.tick()
    scene.office.tick()
    scene.office.send(0, "K")
    scene.drains(0).kill()
    scene.office.tick()
    scene.office.world.restart_redis(lost_writes=None)
    scene.office.rebuild(rules)
    scene.office.ticket_comes("K")
    scene.rests()


def a_replay_lets_go_of_what_was_settled(rules: Rules) -> None:
    """Taken and committed; read again under another policy it is not taken, and frees its ticket for another."""
    scene = Scene(rules)
    scene.office.send(0, "K")
    scene.drains(0).kill()
    scene.office.policy = 1
    scene.office.replay(0, rules)
    scene.drains(0)
    scene.office.send(1, "K")
    scene.drains(1)
    scene.rests()


FOUND = [
    (a_void_is_taken_back_while_another_takes_the_claim_over, "deletes"),
    (a_zombie_lets_go_of_what_its_successor_was_given, "lets_go_by_token"),
    (what_is_let_go_after_the_commit_may_stay_for_ever, "lets_go_first"),
    (redis_loses_a_claim_behind_its_mark, "syncs"),
    (a_ticket_is_sent_again_while_its_settlement_lives, "raises_lifetimes"),
    (what_was_claimed_and_is_not_taken_keeps_others_out, "lets_go"),
    (what_is_not_taken_takes_anothers_claim_away, "lets_go_by_compare"),
    (a_rebuild_forgets_what_was_rejected, "restores_rejects"),
    (a_rebuild_forgets_for_how_long_a_settled_tickets_claim_lives, "restores_ticket_claims"),
    (a_replay_lets_go_of_what_was_settled, "replays_to_commits"),
]


@pytest.mark.parametrize(("story", "needed"), FOUND, ids=[story.__name__ for story, _ in FOUND])
def test_what_was_found_holds_with_its_rule_and_not_without(
    story: Callable[[Rules], None], needed: str
) -> None:
    story(Rules())

    with pytest.raises(Violated):
        story(lacking(needed))


def test_a_claims_lifetime_is_some_ticks() -> None:
    office = Scene(Rules()).office

    for _ in range(LIFETIME):
        assert office.world.redis.claim("K") is not None
        office.tick()

    assert office.world.redis.claim("K") is None


def test_what_is_over_does_not_come_back_with_writes_that_redis_lost() -> None:
    """Found by 10,000 interleavings of a model in which it did: then nobody could settle a ticket decided anew."""
    scene = Scene(Rules())
    scene.office.send(0, "K", rejects=True)
    scene.drains(0).kill()
    for _ in range(LIFETIME):
        scene.office.tick()

    scene.machine.redis_forgets_its_last_writes(lost_writes=8)

    assert scene.office.world.redis.claim("K:settlement") is None
    scene.office.ticket_comes("K")
    scene.rests()
