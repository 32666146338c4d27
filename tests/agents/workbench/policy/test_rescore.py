"""Recorded tickets put to another model: what its answers do to thresholds and verdicts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.workbench.policy.rescore import BATCH, Moved, Rescored, rescore
from ticketgate.codecs.values.strict import JsonValue

from ....support.deciding import MODEL, ByHand, policy, record, support_answers

TICKET: dict[str, JsonValue] = {"id": "a", "state": "I paid twice."}

# In the order of LABELS: urgent, review, auto_reply, billing, technical.
ACCEPTED = (0.9, 0.9, 0.1, 0.9, 0.2)
NO_ROUTE = (0.9, 0.9, 0.1, 0.2, 0.2)


def asked(*records: JsonValue, by_id: Mapping[str, Any] | None = None, tickets: Any = None) -> Rescored:
    return rescore(records, policy=policy(), scorer=ByHand(by_id=by_id or {}), tickets=tickets)


def test_thresholds_and_verdicts_are_told_before_and_after() -> None:
    records = [record(name, *ACCEPTED, ticket=TICKET) for name in ("kept", "lost", "other")]
    records.append(record("won", *NO_ROUTE, ticket=TICKET))
    answers = {
        "kept": support_answers(*ACCEPTED),
        "lost": support_answers(0.9, 0.9, 0.1, 0.4, 0.2),
        "other": support_answers(0.9, 0.9, 0.1, 0.3, 0.8),
        "won": support_answers(0.9, 0.9, 0.1, 0.7, 0.2),
    }

    found = asked(*records, by_id=answers)

    assert (found.compared, found.same) == (4, 1)
    assert dict(found.turned) == {"accept to review": 1, "other labels": 1, "review to accept": 1}
    assert found.examples["accept to review"][0].reasons == ("exactly one of billing, technical",)
    assert found.examples["other labels"][0].reasons == (
        "billing, review, urgent before, review, technical, urgent now",
    )
    assert found.nouls["billing"].to_json() == {
        "threshold": 0.5,
        "tickets": 4,
        "selected_before": 3,
        "selected_after": 2,
        "newly_selected": 1,
        "no_longer_selected": 2,
        "same_share_from": 0.4,
    }
    assert json.loads(json.dumps(found.to_json()))["questions"]["urgent"]["selected_after"] == 4


def test_a_record_without_its_ticket_takes_it_from_those_given_besides() -> None:
    found = asked(
        record("a", *ACCEPTED), by_id={"a": support_answers(*ACCEPTED)}, tickets={"a": TICKET, "b": TICKET}
    )

    assert found.same == 1


def test_what_cannot_be_asked_is_counted_apart() -> None:
    found = asked(
        {"id": "a ticket"},
        record("without", *ACCEPTED),
        record("stateless", *ACCEPTED, ticket={"id": "stateless"}),
        record("empty", *ACCEPTED, verdict={"status": "review", "stage": "state"}, ticket=TICKET),
        record("less", *ACCEPTED, answers={"urgent": {"type": "noul", "noul": 0.5}}, ticket=TICKET),
    )

    assert found.compared == 0
    assert dict(found.not_asked) == {
        "not a decision record": 1,
        "its ticket is not in the record; give the tickets besides": 2,
        "refused at state, before a policy was asked": 1,
        "question review of the policy was not asked": 1,
    }


@pytest.mark.parametrize("answer", [{"noul": "0.9"}, {"noul": True}, {"noul": 2}, [], None])
def test_answers_that_are_none_move_no_threshold_and_go_to_review(answer: Any) -> None:
    found = asked(record("a", *ACCEPTED, ticket=TICKET), by_id={"a": {"urgent": answer}})

    assert found.nouls["urgent"].before == []
    assert dict(found.turned) == {"accept to review": 1}


def test_an_empty_state_is_not_put_to_the_model() -> None:
    scorer = ByHand()

    found = rescore([record("a", *ACCEPTED, ticket={"id": "a", "state": ""})], policy=policy(), scorer=scorer)

    assert scorer.asked == []
    assert found.same == 1


def test_tickets_are_asked_in_batches_and_records_of_this_model_are_told() -> None:
    scorer = ByHand(support_answers(*ACCEPTED))
    model: JsonValue = {"id": MODEL.id, "hash": MODEL.hash}
    records = [record(str(n), *ACCEPTED, ticket=TICKET, model=model) for n in range(BATCH + 1)]

    found = rescore([{"topic": "review", "value": each} for each in records], policy=policy(), scorer=scorer)

    assert [len(ids) for ids, _ in scorer.asked] == [BATCH, 1]
    assert (found.same, found.by_this_model) == (BATCH + 1, BATCH + 1)


CHANCES = st.floats(0, 1)


@given(pairs=st.lists(st.tuples(CHANCES, CHANCES), max_size=30), threshold=st.floats(0.01, 1))
def test_the_same_share_threshold_selects_at_least_as_many_and_none_above_it_does(
    pairs: list[tuple[float, float]], threshold: float
) -> None:
    moved = Moved(threshold, [one for one, _ in pairs], [other for _, other in pairs])
    count = moved.selected(moved.before)

    share = moved.same_share_from

    if share is None:
        assert count == 0
    else:
        assert sum(chance >= share for chance in moved.after) >= count
        assert sum(chance > share for chance in moved.after) < count
    assert moved.selected(moved.after) == count + moved.newly - moved.no_longer
