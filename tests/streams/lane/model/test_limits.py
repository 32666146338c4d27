"""What the protocol does not hold, mended or not: faults that nothing it looks at can tell. Better written down."""

from __future__ import annotations

import pytest

from .invariants import Violated
from .lane_model import Protocol
from .scene import Scene
from .world import Ticket

K, L, M = (Ticket(key, "a") for key in "KLM")


def test_offsets_lost_between_a_commit_and_its_mark_are_decided_again() -> None:
    scene = Scene(Protocol(), [K])
    scene.lane(0, at="6 prepare").kill()
    scene.world.broker.complete()

    scene.world.broker.committed[0] = None

    with pytest.raises(Violated):
        scene.rests()


def test_redis_and_offsets_that_go_back_together_agree() -> None:
    scene = Scene(Protocol(), [K])
    scene.drains(0)

    scene.loses(None)
    scene.world.broker.committed[0] = None

    with pytest.raises(Violated):
        scene.rests()


def test_a_copy_suppressed_before_its_owner_is_lost_is_gone_with_it() -> None:
    """Until it is sent once more."""
    scene = Scene(Protocol(), [K], [K])
    scene.abandons(0)
    scene.drains(1)

    scene.cuts(0, 1)
    scene.drains(0)

    assert scene.world.broker.visible == []
    scene.sends(1, K)
    scene.rests()
    assert [effect.key for effect in scene.world.broker.visible] == ["K"]


def test_a_collision_that_takes_over_the_key_leaves_its_derived_key_without_an_effect() -> None:
    """Its content is dispatched once, under the ticket's own key; nothing is left to say under the derived one."""
    scene = Scene(Protocol(), [K, M], [Ticket("K", "b")])
    scene.abandons(0)
    scene.lane(1, at="4 derived").kill()
    scene.sends(1, Ticket("K", "b"))

    scene.cuts(0, 1)
    scene.drains(0)
    scene.drains(1)

    assert [effect.key for effect in scene.world.broker.history[-2].effects] == ["K"]
    assert scene.world.redis.claim("K:b") is not None
    scene.rests()
