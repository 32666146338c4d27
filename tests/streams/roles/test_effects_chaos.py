"""Effects while the provider's answers are lost, late or doubled, or the provider dies: one transfer a key.

Kills at each step: test_effects_steps.py. The ledger's Redis: test_effects_redis.py. Everything at once:
tests/chaos/payments.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from ticketgate.streams.parts.kafka import Kafka

from ...support.payment_funnel import Record, assert_consistent, said
from ...support.proposals import key_of, proposal
from ...support.stepped_effects import SteppedEffects, stepped_effects

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture(scope="module")
def effects(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SteppedEffects]:
    with stepped_effects(kafka, tmp_path_factory.mktemp("answers")) as effects:
        yield effects


@dataclass(frozen=True)
class Answer:
    """What one request meets at the provider, and what comes of it. posts: requests in the end."""

    fault: str
    seconds: float = 0.0
    statuses: tuple[str, ...] = ("verified_by_readback",)
    reasons: tuple[str, ...] = ("transport_timed_out_after_commit",)
    posts: int = 1
    read_back: tuple[str, int] | None = None
    """What so many read-backs meet, from the first."""

    @property
    def case_id(self) -> str:
        """Its case."""
        return "-".join([self.fault or "plain", *map(str, self.read_back or ())])


BEFORE = {"statuses": ("created",), "reasons": ("transport_timed_out_before_commit",), "posts": 2}
ANSWERS = (
    Answer("", statuses=("created",), reasons=()),
    Answer("silence", **BEFORE),
    Answer("drop", **BEFORE),
    Answer("unavailable", **BEFORE),
    Answer("commit_then_silence"),
    Answer("commit_then_drop"),
    Answer("commit_then_unavailable"),
    Answer("commit_then_late_answer", seconds=1.2),
    # Later than the time-out, sooner than the settle time.
    Answer("late_commit", seconds=1.0),
    Answer("serve_twice", statuses=("replayed",), reasons=(), posts=2),
    # Both in one packet are no answer; one after the other, the second is nobody's.
    Answer("answer_twice", statuses=("created", "verified_by_readback")),
    # A success that cannot be read back is no success yet, and no reason to ask again.
    Answer("", reasons=("verified_late",), read_back=("unavailable", 3)),
    Answer("", reasons=("verified_late",), read_back=("silence", 1)),
    # A reader that lags behind what was committed; and one that lags for longer than its provider promised.
    Answer("commit_then_silence", read_back=("not_found", 1)),
    Answer(
        "commit_then_drop",
        statuses=("replayed",),
        reasons=("transport_timed_out_before_commit",),
        posts=2,
        read_back=("not_found", 2),
    ),
)


@pytest.fixture(scope="module")
def settled(effects: SteppedEffects) -> dict[str, Record]:
    """All of them at once, one lane for all; the newest receipt of each."""
    for answer in ANSWERS:
        effects.delegate(answer.case_id)
        if answer.fault:
            effects.bank.fail(answer.fault, key=key_of(answer.case_id), seconds=answer.seconds)
        if answer.read_back is not None:
            do, times = answer.read_back
            effects.bank.fail(do, on="read_back", key=key_of(answer.case_id), times=times)
    effects.hand().wait_ready()
    effects.send(*(proposal(answer.case_id, actor_id=answer.case_id) for answer in ANSWERS))
    found = {answer.case_id: effects.effect(answer.case_id) for answer in ANSWERS}
    effects.wait_settled()
    assert_consistent(effects.records("receipts"))
    return found


@pytest.mark.parametrize("answer", ANSWERS, ids=[each.case_id for each in ANSWERS])
def test_whatever_becomes_of_an_answer_there_is_one_transfer(
    effects: SteppedEffects, settled: dict[str, Record], answer: Answer
) -> None:
    receipt = settled[answer.case_id]

    assert said(receipt)[0] == "accept"
    assert receipt["status"] in answer.statuses
    if len(answer.statuses) == 1:
        assert said(receipt)[2] == answer.reasons
    paid = effects.bank.account(key_of(answer.case_id))
    assert (paid.posts, paid.transfers) == (answer.posts, [receipt["provider_id"]])


def test_a_refusal_is_final(effects: SteppedEffects) -> None:
    effects.delegate("refused")
    effects.bank.fail("refuse", key=key_of("refused"))
    effects.hand().wait_ready()
    effects.send(proposal("refused", actor_id="refused"))

    receipt = effects.effect("refused")

    effects.wait_settled()
    status, stage, (reason,) = said(receipt)
    assert (status, stage) == ("reject", "outcome")
    assert "the account is frozen" in reason
    assert effects.bank.account(key_of("refused")).posts == 1


def test_what_stands_and_is_not_what_was_asked_for_is_rejected_and_left_alone(
    effects: SteppedEffects,
) -> None:
    effects.delegate("altered")
    effects.bank.fail("commit_then_silence", key=key_of("altered"))
    effects.bank.fail("unavailable", on="read_back", key=key_of("altered"), times=1_000)
    effects.hand().wait_ready()
    effects.send(proposal("altered", actor_id="altered"))
    effects.wait_until(lambda: effects.bank.account(key_of("altered")).transfers)
    effects.bank.alter(key_of("altered"), amount_gbp="6000.00")

    effects.bank.heal()

    receipt = effects.effect("altered")
    assert said(receipt) == ("reject", "readback", ("amount_gbp:wanted=600.00:observed=6000.00",))
    effects.wait_settled()
    assert effects.bank.account(key_of("altered")).posts == 1


def test_while_nothing_can_be_read_back_an_outcome_is_held_and_told_of(effects: SteppedEffects) -> None:
    effects.delegate("held", "behind")
    effects.bank.fail("silence", key=key_of("held"))
    effects.bank.fail("unavailable", on="read_back", key=key_of("held"), times=1_000)
    hand = effects.hand()
    hand.wait_ready()
    effects.send(proposal("held", actor_id="held"), proposal("behind", actor_id="behind"))
    # It holds nothing up.
    effects.effect("behind", "committed")
    receipt = effects.effect("held", "unknown")
    effects.wait_until(lambda: hand.metric("ticketgate_unknown_outcomes_open") == 1)

    listed = effects.gate.run("reconcile", "--json")

    assert said(receipt) == ("unknown", "outcome", ("timeout_and_no_readback",))
    assert listed.returncode == 3, listed.stderr
    assert key_of("held") in listed.stdout
    assert effects.bank.account(key_of("held")).posts == 1
    effects.bank.heal()
    assert effects.effect("held", "committed")["sends"] == 2
    effects.wait_settled()
    assert effects.gate.run("reconcile").returncode == 0


def test_a_permission_revoked_before_the_second_sending_stops_it(effects: SteppedEffects) -> None:
    effects.delegate("late-revoked")
    effects.bank.fail("silence", key=key_of("late-revoked"))
    # Judged, judged again before the first sending, and then no more.
    effects.bank.fail("other", on="authority", key="late-revoked", skip=2, times=1_000)
    effects.hand().wait_ready()
    effects.send(proposal("late-revoked", actor_id="late-revoked"))

    receipt = effects.effect("late-revoked")

    assert said(receipt) == ("deny", "authority", ("tool_not_delegated",))
    assert receipt["judged_again"]["evidence"]["authority"] is None
    effects.wait_settled()
    assert effects.bank.account(key_of("late-revoked")).posts == 1
    effects.bank.heal()


def test_a_provider_that_is_killed_and_comes_back_has_paid_each_once(effects: SteppedEffects) -> None:
    effects.outlive(effects.bank, actor_id="bank", cases=[f"bank-{n}" for n in range(12)])


def test_a_provider_that_is_not_idempotent_is_never_asked_twice(kafka: Kafka, tmp_path: Path) -> None:
    with stepped_effects(kafka, tmp_path, idempotent_by_key=False) as effects:
        effects.bank.behave(idempotent_by_key=False)
        effects.delegate("lost", "done", "killed")
        effects.bank.fail("silence", key=key_of("lost"))
        effects.bank.fail("commit_then_silence", key=key_of("done"))
        hand = effects.hand()
        hand.wait_ready()
        effects.send(proposal("lost", actor_id="lost"), proposal("done", actor_id="done"))

        assert effects.effect("done")["status"] == "verified_by_readback"
        absent = effects.effect("lost", "absent")

        assert said(absent)[0] == "unknown"
        effects.arm("after ledger.begin_send")
        effects.send(proposal("killed", actor_id="killed"))
        effects.wait_struck(hand)
        effects.relieve()
        effects.effect("killed", "absent")
        effects.wait_taken()
        posts = {name: effects.bank.account(key_of(name)).posts for name in ("lost", "done", "killed")}
        assert posts == {"lost": 1, "done": 1, "killed": 0}
        listed = effects.gate.run("reconcile", "--json").stdout
        assert [key for key in map(key_of, posts) if key in listed] == [key_of("lost"), key_of("killed")]
