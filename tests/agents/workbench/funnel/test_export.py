"""A record becomes a case that comes to the record's verdict, or is told what it lacks."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Evidence, World
from ticketgate.agents.funnel.judge import Judged, judge
from ticketgate.agents.funnel.repair import Attempt
from ticketgate.agents.workbench.funnel.cases import CaseResult, ReadCase, read_cases, run_cases
from ticketgate.agents.workbench.funnel.export import export_cases
from ticketgate.codecs import (
    CaseDecision,
    Coordinate,
    Effect,
    EffectReceipt,
    EffectState,
    EffectStatus,
    JudgedAgain,
    ProposedCall,
    SettledBy,
    Stage,
    Status,
    Verdict,
    decode_case_decision,
    decode_receipt,
    encode,
    proposal_fingerprint,
    proposal_key,
)

from ....support.funnel import PAYMENTS, authority, call, confirmation, request
from ...funnel.test_judge import BY_FACT

RECORDED = Path(__file__).parents[3] / "codecs" / "recorded"
Records = tuple[list[CaseDecision], list[EffectReceipt]]
ENDS = {
    Status.ACCEPT: EffectState.COMMITTED,
    Status.UNKNOWN: EffectState.UNKNOWN,
}


RICH = {"facts": {"current_balance_gbp": "3000.00"}}


def key_of(name: str) -> str:
    return f"key of {name}"


def line(name: str, **changed: Any) -> dict[str, Any]:
    """A schedule that may be made, and what a test changes."""
    asked = changed.pop("asked", request(control={"idempotency_key": key_of(name)}))
    fields = {
        "name": name,
        "at": "2026-09-01T12:00:00Z",
        "request": asked.to_json(),
        "authority": authority(key=key_of(name)).to_json(),
        "world": RICH,
        "call": call(),
        "expect": {"status": "accept", "stage": "postcondition"},
    }
    return fields | changed


DENIED = {"actor_id": "user_demo"}
MADE = [
    line("clean"),
    line("refused", faults={"execute": ["refused"]}),
    line("lost and found", faults={"execute": ["timeout_after_commit"]}),
    line("lost and sent again", faults={"execute": ["timeout_before_commit"]}),
    line("lost twice", faults={"execute": ["timeout_before_commit", "timeout_before_commit"]}),
    line("lost and refused", faults={"execute": ["timeout_before_commit", "refused"]}),
    line("held", faults={"execute": ["timeout_after_commit"], "read_back": ["unreadable"]}),
    line("too early to say", faults={"execute": ["timeout_before_commit"], "read_back": ["unsettled"]}),
    line("not verified", faults={"read_back": ["unreadable"]}),
    line("another stands", faults={"execute": ["timeout_after_commit"], "read_back": ["altered"]}),
    line("nobody known", authority=None),
    line("revoked meanwhile", faults={"authority_before_effect": DENIED}),
    line("spent meanwhile", faults={"world_before_effect": {"facts": {"current_balance_gbp": "1000.00"}}}),
    line("unreadable", faults={"unreadable": ["authority:bad signature"]}),
    line("no world", faults={"unreadable": ["world:not JSON"]}),
    line("unconfirmed meanwhile", faults={"authority_before_effect": authority(confirmations=()).to_json()}),
    line(
        "poorer meanwhile",
        faults={"authority_before_effect": authority("500.00", key_of("poorer meanwhile")).to_json()},
    ),
    line(
        "no limit meanwhile",
        faults={"authority_before_effect": authority(key=key_of("no limit meanwhile"), limits={}).to_json()},
    ),
    line("superseded", faults={"world_before_effect": {**RICH, "request_version": 2}}),
    line(
        "old news",
        asked=request(version=2, control={"idempotency_key": "key of old news"}),
        world={**RICH, "request_version": 2},
        faults={"world_before_effect": {**RICH, "request_version": 1}},
    ),
    line("no balance meanwhile", faults={"world_before_effect": {"facts": {}}}),
    line(
        "balance that is no money", faults={"world_before_effect": {"facts": {"current_balance_gbp": "much"}}}
    ),
    line("known to nobody meanwhile", faults={"authority_before_effect": None}),
    line(
        "another amount confirmed meanwhile",
        faults={
            "authority_before_effect": authority(
                confirmations=(confirmation(key_of("another amount confirmed meanwhile"), amount_gbp="6.00"),)
            ).to_json()
        },
    ),
    line("confirmed too long ago", faults={"at_before_effect": "2026-09-02T12:00:00Z"}),
    line("confirmed later than now", faults={"at_before_effect": "2026-09-01T11:00:00Z"}),
    line("unreadable meanwhile", faults={"unreadable_before_effect": ["authority:bad signature"]}),
    line("no world meanwhile", faults={"unreadable_before_effect": ["world:not JSON", "authority:nor this"]}),
    line("of a tenant", tenant="acme"),
    line("no JSON", call="{"),
    line("first", case_id="mended", call=call(amount_gbp=600)),
    line("second", case_id="mended", attempt=2),
    line("drifts", case_id="strays", call=call(amount_gbp=600)),
    line("strays", case_id="strays", attempt=2, call=call(amount_gbp="600.00", payee_id="supplier_8")),
    line("gives up", call=json.dumps({"call_id": "c_1", "abstain": "ambiguous_request"})),
]


def read(lines: Sequence[dict[str, Any]]) -> tuple[ReadCase, ...]:
    return read_cases("\n".join(map(json.dumps, lines)), source="test")


def ran(cases: tuple[ReadCase, ...], catalogue: Catalogue = PAYMENTS) -> tuple[CaseResult, ...]:
    return asyncio.run(run_cases(cases, catalogue=catalogue, provider=MemoryProvider()))


def recorded(
    cases: tuple[ReadCase, ...], results: Sequence[CaseResult], catalogue: Catalogue = PAYMENTS
) -> Records:
    """What a worker would have written of the cases, as bytes and back."""
    decisions: list[CaseDecision] = []
    receipts: list[EffectReceipt] = []
    before: dict[tuple[str, str, int], list[Attempt]] = {}
    for place, (case, result) in enumerate(zip(cases, results, strict=True)):
        written, final = case.written, result.outcome.verdict
        evidence = seen(case)
        key = (case.proposal.tenant, case.proposal.case_id, case.proposal.request.version)
        earlier = before.setdefault(key, [])
        judged = judge(
            case.proposal,
            catalogue=catalogue,
            evidence=evidence,
            at=written.at,
            namespace="",
            committed=tuple(earlier),
        )
        permitted = () if judged.repair is None else judged.repair.permitted
        earlier.append(Attempt(case.proposal.attempt, case.proposal.call, final, permitted))
        decision = decided(case, judged, evidence, place)
        decisions.append(decision)
        if judged.command is None:
            continue
        receipt = receipt_of(decision, final, result.outcome.effect)
        is_stopped = final.stage in (Stage.WORLD_STATE, Stage.AUTHORITY)
        receipts.append(replace(receipt, judged_again=seen_again(case) if is_stopped else None))
    return [whole(decode_case_decision(each.encode())) for each in decisions], [
        whole(decode_receipt(each.encode())) for each in receipts
    ]


def whole(record: Any) -> Any:
    assert isinstance(record, CaseDecision | EffectReceipt), record
    return record


def seen(case: ReadCase) -> Evidence:
    """The evidence that the case's first look-up brings."""
    unreadable = case.written.faults.unreadable
    is_blind = {each.partition(":")[0] for each in unreadable}
    return Evidence(
        authority=None if "authority" in is_blind else case.written.authority,
        world=World() if "world" in is_blind else case.written.world,
        unreadable=unreadable,
    )


