"""What the model found: each as a plain example, which fails without a rule and holds with it.

`AS_FIRST_BUILT` are the rules that streams/ and store/ lacked at first, `OPEN` those that they lack as of commit
011b93e (README.md says what each costs); `HALF_MENDED` are ways in which the mending could be done wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from . import invariants
from .lane_model import AS_BUILT, AS_MENDED, Protocol, without
from .scene import Scene
from .world import Ticket

K, L, M, N = (Ticket(key, "a") for key in "KLMN")
K_OTHERWISE = Ticket("K", "b")


def a_zombie_journals_what_its_successor_committed(protocol: Protocol) -> None:
    """Offset read before the successor commits, log start read after retention cut what it committed."""
    scene = Scene(protocol, [M])
    scene.drains(0).kill()
    scene.sends(0, K)
    zombie = scene.lane(0, at="2 committed")
    scene.lane(0, at="6 prepare").kill()
    scene.cuts(0, 2)
    zombie.go(4)
    scene.sends(0, K)
    scene.rests()


def two_lanes_take_the_token_and_the_fence_in_different_order(protocol: Protocol) -> None:
    """The one may write voids, the other may commit."""
    scene = Scene(protocol, [K])
    committer = scene.lane(0, at="1 token")
    voider = scene.lane(0, at="2 committed")
    for _ in range(20):
        if committer.step != "6 prepare":
            committer.go()
    committer.kill()
    scene.cuts(0, 1)
    voider.go(4)
    scene.rests()


def the_token_is_taken_after_the_fence(protocol: Protocol) -> None:
    """A lane that was fenced meanwhile has the token, and so may write voids."""
    scene = Scene(protocol, [M])
    scene.drains(0).kill()
    scene.sends(0, K)
    zombie = scene.lane(0, at="1 fence")
    successor = scene.lane(0, at="5 decide")
    scene.goes(zombie, "2 committed")
    scene.goes(successor, "6 prepare")
    successor.kill()
    scene.cuts(0, 2)
    zombie.go(4)
    scene.rests()


def a_zombie_shrinks_a_journalled_range(protocol: Protocol) -> None:
    """Both journal from the same committed offset, the zombie last and up to an earlier log start."""
    scene = Scene(protocol, [M])
    scene.drains(0).kill()
    for ticket in (K, L, N):
        scene.sends(0, ticket)
    scene.abandons(0, batch=2)
    scene.cuts(0, 2)
    zombie = scene.lane(0, at="2 retract")
    scene.cuts(0, 3)
    scene.drains(0)
    zombie.go()
    scene.rests()


def a_zombie_retracts_a_journalled_range(protocol: Protocol) -> None:
    """It read a log start from before the loss, so to it the range looks like one that may yet be read."""
    scene = Scene(protocol, [M])
    scene.drains(0).kill()
    scene.sends(0, K)
    scene.abandons(0)
    scene.sends(0, L)
    zombie = scene.lane(0, at="2 marks")
    scene.cuts(0, 2)
    scene.drains(0)
    zombie.go()
    scene.rests()


def a_zombie_takes_over_for_a_record_that_was_passed(protocol: Protocol) -> None:
    """The successor passed it as a duplicate; then the owner was lost; then the zombie came to claim it."""
    scene = Scene(protocol, [K], [M])
    scene.drains(1).kill()
    scene.sends(1, K)
    scene.abandons(1)
    zombie = scene.lane(0, at="3 poll")
    scene.drains(0)
    scene.cuts(1, 2)
    scene.drains(1)
    zombie.go(8)
    scene.rests()


def the_winner_of_a_take_over_is_void_too(protocol: Protocol) -> None:
    """Two copies race for a void claim; the winner's is lost as well before the loser comes to write."""
    scene = Scene(protocol, [K], [M])
    scene.drains(1).kill()
    for ticket in (K, K, N):
        scene.sends(1, ticket)
    scene.abandons(1)
    scene.cuts(1, 2)
    winner = scene.lane(1, at="2 opened")
    loser = scene.lane(0, at="4 voids")
    scene.goes(winner, "4 take over")
    winner.kill()
    scene.cuts(1, 3)
    scene.drains(1)
    loser.go(12)
    scene.rests()


def a_claimed_record_is_lost_before_the_first_commit(protocol: Protocol) -> None:
    """No committed offset, so nothing says that offsets were passed over."""
    scene = Scene(protocol, [K])
    scene.abandons(0)
    scene.cuts(0, 1)
    scene.sends(0, L)
    scene.drains(0)
    scene.sends(0, K)
    scene.rests()


def another_partition_than_the_forgotten_one_opens_first(protocol: Protocol) -> None:
    """Redis lost the claims of partition 0; a copy waits in partition 1, which had nothing to lose."""
    scene = Scene(protocol, [K])
    scene.drains(0)
    scene.loses(None)
    scene.sends(1, K)
    lane = scene.lane(1)
    lane.go(20)
    scene.rests()


