"""To rest: heal what a person must heal, let late zombies have their say, drain all partitions, look; then probe."""

from __future__ import annotations

from collections.abc import Iterable

from . import invariants
from .lane_model import Lane, Protocol
from .world import TOPIC_PARTITIONS, World

# Enough for the few records that a machine sends: beyond this a lane does not get on, which is a finding as well.
MOST_EFFECTS = 400


def come_to_rest(world: World, protocol: Protocol, zombies: Iterable[Lane] = ()) -> None:
    """Drain and check; then send a copy of every ticket, drain and check again."""
    drain(world, protocol)
    for zombie in zombies:
        if zombie.is_alive:
            zombie.go(30)
            zombie.kill()
            invariants.always(world)
    drain(world, protocol)
    invariants.at_rest(world)
    for ticket in sorted({ticket for log in world.broker.logs for ticket in log}):
        world.broker.logs[0].append(ticket)
    drain(world, protocol)
    invariants.probed(world)


def drain(world: World, protocol: Protocol) -> None:
    """New lanes on all partitions, until none finds anything more."""
    lanes = [Lane(world, p, number=-1 - p, batch_size=2, protocol=protocol) for p in range(TOPIC_PARTITIONS)]
    for _ in range(MOST_EFFECTS):
        for lane in lanes:
            lane.go()
            invariants.always(world)
        refusals = {lane.refusal for lane in lanes} - {None}
        if "claims_lost" in refusals:
            world.rebuild_claims()
        elif "offsets_reset" in refusals:
            world.restore_offsets()
        if all(lane.is_idle for lane in lanes):
            world.broker.complete()
            return
    where = [(lane.step, lane.refusal) for lane in lanes]
    raise invariants.Violated(f"I5: the lanes do not come to rest: {where}")