def seen_again(case: ReadCase) -> JudgedAgain:
    """What the case's second look-up brings."""
    faults, first = case.written.faults, seen(case)
    later = faults.authority_before_effect
    authority = first.authority if isinstance(later, str) else later
    is_blind = {each.partition(":")[0] for each in faults.unreadable_before_effect}
    evidence = Evidence(
        authority=None if "authority" in is_blind else authority,
        world=World() if "world" in is_blind else faults.world_before_effect or first.world,
        unreadable=faults.unreadable_before_effect,
    )
    return JudgedAgain(evidence.to_json(), faults.at_before_effect or case.written.at)


def decided(case: ReadCase, judged: Judged, evidence: Evidence, place: int) -> CaseDecision:
    told, command = case.proposal, judged.command
    return CaseDecision(
        case_id=told.case_id,
        attempt=told.attempt,
        tenant=told.tenant,
        verdict=judged.verdict,
        tool=judged.decision.tool,
        arguments=judged.decision.arguments,
        catalogue=judged.decision.catalogue,
        evidence=evidence.to_json(),
        effects=() if command is None else (Effect(command.tool, command.arguments, command.key),),
        repair=judged.repair,
        idempotency_key=proposal_key("", told.tenant, told.case_id, told.attempt),
        fingerprint=proposal_fingerprint(told),
        coordinate=Coordinate("proposals", 0, place),
        decided_at=case.written.at,
        proposal=ProposedCall(call=told.call, request=told.request),
    )


