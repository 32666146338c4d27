"""What we write we can read: every record and every line of ours that another reader of ours takes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from ticketgate.agents.deciding.decide import decide
from ticketgate.agents.policy import parse_policy
from ticketgate.agents.scoring.fixed import FixedScorer
from ticketgate.agents.workbench.funnel.cases import read_cases as read_funnel_cases
from ticketgate.agents.workbench.funnel.export import export_cases
from ticketgate.agents.workbench.policy.case_file import read_cases
from ticketgate.agents.workbench.policy.recorded_case import policy_case
from ticketgate.agents.workbench.policy.trial import run_cases
from ticketgate.codecs.records.case_decision import decode_case_decision
from ticketgate.codecs.records.decision import DecisionRecord, ModelRef, read_decision
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.records.receipt import decode_receipt
from ticketgate.codecs.records.ticket import Ticket, decode_ticket
from ticketgate.codecs.values.strict import Malformed, decode, encode
from ticketgate.store.claims import Claim
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.envelope import read_line, write_line
from ticketgate.streams.lane.taking.intake import Arrival
from ticketgate.streams.lane.taking.records import RecordWriter, output_topics
from ticketgate.streams.roles.effects.dispatched import _read as read_on_dispatch

from tests.streams.cli.conftest import Run, no_settings, ticketgate
from tests.support.examples import some, text, values
from tests.support.fakes import record as kafka_record
from tests.support.funnel_records import case_decision, decision_receipt, effect_receipt

__all__ = ["no_settings", "ticketgate"]

AT = datetime(2026, 11, 30, tzinfo=UTC)
POLICY = """
name = "p"
version = "1"
threshold = 0.5
[questions.urgent]
type = "noul"
instructions = "Is it?"
[questions.vip]
type = "noul"
from = "attributes.vip"
[[effects]]
when = "urgent"
tool = "tell"
arguments = { inside = { of = ["{attributes.deep}"] }, who = "{ticket.id}" }
"""
WRITER = RecordWriter(output_topics(Settings.model_validate({})), 10**7, dispatch_with_ticket=True)


def nested(depth: int, kind: str) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value] if kind == "array" else {"a": value}
    return value


deep = st.builds(nested, st.integers(0, 64), st.sampled_from(["array", "object"])) | values
tickets = st.fixed_dictionaries(
    {"id": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), "state": deep},
    optional={
        "attributes": st.fixed_dictionaries({"vip": st.booleans(), "deep": deep}, optional={"more": deep}),
        "tenant": text,
    },
)


def decided(ticket: Ticket, noul: float) -> DecisionRecord:
    scorer = FixedScorer(
        {ticket.id: {"urgent": {"type": "noul", "noul": noul}}}, model=ModelRef("fixed", "0" * 64)
    )
    (decision,) = decide([ticket], policy=parse_policy(POLICY), scorer=scorer)
    arrival = Arrival(
        ticket, Claim(IdempotencyKey("k" * 8), Coordinate("tickets", 0, 1), Fingerprint("f")), ()
    )
    return WRITER._record(arrival, decision, IdempotencyKey("0f" * 32), AT, with_ticket=True)


@some
@given(tickets, st.sampled_from([0.1, 0.9]))
@example(
    {"id": "T", "state": nested(63, "array"), "attributes": {"vip": True, "deep": nested(62, "object")}}, 0.9
)
def test_what_is_decided_of_a_ticket_is_read_by_every_reader_of_ours(written: Any, noul: float) -> None:
    ticket = decode_ticket(encode(written))
    if isinstance(ticket, Malformed):
        return
    record = decided(ticket, noul)
    data = record.encode()

    value = decode(data, max_bytes=len(data), is_our_own=True)
    assert not isinstance(value, Malformed), value
    assert read_decision(value) == record
    assert read_on_dispatch(data, None, len(data)) == record
    line = write_line(kafka_record(0, data))
    assert read_line(line).value == data
    case = encode(policy_case(record)).decode()
    policy = parse_policy(POLICY)
    results, _ = run_cases(read_cases(case, source="case", policy=policy), policy)
    assert [each.unmet for each in results] == [()]


def test_arguments_that_would_nest_too_deeply_are_no_effect() -> None:
    template = "[" * 50 + '"{attributes.deep}"' + "]" * 50
    under = parse_policy(POLICY.replace('["{attributes.deep}"]', template))
    ticket = Ticket(id="T", state="x", attributes={"vip": True, "deep": nested(62, "array")})
    scorer = FixedScorer({"T": {"urgent": {"type": "noul", "noul": 0.9}}}, model=ModelRef("fixed", "0" * 64))

    (decision,) = decide([ticket], policy=under, scorer=scorer)

    assert decision.verdict.status == "review"
    assert "nested more than 64 levels deep" in decision.verdict.reasons[0]


@some
@given(
    st.dictionaries(text, deep, max_size=3),
    st.dictionaries(text, values, max_size=3),
    text,
)
def test_records_of_cases_and_effects_are_read_again(state: Any, arguments: Any, told: str) -> None:
    for made, read in (
        (effect_receipt(state=state, arguments=arguments), decode_receipt),
        (decision_receipt(arguments=arguments), decode_receipt),
        (case_decision(arguments=arguments), decode_case_decision),
    ):
        data = made.encode()

        assert read(data) == made
        assert read_line(write_line(kafka_record(0, data))).value == data


@some
@given(text.filter(str.strip))
def test_what_a_case_is_exported_as_is_read_as_a_case(name: str) -> None:
    lines, errors = export_cases([case_decision()], [], name=name)

    assert not errors
    (case,) = read_funnel_cases("\n".join(encode(line).decode() for line in lines), source="cases")
    assert case.written.name == name


def test_the_record_of_the_deepest_ticket_becomes_a_case_that_runs(ticketgate: Run, tmp_path: Path) -> None:
    policy, record, cases = (tmp_path / name for name in ("p.toml", "record.jsonl", "cases.jsonl"))
    policy.write_text(POLICY, encoding="utf-8")
    for ticket in (
        {"id": "T", "state": nested(63, "array"), "attributes": {"vip": True}},
        {"id": "T", "state": "x", "attributes": {"vip": True, "deep": nested(62, "array")}},
    ):
        read = decode_ticket(json.dumps(ticket).encode())
        assert not isinstance(read, Malformed), read
        record.write_bytes(write_line(kafka_record(0, decided(read, 0.9).encode())) + b"\n")

        made = ticketgate("case", record)
        cases.write_bytes(made.out)
        ran = ticketgate("policy", "test", policy, cases)
        judged = ticketgate("policy", "diff", policy, policy, "--decisions", record)

        assert (made.code, ran.code, judged.code) == (0, 0, 0), (made.err, ran.err, ran.out, judged.err)
