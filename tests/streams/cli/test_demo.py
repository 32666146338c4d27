"""The demos, whole: each starts its own broker, Redis and worker, and says of everything that it sent what came of it.

Without Kafka's jars they take the embedded broker; an empty folder of jars makes them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ticketgate.streams.demo import funnel_demo
from ticketgate.streams.demo.funnel_cases import script_of
from ticketgate.streams.parts.bank import Script
from ticketgate.streams.parts.java import JARS_VARIABLE
from ticketgate.streams.parts.kafka import Kafka

from .conftest import Run

# As agents/funnel/examples/payments.jsonl has it, and at the end what the mended attempt must come to.
EXPECTED = [
    ("positive_quote", 1, "dispatch", "accept", "outcome", [], None),
    (
        "wrong_tool_valid_shape",
        1,
        "review",
        "reject",
        "tool_selection",
        ["requested:quote", "proposed:schedule_transfer"],
        None,
    ),
    (
        "semantic_amount_drift",
        1,
        "repairs",
        "repair",
        "semantics",
        ["amount_gbp:proposal=660.00:request=600.00"],
        None,
    ),
    (
        "timeout_after_commit",
        1,
        "dispatch",
        "accept",
        "readback",
        ["transport_timed_out_after_commit"],
        ("committed", "verified_by_readback", "tr_0001"),
    ),
    (
        "duplicate_same_key",
        1,
        "dispatch",
        "accept",
        "postcondition",
        [],
        ("committed", "replayed", "tr_0001"),
    ),
    (
        "same_key_different_effect",
        1,
        "dispatch",
        "reject",
        "idempotency",
        ["idempotency key reused for a different effect"],
        ("rejected", None, None),
    ),
    ("valid_but_unauthorised", 1, "review", "deny", "authority", ["amount_exceeds_limit:500.00"], None),
    (
        "semantic_amount_drift",
        2,
        "dispatch",
        "accept",
        "postcondition",
        [],
        ("committed", "created", "tr_0002"),
    ),
]
COUNTS = {"cases": 8, "dispatched": 5, "review": 2, "repairs": 1, "effects": 4, "transfers": 2}


@pytest.fixture
def no_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No jars, so no Kafka."""
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path))


def told(line: dict[str, Any]) -> tuple[object, ...]:
    """What a line of JSON says of a case, in the order of EXPECTED."""
    verdict, effect = line["verdict"], line["effect"]
    ended = None if effect is None else (effect["effect_state"], effect["status"], effect["provider_id"])
    return (
        line["case"],
        line["attempt"],
        line["went_to"],
        verdict["status"],
        verdict["stage"],
        verdict["reasons"],
        ended,
    )


@pytest.mark.kafka
def test_the_funnels_demo_ends_as_the_seed_says_on_kafka(kafka: Kafka, ticketgate: Run) -> None:
    ran = ticketgate("demo", "--funnel", "--json")

    assert ran.code == 0, ran.err
    *cases, summary = ran.lines
    assert [told(each) for each in cases] == EXPECTED
    assert summary == {**COUNTS, "guarantee": "exactly_once", "seconds": summary["seconds"]}


@pytest.mark.usefixtures("no_kafka")
def test_the_funnels_demo_ends_so_on_the_embedded_broker_too_and_says_what_that_does_not_promise(
    ticketgate: Run,
) -> None:
    ran = ticketgate("demo", "--funnel")

    assert ran.code == 0, ran.err
    lines = ran.out.decode().splitlines()
    for line, expected in zip(lines[1:], EXPECTED, strict=False):
        assert line.startswith(f"{expected[0]} "), line
        assert all(each in line for each in expected[2:5]), line
    assert any(line.startswith("at the bank: 2 transfers, under 2 keys; it got 2 requests") for line in lines)
    assert lines[-1].startswith("guarantee: at_least_once: this broker has no transactions")
    assert "taking the embedded broker Tansu" in ran.err


@pytest.mark.usefixtures("no_kafka")
def test_a_bank_that_pays_twice_is_found_out(ticketgate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(cases: Any) -> Script:
        return replace(script_of(cases), pays_twice=True)

    monkeypatch.setattr(funnel_demo, "script_of", twice)

    ran = ticketgate("demo", "--funnel", "--json")

    assert ran.code == 3
    *cases, summary = ran.lines
    assert summary["transfers"] == 4
    assert "not as expected: 2 transfers under the key exactly-once-demo" in ran.err
    assert "not as expected: 2 transfers under the key semantic-drift-01" in ran.err
    paid = next(each for each in cases if each["case"] == "timeout_after_commit")
    assert paid["unmet"] == ["committed: expected 1, got 2"]


@pytest.mark.kafka
def test_the_tickets_demo_accounts_for_every_ticket(kafka: Kafka, ticketgate: Run) -> None:
    ran = ticketgate("demo", "--json")

    assert ran.code == 0, ran.err
    (summary,) = ran.lines
    ended = sum(summary[each] for each in ("dispatched", "review", "dead_letter", "replayed", "skipped"))
    assert (summary["tickets"], ended, summary["guarantee"]) == (102, 102, "exactly_once")
    assert_all_are_settled(summary)


def assert_all_are_settled(summary: dict[str, Any]) -> None:
    """All in review but the two whose ids were used before: what they collided with is settled."""
    assert all(summary["settled"].values())
    assert sum(summary["settled"].values()) == summary["review"] - 2


@pytest.mark.usefixtures("no_kafka")
def test_on_the_embedded_broker_too_a_person_settles_what_is_in_review(ticketgate: Run) -> None:
    ran = ticketgate("demo", "--json")

    assert ran.code == 0, ran.err
    (summary,) = ran.lines
    assert summary["guarantee"] == "at_least_once"
    assert_all_are_settled(summary)


@pytest.mark.parametrize("option", ["--tickets", "--policy"])
def test_what_is_for_tickets_is_refused_beside_the_funnel(
    option: str, ticketgate: Run, tmp_path: Path
) -> None:
    file = tmp_path / "any"
    file.touch()

    ran = ticketgate("demo", "--funnel", option, file)

    assert (ran.code, ran.out) == (2, b"")
    assert ran.err == (
        f"ticketgate: {option} is for tickets, and --funnel proposes payments; leave one of them out\n"
    )


@pytest.mark.kafka
@pytest.mark.redis
def test_what_is_for_a_person_is_settled_on_the_pages(ticketgate: Run, kafka: Kafka, tmp_path: Path) -> None:
    del kafka  # its jars are there
    tickets = tmp_path / "tickets.jsonl"
    texts = {"A": "", "B": "My lawyer will write to you. I was charged twice and want my money back today!"}
    tickets.write_text("".join(f'{{"id": "{name}", "state": "{text}"}}\n' for name, text in texts.items()))

    ran = ticketgate("demo", "--review", "--tickets", tickets, "--json")

    *settled, summary = ran.lines
    assert ran.code == 0, ran.err
    assert {each["ticket_id"] for each in settled} >= {"A"}
    assert {each["stage"] for each in settled} <= {"accepted", "rejected"}
    assert summary["tickets"] == len(settled)
    assert summary["dispatched"] == sum(each["stage"] == "accepted" for each in settled)


def test_the_review_demo_goes_with_no_other(ticketgate: Run) -> None:
    ran = ticketgate("demo", "--review", "--funnel")

    assert ran.code == 2
    assert "leave --funnel and --kill out" in ran.err