def receipt_of(decision: CaseDecision, verdict: Verdict, effect: EffectReceipt | None) -> EffectReceipt:
    (order,) = decision.effects
    return EffectReceipt(
        status=None if effect is None else effect.status,
        tool=order.tool,
        arguments=order.arguments,
        provider_id=None if effect is None else effect.provider_id,
        idempotency_key=order.idempotency_key,
        state={},
        effect_state=ENDS.get(verdict.status, EffectState.REJECTED),
        sequence=3,
        sends=1,
        provider="bank",
        source=Coordinate("dispatch", 0, 0),
        subject=decision.case_id,
        verdict=verdict,
    )


def verdicts(results: Sequence[CaseResult]) -> list[tuple[str, str]]:
    return [(str(each.outcome.verdict.status), str(each.outcome.verdict.stage)) for each in results]


def example_lines() -> list[list[dict[str, Any]]]:
    folder = resources.files("ticketgate.agents.funnel") / "examples"
    return [
        [*map(json.loads, file.read_text(encoding="utf-8").splitlines())]
        for file in sorted(folder.iterdir(), key=lambda each: each.name)
        if file.name.endswith(".jsonl")
    ]


@pytest.mark.parametrize("lines", [MADE, *example_lines()], ids=lambda lines: lines[0]["name"])
def test_a_case_made_of_its_own_records_comes_to_the_same_verdict(lines: list[dict[str, Any]]) -> None:
    cases = read(lines)
    results = ran(cases)
    decisions, receipts = recorded(cases, results)

    exported, errors = export_cases(decisions, receipts)

    assert errors == []
    again = ran(read(exported))
    assert [each.unmet for each in again] == [()] * len(lines)
    assert verdicts(again) == verdicts(results)


def test_a_tool_that_is_offered_no_more_makes_a_case_with_the_facts_that_say_so() -> None:
    closed = {"facts": {**RICH["facts"], "is_open": False}}
    made = line(
        "closed",
        world={"facts": {**RICH["facts"], "is_open": True}},
        faults={"world_before_effect": closed},
    )
    cases = read([made])
    results = ran(cases, BY_FACT)

    (case,), errors = export_cases(*recorded(cases, results, BY_FACT))

    assert errors == []
    assert case["expect"] == {
        "status": "reject",
        "stage": "world_state",
        "reasons": ["tool_no_longer_offered:schedule_transfer"],
    }
    (again,) = ran(read([case]), BY_FACT)
    assert again.unmet == ()


