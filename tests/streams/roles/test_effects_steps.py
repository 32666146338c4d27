"""kill -9 and SIGSTOP at every step of the effects' state machine: nothing is sent more often than the rules allow.

Each step is one test: a worker that is struck there, and another that goes on. Rules: one sending, and one more under
the same key only after authoritative state said, later than the settle time, that nothing stands. `make test` runs the
steps between which an effect's state changes, `make chaos` all of them.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from ticketgate.streams.parts.kafka import Kafka

from ...support.payment_funnel import Record, assert_consistent, effect_of, said
from ...support.payments import Account
from ...support.proposals import key_of, proposal
from ...support.stepped_effects import SteppedEffects, stepped_effects

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture(scope="module")
def effects(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SteppedEffects]:
    with stepped_effects(kafka, tmp_path_factory.mktemp("steps")) as effects:
        yield effects


CREATED = ("created",)
READ = ("verified_by_readback",)
# A reconciler asks while a new lane, given the same record again, reads back: either may be the first to know.
RACED = CREATED + READ


@dataclass(frozen=True)
class Step:
    """Where a worker is struck. posts: requests that the provider had got by then, and in the end; sends: in the end,
    by the receipt; what the ledger counts as sent may never have left. statuses: how the effect may be known at last.
    is_long: left to `make chaos`."""

    at: str
    nth: int = 1
    posts: tuple[int, int] = (0, 1)
    sends: int = 1
    statuses: tuple[str, ...] = CREATED
    is_long: bool = False

    @property
    def name(self) -> str:
        """For the case's id."""
        return f"{self.at} {self.nth}".replace(" ", "-").replace(".", "-")


