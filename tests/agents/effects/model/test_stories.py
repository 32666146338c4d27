"""Interleavings told step by step: those that the machine comes upon only rarely, with the rule and without it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ticketgate.agents.effects.ledger import Entry
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.codecs.records.receipt import EffectState

from .machine import Effects, EffectsAtAPlainProvider, Violated
from .processes import lane, reconciler
from .world import Process, Rules


class Story:
    """A machine that does what it is told."""

    def __init__(self, kind: type[Effects] = Effects, **changed: Any) -> None:
        self.machine = type(kind.__name__, (kind,), changed)()
        self.world = self.machine.world

    def lane(self, stop: str = "nowhere") -> Process:
        number = len(self.machine.started) + 1
        process = self.machine._start(lane(self.world, number, self.machine.executor_type))
        process.go_to(stop, most=200)
        return process

    def reconciler(self, stop: str = "nowhere") -> Process:
        machine = self.machine
        number = len(machine.started) + 1
        made = reconciler(self.world, number, machine.executor_type, machine.reconciler_type)
        machine._start(made).go_to(stop, most=200)
        return made

    def lose_all(self) -> None:
        for request in self.machine.undecided:
            request.is_lost = True

    def passes(self, seconds: float = 700.0) -> None:
        self.world.now += seconds

    def ends(self) -> None:
        """All promises hold, now and at rest."""
        self.machine.promises_hold()
        self.machine.teardown()

    @property
    def state(self) -> EffectState:
        entry = self.world.entry()
        assert entry is not None
        return entry.state


class ForgetsTheSecondReceipt(Reconciler):
    """Sends again without announcing that it is about to."""

    async def _resend(self, entry: Entry) -> Entry:
        sent = await self._executor.send(entry, token=None)
        await self._tell(sent)
        return sent


class NeverTellsForOthers(Reconciler):
    """Tells of what it settles, but not of what a predecessor settled and did not live to tell."""

    async def look_again(self, entry: Entry) -> Entry:
        return entry if not entry.is_told and not entry.is_open else await super().look_again(entry)


def lost_in_the_second_sending(**changed: Any) -> Story:
    """Both sendings are lost, and after the second the ledger is, with who sent it."""
    story = Story(**changed)
    story.lane("after it left")
    story.lose_all()
    story.lane()
    story.passes()
    second = story.reconciler("after it left")
    story.lose_all()
    assert story.world.sends == 2
    second.kill()
    story.world.empty()
    story.world.rebuild()
    for _ in range(6):
        story.passes()
        story.reconciler()
        story.lose_all()
    return story


def test_a_rebuilt_ledger_remembers_that_an_effect_was_sent_twice() -> None:
    story = lost_in_the_second_sending()

    assert (story.world.sends, story.state) == (2, EffectState.ABSENT)
    story.ends()


@pytest.mark.parametrize(
    "changed",
    [
        {"reconciler_type": ForgetsTheSecondReceipt},
        {"protocol": replace(Rules(), restores_sends=False)},
    ],
    ids=["the second sending is not announced", "sends are not restored"],
)
def test_without_its_receipt_it_is_sent_a_third_time(changed: dict[str, Any]) -> None:
    story = lost_in_the_second_sending(**changed)

    with pytest.raises(Violated, match="sent 3 times"):
        story.ends()


def rebuilt_twice_from_one_receipt(**changed: Any) -> Story:
    """Between the two a reconciler found the effect absent, and wakes after the second."""
    story = Story(**changed)
    story.lane("after it left")
    story.world.empty()
    story.world.rebuild()
    story.passes()
    story.reconciler("before announce")
    story.world.empty()
    story.world.rebuild()
    return story


def test_a_step_that_a_lost_ledger_took_never_counts_as_the_newest() -> None:
    rebuilt_twice_from_one_receipt().ends()

    with pytest.raises(Violated):
        rebuilt_twice_from_one_receipt(protocol=replace(Rules(), counts_on_from_the_time=False)).ends()


def test_a_second_sending_that_was_announced_only_is_outweighed_by_what_turned_up() -> None:
    story = Story()
    story.lane("after it left").kill()
    story.passes()
    story.reconciler("before begin_send").kill()
    (late,) = story.machine.undecided
    story.world.deliver(late)

    story.passes()
    story.reconciler()

    assert (story.world.sends, story.state) == (1, EffectState.COMMITTED)
    at_one_step = [
        each for each in story.world.receipts if each.sequence == story.world.receipts[-1].sequence
    ]
    assert [str(each.effect_state) for each in at_one_step] == ["prepared", "committed"]
    story.ends()


def killed_before_it_told(**changed: Any) -> Story:
    """A reconciler settles what it found, and dies before it announces that."""
    story = Story(**changed)
    first = story.lane("after it left")
    story.machine.undecided[0].is_lost = True
    story.world.is_readable = False
    first.go_to("nowhere", most=200)
    story.world.transfers.append(story.world.requests[0].command)
    story.world.is_readable = True
    story.passes()
    story.reconciler("before announce").kill()
    assert story.state is EffectState.COMMITTED
    return story


def test_what_a_predecessor_settled_is_told_by_the_next() -> None:
    killed_before_it_told().ends()


def test_without_looking_at_what_is_not_told_a_settlement_stays_untold() -> None:
    with pytest.raises(Violated, match="the last receipt says unknown, not committed"):
        killed_before_it_told(reconciler_type=NeverTellsForOthers).ends()


def two_about_to_send_again(**changed: Any) -> Story:
    """Two reconcilers have found nothing, and both are about to send the second time."""
    story = Story(**changed)
    story.lane("after it left")
    story.lose_all()
    story.lane()
    story.passes()
    one = story.reconciler("before begin_send")
    story.passes(3.0)
    two = story.reconciler("before begin_send")
    assert one.at == two.at == "before begin_send"
    for process in (one, two):
        process.go_to("after it left", most=20)
    return story


def test_of_two_about_to_send_again_one_does() -> None:
    story = two_about_to_send_again()

    assert story.world.sends == 2
    story.ends()


def test_without_comparing_both_do() -> None:
    with pytest.raises(Violated, match="sent 3 times"):
        two_about_to_send_again(protocol=replace(Rules(), compares=False)).ends()


def test_an_executor_paused_before_its_request_leaves_is_the_limit_of_the_promise() -> None:
    """Between the last look at the clock and the wire nobody can hold a request back. A provider that is idempotent by
    key makes one effect of both; at a plain one there is no second sending, and the late one is found later."""
    for kind, sends in ((Effects, 2), (EffectsAtAPlainProvider, 1)):
        story = Story(kind)
        late = story.lane("before it leaves")
        story.lane()
        story.passes()
        story.reconciler()
        assert story.state is EffectState.ABSENT or kind is Effects
        late.go()
        for request in story.machine.undecided:
            story.world.deliver(request)

        story.ends()

        assert (story.world.sends, len(story.world.transfers), story.state) == (
            sends,
            1,
            EffectState.COMMITTED,
        )


def test_an_executor_held_up_in_the_ledger_does_not_send_at_all() -> None:
    story = Story()
    late = story.lane("after begin_send")
    story.passes()
    late.go_to("nowhere")

    assert story.world.sends == 0
    story.ends()


def test_a_ledger_emptied_under_the_very_first_effect_is_noticed() -> None:
    story = Story(EffectsAtAPlainProvider)
    story.lane("after it left").kill()
    story.lose_all()
    story.world.empty()

    refused = story.lane()

    assert type(refused.error).__name__ == "Refusal"
    story.ends()
    assert story.world.sends == 1


def a_rival_takes_the_confirmation(*, is_emptied_again: bool, **changed: Any) -> Story:
    """A fence holds a lane's words back only from when a newer lane has opened: the first effect is told of as prepared
    though its Redis is gone and another has its confirmation."""
    story = Story(**changed)
    late = story.lane("before announce")
    story.world.empty()
    story.world.ask_for_the_rival()
    late.go_to("nowhere")
    if is_emptied_again:
        story.world.empty()
    return story


@pytest.mark.parametrize("is_emptied_again", [False, True])
def test_a_confirmation_that_another_took_after_redis_forgot_allows_no_second_sending(
    is_emptied_again: bool,
) -> None:
    story = a_rival_takes_the_confirmation(is_emptied_again=is_emptied_again)

    story.ends()

    assert story.world.sends == 0


@pytest.mark.parametrize("is_emptied_again", [False, True])
def test_without_telling_rivals_apart_both_happen(is_emptied_again: bool) -> None:
    protocol = replace(Rules(), restores_rivals_apart=False)

    with pytest.raises(Violated, match="one confirmation allowed two effects"):
        a_rival_takes_the_confirmation(is_emptied_again=is_emptied_again, protocol=protocol).ends()
