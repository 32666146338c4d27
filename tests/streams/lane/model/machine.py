"""The machine: Hypothesis chooses what happens next, and after each rule the invariants hold."""

from __future__ import annotations

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from . import invariants
from .drain import come_to_rest
from .lane_model import OF_A_TRANSACTION, REQUESTS, STEPS, Lane, Protocol
from .world import TOPIC_PARTITIONS, Marker, Ticket, World

# Small numbers make what matters likely: few keys collide often, short logs come to an end.
MOST_RECORDS = 10
MOST_LANES = 5

partitions = st.integers(0, TOPIC_PARTITIONS - 1)
tickets = st.builds(Ticket, st.sampled_from("KL"), st.sampled_from("aab"))
batch_sizes = st.integers(1, 3)
lane_choices = st.integers(0, 4)


class Deliveries(RuleBasedStateMachine):
    """Workers on a partition each, kills, zombies, rebalances, upstream's repeats and collisions, and retention,
    while claims are durable. Of two lanes of a partition one is a zombie: whichever opened last fenced the other."""

    protocol: ClassVar[Protocol] = Protocol()

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.started: list[Lane] = []
        self.is_broken = False

    # --- upstream and workers ---

    @initialize(logs=st.tuples(*[st.lists(tickets, max_size=3)] * TOPIC_PARTITIONS))
    def upstream_began(self, logs: tuple[list[Ticket], ...]) -> None:
        self.world.broker.logs = list(logs)

    @precondition(lambda self: sum(map(len, self.world.broker.logs)) < MOST_RECORDS)
    @rule(partition=partitions, ticket=tickets)
    def upstream_sends(self, partition: int, ticket: Ticket) -> None:
        self.world.broker.logs[partition].append(ticket)

    @precondition(lambda self: len(self.alive) < MOST_LANES)
    @rule(partition=partitions, batch_size=batch_sizes, step=st.sampled_from(STEPS))
    def lane_starts(self, partition: int, batch_size: int, step: str) -> None:
        """A worker comes, or a rebalance gives the partition to another: what served it is a zombie now."""
        self._start(partition, batch_size).go_to(step, most=30)

    @precondition(lambda self: len(self.alive) < MOST_LANES)
    @rule(partition=partitions, batch_size=batch_sizes)
    def lane_starts_and_drains_its_partition(self, partition: int, batch_size: int) -> None:
        lane = self._start(partition, batch_size)
        for _ in range(80):
            if not lane.is_idle and lane.refusal is None:
                lane.go()

    @precondition(lambda self: self.alive)
    @rule(which=lane_choices, effects=st.integers(1, 4))
    def lane_goes_on(self, which: int, effects: int) -> None:
        self._lane(which).go(effects)

    @precondition(lambda self: self.alive)
    @rule(which=lane_choices, step=st.sampled_from(STEPS))
    def lane_goes_on_to(self, which: int, step: str) -> None:
        self._lane(which).go_to(step, most=20)

    @precondition(lambda self: self.alive)
    @rule(which=lane_choices, step=st.sampled_from(STEPS))
    def lane_fails_behind(self, which: int, step: str) -> None:
        """The batch goes wrong there, or the reply is lost, as a commit's may be: the lane cannot know."""
        lane = self._lane(which)
        lane.go_to(step, most=20)
        lane.fail()

    @precondition(lambda self: self.alive)
    @rule(which=lane_choices, step=st.sampled_from(REQUESTS))
    def network_holds(self, which: int, step: str) -> None:
        """The lane's next request of that step is on its way for long; its connection is cut."""
        self._lane(which).hold(step)

    @precondition(lambda self: self.alive)
    @rule(
        which=lane_choices, step=st.sampled_from(OF_A_TRANSACTION), moment=st.sampled_from(OF_A_TRANSACTION)
    )
    def network_brings_in_the_next_transaction(self, which: int, step: str, moment: str) -> None:
        """Of itself the machine comes upon it rarely: the request must be held for just so long."""
        lane = self._lane(which)
        if lane.hold(step) and lane.go_to("3 poll", most=20) and lane.go_to(moment, most=20):
            self.world.deliver(-1)

    @precondition(lambda self: self.world.held)
    @rule(which=lane_choices)
    def what_was_held_comes(self, which: int) -> None:
        self.world.deliver(which % len(self.world.held))

    @precondition(lambda self: self.alive)
    @rule(which=lane_choices)
    def lane_is_killed(self, which: int) -> None:
        self._lane(which).kill()

    @property
    def alive(self) -> list[Lane]:
        """The lanes that may go on, zombies too, the oldest first."""
        return [lane for lane in self.started if lane.is_alive]

    def _lane(self, which: int) -> Lane:
        return self.alive[which % len(self.alive)]

    def _start(self, partition: int, batch_size: int) -> Lane:
        number = len(self.started)
        lane = Lane(self.world, partition, number=number, batch_size=batch_size, protocol=self.protocol)
        self.started.append(lane)
        return lane

    # --- the broker ---

    @precondition(lambda self: any(map(self.world.broker.has_prepared, range(TOPIC_PARTITIONS))))
    @rule(partition=partitions, marker=st.sampled_from(("outputs", "offset")))
    def coordinator_writes_marker(self, partition: int, marker: Marker) -> None:
        self.world.broker.write_marker(partition, marker)

    @rule(partition=partitions)
    def transaction_times_out(self, partition: int) -> None:
        self.world.broker.time_out(partition)

    @rule(partition=partitions, lost=st.integers(1, 3))
    def retention_cuts(self, partition: int, lost: int) -> None:
        broker = self.world.broker
        broker.starts[partition] = min(broker.starts[partition] + lost, len(broker.logs[partition]))

    # --- what holds ---

    @invariant()
    def invariants_hold(self) -> None:
        self.is_broken = True
        invariants.always(self.world)
        self.is_broken = False

    def teardown(self) -> None:
        if not self.is_broken:
            while self.world.held:
                self.world.deliver(0)
                invariants.always(self.world)
            come_to_rest(self.world, self.protocol, self.alive)