def a_take_over_is_in_the_lost_tail(protocol: Protocol) -> None:
    """It was written after the claimed mark, so the mark does not miss it."""
    scene = Scene(protocol, [N], [M])
    scene.drains(0).kill()
    scene.drains(1).kill()
    scene.sends(1, K)
    scene.abandons(1)
    scene.cuts(1, 2)
    scene.drains(1)
    scene.sends(0, K)
    scene.lane(0, at="6 prepare")
    scene.loses(1)
    scene.sends(0, K)
    scene.rests()


def a_take_over_is_in_the_lost_tail_behind_an_older_mark(protocol: Protocol) -> None:
    """An abandoned batch had raised the claimed mark, when the record was still a duplicate."""
    scene = Scene(protocol, [N], [M])
    scene.drains(0).kill()
    scene.drains(1).kill()
    scene.sends(1, K)
    scene.abandons(1)
    scene.sends(0, K)
    scene.abandons(0)
    scene.cuts(1, 2)
    scene.drains(1)
    scene.lane(0, at="6 prepare")
    scene.loses(1)
    scene.sends(0, K)
    scene.rests()


def a_derived_claim_is_in_the_lost_tail(protocol: Protocol) -> None:
    """It too was written after the claimed mark."""
    scene = Scene(protocol, [K])
    scene.drains(0).kill()
    scene.sends(0, K_OTHERWISE)
    scene.lane(0, at="6 prepare")
    scene.loses(1)
    scene.sends(0, K_OTHERWISE)
    scene.rests()


def a_void_is_in_the_lost_tail(protocol: Protocol) -> None:
    """An abandoned batch had raised the claimed mark further, so nothing is written behind the void."""
    scene = Scene(protocol, [M])
    scene.drains(0).kill()
    scene.sends(0, K)
    scene.sends(0, L)
    scene.abandons(0, batch=2)
    scene.cuts(0, 2)
    scene.lane(0, at="6 prepare")
    scene.loses(2)
    scene.rests()


def offsets_are_lost_while_the_last_batch_has_no_mark(protocol: Protocol) -> None:
    """The lane had all the time there is: no later batch came to carry the mark."""
    scene = Scene(protocol, [K])
    scene.drains(0)
    scene.world.broker.complete()
    scene.world.broker.committed[0] = None
    scene.rests()


def a_lane_dies_between_its_commit_and_the_mark(protocol: Protocol) -> None:
    """Its successor, with nothing to do, had all the time there is."""
    scene = Scene(protocol, [K])
    scene.lane(0, at="6 prepare").kill()
    scene.drains(0)
    scene.world.broker.committed[0] = None
    scene.rests()


def a_derived_keys_owner_is_void(protocol: Protocol) -> None:
    """A collision's record is lost after it claimed; a copy of it comes later."""
    scene = Scene(protocol, [K], [M])
    scene.drains(0)
    scene.drains(1).kill()
    scene.sends(1, K_OTHERWISE)
    scene.lane(1, at="4 derived").kill()
    scene.cuts(1, 2)
    scene.drains(1)
    scene.sends(0, K_OTHERWISE)
    scene.rests()


def a_lane_claims_on_top_of_an_emptied_redis_before_it_is_rebuilt(protocol: Protocol) -> None:
    """Its claim would stand where a committed output's should, and a rebuild changes no claim that stands."""
    scene = Scene(protocol, [K])
    scene.drains(0)
    lane = scene.drains(1)
    scene.sends(1, K)
    scene.world.restart_redis(lost_writes=None)
    lane.go(20)
    scene.rests()


def an_end_comes_in_the_next_transaction(protocol: Protocol) -> None:
    """Repeated, the EndTxn ended its own; the first one ends the next before its offset is in it, and the lane dies."""
    scene = Scene(protocol, [K, L])
    lane = scene.lane(0)
    scene.holds(lane, "6 prepare")
    scene.goes(lane, "6 send")
    scene.brings()
    lane.kill()
    scene.rests()


def an_offset_comes_in_the_next_transaction(protocol: Protocol) -> None:
    """Behind the next batch's own, which it sets back."""
    scene = Scene(protocol, [K, L])
    lane = scene.lane(0)
    scene.holds(lane, "6 offset")
    scene.goes(lane, "6 prepare")
    scene.goes(lane, "6 offset")
    scene.brings()
    scene.goes(lane, "6 prepare")
    scene.rests()