@pytest.mark.parametrize(
    "made", [each for each in MADE if "case_id" not in each], ids=lambda made: made["name"]
)
def test_a_verdict_keeps_its_reasons_where_they_can_be_brought_about(made: dict[str, Any]) -> None:
    cases = read([made])
    results = ran(cases)

    ((case,), _) = export_cases(*recorded(cases, results))

    expected = case["expect"].get("reasons")  # type: ignore[union-attr]
    reasons = [*results[0].outcome.verdict.reasons]
    is_ours = made["name"] not in ("refused", "lost and refused", "another stands", "lost twice")
    assert expected == (reasons if is_ours else None)


def one(**changed: Any) -> tuple[CaseDecision, EffectReceipt]:
    """An accepted effect's decision and its receipt."""
    cases = read([line("C-1", **changed)])
    (decision,), (receipt,) = recorded(cases, ran(cases))
    return decision, receipt


def test_the_case_has_what_the_record_has() -> None:
    cases = read([line("C-1", case_id="C-9", attempt=2, tenant="acme")])
    decisions, receipts = recorded(cases, ran(cases))

    (case,), _ = export_cases(decisions, receipts)

    assert case["name"] == "C-9 attempt 2"
    assert (case["case_id"], case["attempt"], case["tenant"]) == ("C-9", 2, "acme")
    assert case["at"] == "2026-09-01T12:00:00.000Z"
    assert case["authority"] == authority(key=key_of("C-1")).to_json()
    assert export_cases(decisions, receipts, name="what happened")[0][0]["name"] == "what happened"


def test_a_dispatched_record_alone_expects_what_comes_without_faults() -> None:
    decision, _ = one()

    (case,), errors = export_cases([decision], [])

    assert errors == []
    assert case["expect"] == {"status": "accept", "stage": "postcondition", "reasons": []}


def test_a_receipt_of_later_steps_counts_and_a_persons_word_does_not() -> None:
    decision, held = one(faults={"execute": ["timeout_after_commit"], "read_back": ["unreadable"]})
    prepared = replace(held, effect_state=EffectState.PREPARED, sequence=1, sends=0, verdict=None)
    settled = replace(
        held,
        status=EffectStatus.SETTLED_BY_PERSON,
        effect_state=EffectState.COMMITTED,
        sequence=4,
        verdict=Verdict(Status.ACCEPT, Stage.OUTCOME, ("settled_as_committed_by_person",), ""),
        settled_by=SettledBy("ann", "seen in the bank's books"),
    )

    (case,), errors = export_cases([decision], [settled, held, prepared])

    assert errors == []
    assert case["expect"] == {"status": "unknown", "stage": "outcome", "reasons": ["timeout_and_no_readback"]}


COLLIDED = Verdict(Status.REJECT, Stage.IDEMPOTENCY, ("idempotency key reused for a different effect",), "")
LATE = Verdict(Status.ACCEPT, Stage.READBACK, ("verified_late",), "")
STRAYED = Verdict(Status.REVIEW, Stage.SCHEMA, ("unpermitted_change", "payee_id"), "")
WITHDRAWN = Verdict(Status.REJECT, Stage.WORLD_STATE, ("tool_no_longer_offered:schedule_transfer",), "")
CHANGED = Verdict(Status.REJECT, Stage.SCHEMA, ("extra:payee_id",), "")
BY_HAND = Verdict(Status.REVIEW, Stage.AUTHORITY, ("not_automatic:schedule_transfer",), "")
COLLISION = Verdict(Status.REVIEW, Stage.IDENTITY, ("another content",), "")
REVOKED = Verdict(Status.DENY, Stage.AUTHORITY, ("tool_not_delegated",), "")