class DeliveriesWithLosses(Deliveries):
    """The same, and offsets are reset, and Redis forgets while workers are down. A machine of its own: a loss ends all
    zombies, so that with it the long interleavings become rare."""

    def __init__(self) -> None:
        super().__init__()
        self.is_reset = False

    @rule(partition=partitions, back=st.integers(1, 4))
    def offsets_are_reset(self, partition: int, back: int) -> None:
        """Lost or lowered. Only what a lane knew of is reset: between a commit and its mark nothing can tell."""
        broker, known = self.world.broker, self.world.known[partition]
        if self.world.redis.is_foreign:
            return  # two losses at once may agree with each other
        if known and known == broker.committed[partition] and not broker.has_prepared(partition):
            broker.committed[partition] = known - back if known > back else None
            self.is_reset = True

    @precondition(lambda self: self.is_reset)
    @rule()
    def offsets_are_restored(self) -> None:
        self.world.restore_offsets()
        self.is_reset = False

    @precondition(lambda self: not self.is_reset)  # two losses at once may agree with each other
    @rule(lost_writes=st.integers(1, 8) | st.none())
    def redis_forgets_while_workers_are_down(self, lost_writes: int | None) -> None:
        for lane in self.alive:
            lane.kill()
        self.world.restart_redis(lost_writes=lost_writes)

    @precondition(lambda self: not self.is_reset)
    @rule(lost_writes=st.integers(0, 8) | st.none())
    def redis_is_replaced(self, lost_writes: int | None) -> None:
        """Under lanes at work: a failover, or a restart that was quick."""
        self.world.replace_redis(lost_writes=lost_writes)

    @rule()
    def claims_are_rebuilt(self) -> None:
        self.world.rebuild_claims()


def machine(protocol: Protocol, kind: type[Deliveries] = Deliveries) -> type[Deliveries]:
    """The machine with lanes of that protocol."""
    return type(kind.__name__, (kind,), {"protocol": protocol})