def a_fenced_lane_takes_a_bare_new_epoch(protocol: Protocol) -> None:
    """Its EndTxn had no answer, and while it waited its successor took the batch."""
    scene = Scene(protocol, [K])
    zombie = scene.lane(0)
    zombie.go_to("6 offset")
    zombie.hold("6 prepare")
    scene.drains(0)
    zombie.go(20)
    scene.rests()


def redis_is_replaced_between_claim_and_end(protocol: Protocol) -> None:
    """The last claim is not in the new one. Nothing asks Redis between a claim and the EndTxn, and a lane of another
    partition claims the copy."""
    scene = Scene(protocol, [K], [K])
    waiting = scene.lane(1, at="2 opened")
    lane = scene.lane(0, at="5 decide")
    scene.world.replace_redis(lost_writes=2)
    for _ in range(30):
        if not waiting.is_idle:
            waiting.go()
    lane.go_to("6 prepare", most=4)
    scene.rests()


def a_lane_lives_through_a_lost_tail(protocol: Protocol) -> None:
    """Its own marks would rise over the hole, so that no opening sees it."""
    scene = Scene(protocol, [M])
    scene.drains(0).kill()
    scene.sends(0, K)
    lane = scene.drains(0)
    scene.sends(0, L)
    scene.world.replace_redis(lost_writes=3)
    lane.go(20)
    scene.sends(0, K)
    scene.rests()


def offsets_are_lost_between_a_handover_and_the_opening(protocol: Protocol) -> None:
    """The `committed` mark is in the lost tail, and the lane whose partition it was is not back yet."""
    scene = Scene(protocol, [], [K])
    scene.drains(1).kill()
    scene.world.replace_redis(lost_writes=1)
    scene.drains(0)
    scene.world.broker.committed[1] = None
    scene.rests()


Play = Callable[[Protocol], None]

AS_FIRST_BUILT: list[tuple[str, Play]] = [
    ("holds_token", a_zombie_journals_what_its_successor_committed),
    ("holds_token", a_zombie_shrinks_a_journalled_range),
    ("holds_token", a_zombie_retracts_a_journalled_range),
    ("holds_token", a_zombie_takes_over_for_a_record_that_was_passed),
    ("looks_again", the_winner_of_a_take_over_is_void_too),
    ("voids_before_first_commit", a_claimed_record_is_lost_before_the_first_commit),
    ("compares_every_partition", another_partition_than_the_forgotten_one_opens_first),
    ("marks_claims_last syncs_late_writes", a_take_over_is_in_the_lost_tail),
    ("marks_claims_last syncs_late_writes", a_derived_claim_is_in_the_lost_tail),
    ("guards_claims hands_over", a_lane_claims_on_top_of_an_emptied_redis_before_it_is_rebuilt),
    ("marks_commit_at_once marks_at_opening", offsets_are_lost_while_the_last_batch_has_no_mark),
]
FOUND_IN_THE_MENDED: list[tuple[str, Play]] = [
    ("takes_over_derived", a_derived_keys_owner_is_void),
    ("syncs_late_writes", a_void_is_in_the_lost_tail),
    ("syncs_late_writes", a_take_over_is_in_the_lost_tail_behind_an_older_mark),
    ("marks_at_opening", a_lane_dies_between_its_commit_and_the_mark),
]
THROUGH_A_NETWORK: list[tuple[str, Play]] = [
    ("sends_once", an_end_comes_in_the_next_transaction),
    ("sends_once", an_offset_comes_in_the_next_transaction),
    ("hands_over", redis_is_replaced_between_claim_and_end),
    ("hands_over", a_lane_lives_through_a_lost_tail),
]
HALF_MENDED: list[tuple[str, Play]] = [
    ("rereads_token guards_claims", two_lanes_take_the_token_and_the_fence_in_different_order),
    ("takes_token_first", the_token_is_taken_after_the_fence),
    ("reopens_whole", a_fenced_lane_takes_a_bare_new_epoch),
    ("marks_at_handover", offsets_are_lost_between_a_handover_and_the_opening),
]


ALL = AS_FIRST_BUILT + FOUND_IN_THE_MENDED + THROUGH_A_NETWORK + HALF_MENDED


def _named(plays: list[tuple[str, Play]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("rules", "play"), plays, ids=[play.__name__ for _, play in plays])


@_named(ALL)
def test_the_protocol_holds(rules: str, play: Play) -> None:
    play(Protocol())


@_named(ALL)
def test_it_does_not_without_the_rule(rules: str, play: Play) -> None:
    with pytest.raises(invariants.Violated):
        play(without(*rules.split()))


@_named(AS_FIRST_BUILT + THROUGH_A_NETWORK)
def test_it_did_not_as_first_built(rules: str, play: Play) -> None:
    with pytest.raises(invariants.Violated):
        play(AS_BUILT)


@_named(ALL)
def test_it_holds_as_mended(rules: str, play: Play) -> None:
    play(AS_MENDED)