def lacking() -> dict[str, tuple[Records, str]]:
    """Records that lack something, and what is said of it."""
    decision, receipt = one()
    stopped = replace(receipt, status=None, provider_id=None, effect_state=EffectState.REJECTED)
    review = replace(decision, effects=(), attempt=2)
    unchanged = JudgedAgain(decision.evidence, decision.decided_at)
    left_out = replace(unchanged, evidence=None)
    return {
        "a receipt alone": (([], [receipt]), "give the decision that lies at dispatch:0:0"),
        "a collision": (
            ([decision], [replace(stopped, verdict=COLLIDED)]),
            "give that effect's record before",
        ),
        "a person": (
            ([decision], [replace(receipt, settled_by=SettledBy("ann", "seen"))]),
            "the step before",
        ),
        "time": (([decision], [replace(receipt, verdict=LATE)]), "takes time to pass"),
        "a withdrawn tool": (
            ([decision], [replace(stopped, verdict=WITHDRAWN, judged_again=unchanged)]),
            "by a catalogue that had changed",
        ),
        "a changed tool": (
            ([decision], [replace(stopped, verdict=CHANGED, judged_again=unchanged)]),
            "by a catalogue that had changed",
        ),
        "evidence too large": (
            ([decision], [replace(stopped, verdict=REVOKED, judged_again=left_out)]),
            "left out for its size",
        ),
        "a file's word": (([decision], [replace(stopped, verdict=BY_HAND)]), "by what is no evidence"),
        "attempts": (([replace(review, verdict=STRAYED)], []), "the attempts before it"),
        "its text": (([replace(review, verdict=REVOKED, proposal=None)], []), "proposals:0:0"),
        "a gate": (([replace(review, verdict=COLLISION)], []), "no gate of the funnel said another content"),
    }


@pytest.mark.parametrize("what", lacking())
def test_what_is_missing_is_said_in_one_line(what: str) -> None:
    records, said = lacking()[what]

    lines, (error,) = export_cases(*records)

    assert lines == []
    assert said in str(error)
    assert "\n" not in str(error)


# --- the command ---


