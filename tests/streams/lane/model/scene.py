"""A stage for plain examples: lanes that go on to the step they are told, on a world that the example sees."""

from __future__ import annotations

from . import invariants
from .drain import come_to_rest
from .lane_model import Lane, Protocol
from .world import Ticket, World


class Scene:
    """A world with lanes of one protocol."""

    def __init__(self, protocol: Protocol, *logs: list[Ticket]) -> None:
        self.protocol = protocol
        self.world = World()
        self.world.broker.logs = [*map(list, logs), *[[] for _ in range(2 - len(logs))]]
        self.lanes: list[Lane] = []

    def lane(self, partition: int, *, at: str = "", batch: int = 1) -> Lane:
        """A new lane, gone on to a step."""
        lane = Lane(self.world, partition, number=len(self.lanes), batch_size=batch, protocol=self.protocol)
        self.lanes.append(lane)
        if at:
            self.goes(lane, at)
        return lane

    def goes(self, lane: Lane, step: str) -> None:
        """On to a step, which it must reach."""
        assert lane.go_to(step), f"stands at {lane.step}, wanted {step}"
        invariants.always(self.world)

    def holds(self, lane: Lane, step: str) -> None:
        """The network takes the lane's next request of that step."""
        assert lane.hold(step), f"stands at {lane.step}, wanted {step}"
        invariants.always(self.world)

    def brings(self) -> None:
        """What the network took first comes."""
        self.world.deliver(0)
        invariants.always(self.world)

    def drains(self, partition: int, *, batch: int = 1) -> Lane:
        """A new lane, gone on until it finds nothing more."""
        lane = self.lane(partition, batch=batch)
        for _ in range(80):
            if not lane.is_idle:
                lane.go()
        assert lane.is_idle, f"stands at {lane.step}"
        invariants.always(self.world)
        return lane

    def abandons(self, partition: int, *, batch: int = 1) -> None:
        """A lane dies with its batch claimed."""
        self.lane(partition, at="4 mark", batch=batch).kill()

    def cuts(self, partition: int, start: int) -> None:
        """Retention takes what lies below `start`."""
        self.world.broker.starts[partition] = start

    def sends(self, partition: int, ticket: Ticket) -> None:
        """Upstream."""
        self.world.broker.logs[partition].append(ticket)

    def loses(self, writes: int | None) -> None:
        """Workers are down, and Redis comes back without its last writes."""
        for lane in self.lanes:
            lane.kill()
        self.world.restart_redis(lost_writes=writes)

    def rests(self) -> None:
        """All drained, and probed."""
        come_to_rest(self.world, self.protocol, self.lanes)