def steps_of(steps: tuple[Step, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "step",
        [
            pytest.param(each, id=each.name, marks=[pytest.mark.chaos] if each.is_long else [])
            for each in steps
        ],
    )


LANE = (
    Step("before ledger.prepare", is_long=True),
    Step("after ledger.prepare"),
    Step("before kafka.commit", is_long=True),  # of the `prepared` receipt
    Step("after kafka.commit"),
    Step("after lookup.world", is_long=True),
    Step("before ledger.begin_send", is_long=True),
    # From here on it may have been sent, for all that anybody knows: found absent, it is sent a second time.
    Step("after ledger.begin_send", sends=2, statuses=RACED),
    Step("before port.execute", sends=2, statuses=RACED),
    Step("after port.execute", posts=(1, 1), statuses=READ),
    Step("after port.read_back", posts=(1, 1), statuses=READ, is_long=True),
    Step("after ledger.settle", posts=(1, 1)),
    Step("before kafka.commit", nth=2, posts=(1, 1)),  # of what became of it, with the offset
    Step("after kafka.commit", nth=2, posts=(1, 1), is_long=True),
)


@steps_of(LANE)
def test_a_worker_killed_while_it_carries_out(effects: SteppedEffects, step: Step) -> None:
    case_id = f"killed-{step.name}"
    effects.delegate(case_id)
    hand = effects.hand()
    hand.wait_ready()
    effects.arm(step.at, nth=step.nth)
    effects.send(proposal(case_id, actor_id=case_id))
    effects.wait_struck(hand)
    assert effects.bank.account(key_of(case_id)).posts == step.posts[0]

    effects.relieve()

    assert_committed(effects, case_id, step)


# The first request is lost on its way: what it asked for is found absent, and asked for once more.
RECONCILER = (
    Step("after ledger.take_due", posts=(1, 2), sends=2, is_long=True),
    Step("after port.read_back", nth=2, posts=(1, 2), sends=2, is_long=True),
    Step("after ledger.settle", posts=(1, 2), sends=2),  # as absent
    Step("after announce", posts=(1, 2), sends=2, is_long=True),  # that it is
    Step("after ledger.tell", posts=(1, 2), sends=2, is_long=True),
    Step("after announce", nth=2, posts=(1, 2), sends=2, is_long=True),  # that it is prepared again
    Step("before ledger.begin_send", nth=2, posts=(1, 2), sends=2, is_long=True),
    Step("after port.execute", nth=2, posts=(2, 2), sends=2, statuses=READ),
    Step("after port.read_back", nth=3, posts=(2, 2), sends=2, statuses=READ, is_long=True),
    Step("after ledger.settle", nth=2, posts=(2, 2), sends=2),
    Step("after announce", nth=3, posts=(2, 2), sends=2, is_long=True),
    Step("after ledger.tell", nth=2, posts=(2, 2), sends=2, is_long=True),
)


@steps_of(RECONCILER)
def test_a_worker_killed_while_it_reconciles(effects: SteppedEffects, step: Step) -> None:
    case_id = f"reconciled-{step.name}"
    effects.delegate(case_id)
    effects.bank.fail("silence", key=key_of(case_id))
    hand = effects.hand()
    hand.wait_ready()
    effects.arm(step.at, nth=step.nth)
    effects.send(proposal(case_id, actor_id=case_id))
    effects.wait_struck(hand)
    assert effects.bank.account(key_of(case_id)).posts == step.posts[0]

    effects.relieve()

    assert_committed(effects, case_id, step)


@pytest.mark.parametrize(
    "at", ["after ledger.begin_send", pytest.param("before port.execute", marks=pytest.mark.chaos)]
)
def test_a_worker_killed_when_it_may_have_sent_a_second_time(effects: SteppedEffects, at: str) -> None:
    # It did not; but nobody can know, and there is no third time: a person's word ends it.
    case_id = f"second-{at.replace(' ', '-').replace('.', '-')}"
    effects.delegate(case_id)
    effects.bank.fail("silence", key=key_of(case_id))
    hand = effects.hand()
    hand.wait_ready()
    effects.arm(at, nth=2)
    effects.send(proposal(case_id, actor_id=case_id))
    effects.wait_struck(hand)

    effects.relieve()

    receipt = wait_absent_for_good(effects, case_id)
    effects.wait_taken()
    assert said(receipt)[0] == "unknown"
    assert effects.bank.account(key_of(case_id)).posts == 1
    assert effects.bank.account(key_of(case_id)).transfers == []
    settle_by_hand(effects, case_id)


DENIED = (
    Step("after lookup.world", is_long=True),
    Step("before ledger.settle", is_long=True),
    Step("after ledger.settle"),
    Step("before kafka.commit", nth=2, is_long=True),
    Step("after kafka.commit", nth=2, is_long=True),
)


@steps_of(DENIED)
def test_a_worker_killed_while_it_stops_an_effect(effects: SteppedEffects, step: Step) -> None:
    case_id = f"denied-{step.name}"
    effects.delegate(case_id)
    effects.bank.fail("other", on="authority", key=case_id, skip=1, times=1_000)
    hand = effects.hand()
    hand.wait_ready()
    effects.arm(step.at, nth=step.nth)
    effects.send(proposal(case_id, actor_id=case_id))
    effects.wait_struck(hand)

    effects.relieve()

    receipt = effects.effect(case_id)
    effects.wait_settled()
    assert said(receipt) == ("deny", "authority", ("tool_not_delegated",))
    assert effects.bank.account(key_of(case_id)) == Account()


@pytest.mark.parametrize(
    ("fault", "seconds", "posts"),
    [
        ("commit_then_silence", 0.0, 1),
        pytest.param("silence", 0.0, 2, marks=pytest.mark.chaos),
        # On its way for as long as the provider said that it may be, and for longer.
        pytest.param("late_commit", 1.5, 1, marks=pytest.mark.chaos),
        ("overtaken", 0.0, 2),
    ],
)
def test_a_worker_killed_while_its_request_is_under_way(
    effects: SteppedEffects, fault: str, seconds: float, posts: int
) -> None:
    case_id = f"under-way-{fault}-{posts}"
    effects.delegate(case_id)
    effects.bank.fail(fault, key=key_of(case_id), seconds=seconds)
    hand = effects.hand()
    hand.wait_ready()
    effects.send(proposal(case_id, actor_id=case_id))
    effects.wait_until(lambda: effects.bank.account(key_of(case_id)).posts == 1)
    hand.kill()

    effects.relieve()

    effects.effect(case_id, "committed")
    effects.wait_settled()
    # The late ones too.
    served = posts - (fault == "silence")
    effects.wait_until(lambda: effects.bank.account(key_of(case_id)).served == served)
    paid = effects.bank.account(key_of(case_id))
    assert (paid.posts, len(paid.transfers)) == (posts, 1)


STOPPED = (
    Step("after ledger.prepare", is_long=True),
    Step("after kafka.commit", is_long=True),
    Step("before ledger.begin_send", is_long=True),
    # Woken, it does not send what others have been looking for meanwhile.
    Step("after ledger.begin_send", sends=2, statuses=RACED),
    # Nothing keeps it from sending here: under the same key, to a provider that is idempotent by key.
    Step("before port.execute", posts=(0, 2), sends=2, statuses=RACED),
    Step("after port.execute", posts=(1, 1), statuses=READ, is_long=True),
    Step("before ledger.settle", posts=(1, 1), statuses=READ, is_long=True),
    Step("before kafka.commit", nth=2, posts=(1, 1), is_long=True),
)


@steps_of(STOPPED)
def test_a_worker_that_stands_still_and_wakes_when_its_successor_has_finished(
    effects: SteppedEffects, step: Step
) -> None:
    case_id = f"stopped-{step.name}"
    effects.delegate(case_id)
    zombie = effects.hand()
    zombie.wait_ready()
    effects.arm(step.at, nth=step.nth, strike=signal.SIGSTOP)
    effects.send(proposal(case_id, actor_id=case_id))
    effects.wait_struck(zombie, signal.SIGSTOP)
    effects.relieve()
    effects.effect(case_id, "committed")

    zombie.process.send_signal(signal.SIGCONT)

    # It finds that it was superseded, and leaves in order; what it had still to do it has done by then.
    zombie.wait_for(lambda state: state.get("ready") is True)
    assert zombie.stop() == 0
    assert_committed(effects, case_id, step)


STOPPED_RECONCILER = (
    Step("after ledger.take_due", posts=(1, 2), sends=2, is_long=True),
    Step("after announce", nth=2, posts=(1, 2), sends=2, is_long=True),
    # Nobody sends a third time; woken, it sends what it was about to.
    Step("before port.execute", nth=2, posts=(1, 2), sends=2, statuses=READ),
)


@steps_of(STOPPED_RECONCILER)
def test_a_worker_that_stands_still_while_it_reconciles(effects: SteppedEffects, step: Step) -> None:
    case_id = f"idle-{step.name}"
    effects.delegate(case_id)
    effects.bank.fail("silence", key=key_of(case_id))
    zombie = effects.hand()
    zombie.wait_ready()
    effects.arm(step.at, nth=step.nth, strike=signal.SIGSTOP)
    effects.send(proposal(case_id, actor_id=case_id))
    effects.wait_struck(zombie, signal.SIGSTOP)
    effects.relieve()
    # Before it wakes, its successor is as far as it can get.
    if step.statuses == READ:
        wait_absent_for_good(effects, case_id)
    else:
        effects.effect(case_id, "committed")

    zombie.process.send_signal(signal.SIGCONT)

    zombie.wait_for(lambda state: state.get("ready") is True)
    assert_committed(effects, case_id, step)
    assert zombie.stop() == 0


def assert_committed(effects: SteppedEffects, case_id: str, step: Step) -> None:
    """One transfer, as often asked for as it should be, the receipts say so, and nothing is open or held up."""
    receipt = effects.effect(case_id, "committed")
    effects.wait_settled()
    paid = effects.bank.account(key_of(case_id))
    assert len(paid.transfers) == 1
    assert paid.posts == step.posts[1]
    assert receipt["status"] in step.statuses
    assert (receipt["sends"], receipt["provider_id"]) == (step.sends, paid.transfers[0])
    assert_consistent(each for each in effects.records("receipts") if effect_of(case_id)(each))


def wait_absent_for_good(effects: SteppedEffects, case_id: str) -> Record:
    """The receipt that says: sent twice, for all that is known, and nothing stands."""
    return effects.wait_for(
        "receipts",
        lambda each: effect_of(case_id)(each) and (each["effect_state"], each["sends"]) == ("absent", 2),
    )[-1]


def settle_by_hand(effects: SteppedEffects, case_id: str) -> None:
    """As a person does."""
    word = ("--as", "absent", "--by", "the tests", "--reason", "the bank has no such transfer")
    done = effects.gate.run("reconcile", "--settle", key_of(case_id), *word)
    assert done.returncode == 0, done.stderr
    effects.wait_settled()