def ticketgate(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = Path(sys.executable).with_name("ticketgate")
    return subprocess.run([command, *arguments], input=given, capture_output=True, check=False)


def consumed(value: bytes, topic: str) -> bytes:
    """A record as `ticketgate consume` prints it."""
    return encode(
        {
            "topic": topic,
            "partition": 0,
            "offset": 0,
            "timestamp_ms": 1,
            "key": "C-1",
            "headers": [["ticketgate-schema", "…"]],
            "value": json.loads(value),
        }
    )


def test_what_consume_prints_becomes_cases_that_the_funnel_runs(tmp_path: Path) -> None:
    cases = read(MADE)
    decisions, receipts = recorded(cases, ran(cases))
    lines = [consumed(each.encode(), "review") for each in decisions]
    lines += [consumed(each.encode(), "receipts") for each in receipts]

    exported = ticketgate("case", "-", given=b"\n".join(lines))
    (tmp_path / "cases.jsonl").write_bytes(exported.stdout)
    run = ticketgate("funnel", str(tmp_path / "cases.jsonl"))

    assert exported.returncode == 0, exported.stderr
    assert b"judged by the catalogue payments 1" in exported.stderr
    assert run.returncode == 0, run.stdout
    assert f"{len(MADE)} cases, 0 not as expected".encode() in run.stdout


def test_one_value_may_be_written_over_many_lines(tmp_path: Path) -> None:
    decision, _ = one()
    path = tmp_path / "record.json"
    path.write_text(json.dumps(decision.to_json(), indent=2))

    exported = ticketgate("case", str(path), "--name", "an incident")

    assert exported.returncode == 0, exported.stderr
    assert json.loads(exported.stdout)["name"] == "an incident"


def test_what_reconcile_prints_is_taken_too() -> None:
    decision, receipt = one(faults={"execute": ["timeout_after_commit"], "read_back": ["unreadable"]})
    told = {**receipt.to_json(), "age_s": 42.0, "is_open": True}
    printed = {"open": 1, "oldest_s": 42.0, "effects": [told]}

    exported = ticketgate("case", "-", given=decision.encode() + b"\n" + json.dumps(printed).encode())

    assert exported.returncode == 0, exported.stderr
    assert json.loads(exported.stdout)["expect"]["status"] == "unknown"


def test_what_cannot_be_a_case_is_told_and_the_others_are_written() -> None:
    decision, receipt = one()
    strange = replace(receipt, idempotency_key="another")
    given = b"\n".join([decision.encode(), strange.encode(), strange.encode()])

    exported = ticketgate("case", "-", given=given)

    assert exported.returncode == 2
    assert len(exported.stdout.splitlines()) == 1
    assert exported.stderr.count(b"effect another: a receipt holds neither") == 1


def test_what_is_no_record_among_others_is_told_by_line_and_the_others_are_written() -> None:
    decision, _ = one()
    bare_case = b'{"name": "a case", "call": "{}"}'
    given = b"\n".join([bare_case, decision.encode(), b'{"topic": "dispatch", "value_text": "junk"}'])

    exported = ticketgate("case", "-", given=given)

    assert exported.returncode == 2
    assert len(exported.stdout.splitlines()) == 1
    assert b'standard input:1: no record of ours: it has no "schema"; give records of' in exported.stderr
    assert b"standard input:3: not JSON" in exported.stderr


def test_a_ticket_becomes_a_case_of_its_policy_and_its_effects_receipt_does_not() -> None:
    _, receipt = one()
    ticket = (RECORDED / "decision-1.jsonl").read_bytes().splitlines()[1]
    of_ticket = replace(receipt, idempotency_key="aa", subject="T-1001")

    alone = ticketgate("case", "-", given=ticket)
    both = ticketgate("case", "-", given=ticket + b"\n" + of_ticket.encode())

    assert alone.returncode == 0, alone.stderr
    assert json.loads(alone.stdout)["effects"] == ["assign_queue"]
    assert b"ticketgate policy test" in alone.stderr
    assert (both.returncode, both.stdout) == (2, alone.stdout)
    assert b"a policy's effect passes no gates" in both.stderr


def test_of_tickets_among_proposals_the_cases_of_either_can_be_had() -> None:
    decision, receipt = one()
    ticket = (RECORDED / "decision-1.jsonl").read_bytes().splitlines()[1]
    of_ticket = json.loads(ticket)["effects"][0]["idempotency_key"]
    not_ours = replace(receipt, idempotency_key=of_ticket, subject="T-1001").encode()
    proposals = [decision.encode(), receipt.encode()]
    mixed = b"\n".join([ticket, *proposals, not_ours])

    written = ticketgate("case", "-", given=mixed)
    alone = ticketgate("case", "-", given=b"\n".join(proposals))
    of_tickets = ticketgate("case", "-", "--of", "tickets", given=ticket + b"\n" + proposals[0])
    of_none = ticketgate("case", "-", "--of", "tickets", given=proposals[0])

    assert (written.returncode, written.stdout) == (0, alone.stdout)
    assert written.stderr.startswith(
        b"2 records of tickets passed over; `ticketgate case --of tickets` writes"
    )
    assert of_tickets.returncode == 0, of_tickets.stderr
    assert [json.loads(line)["name"] for line in of_tickets.stdout.splitlines()] == ["T-1001"]
    assert b"passed over" not in of_tickets.stderr
    assert (of_none.returncode, of_none.stdout) == (2, b"")
    assert b"standard input: no records of tickets; leave --of out" in of_none.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"", b"no records"),
        (b"{", b"standard input:1: "),
        (b'{"id": "T-1", "state": "hello"}', b"give records of dispatch, repairs, review or receipts"),
        (b'{"schema": "receipt/1"}', b'"kind"'),
    ],
)
def test_what_is_no_record_is_refused_by_line(given: bytes, said: bytes) -> None:
    exported = ticketgate("case", "-", given=given)

    assert exported.returncode == 2
    assert said in exported.stderr
    assert exported.stdout == b""
