"""A person's yes is to one effect, whoever repeats it; and what only looks like evidence is none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.funnel.evidence import Evidence, EvidenceUnreadable
from ticketgate.agents.funnel.file.catalogue_file import example
from ticketgate.agents.funnel.judge import judge
from ticketgate.agents.funnel.lookups.signed import SignedAuthority
from ticketgate.streams.lane.taking.intake import Arrival
from ticketgate.streams.lane.taking.records import OutputTopics
from ticketgate.streams.roles.case_records import CaseWriter

from ..agents.funnel.test_signed import AT, claims, proposal, records, signed
from ..streams.roles.test_proposal_work import arrival
from ..support.funnel import PAYMENTS, WORLD, authority, call, request

TOPICS = OutputTopics("dispatch", "review", "dead-letter", "repairs", "receipts", "settled")
KEYS = [f"payment-{number}" for number in range(5)]


def cases(confirmed_key: str | None) -> str:
    """Five payments under five keys, by one confirmation, in five cases and for five tenants."""
    bound = {} if confirmed_key is None else {"idempotency_key": confirmed_key}
    may = authority().to_json()
    (given,) = may["confirmations"]  # type: ignore[misc]
    values = {name: each for name, each in given["bound"].items() if name != "idempotency_key"}  # type: ignore[index,union-attr,call-overload]
    may["confirmations"] = [{**given, "bound": values | bound}]  # type: ignore[dict-item]
    lines: list[dict[str, Any]] = [
        {
            "name": key,
            "at": "2026-09-01T12:00:00Z",
            "tenant": f"tenant {key}",
            "request": request(control={"idempotency_key": key}).to_json(),
            "authority": may,
            "world": {"facts": {"current_balance_gbp": "30000.00"}},
            "call": call(),
            "expect": {"status": "accept", "stage": "postcondition"},
        }
        for key in KEYS
    ]
    return "\n".join(map(json.dumps, lines))


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("ticketgate")
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=False)


def test_five_payments_by_one_confirmation_are_one_payment(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(cases(KEYS[0]))

    ran = run("funnel", path, "--catalogue", "payments")

    assert ran.stdout.splitlines()[-1] == "5 cases, 4 not as expected; effects committed: 1"


def test_without_a_key_in_it_too(tmp_path: Path) -> None:
    path, catalogue = tmp_path / "cases.jsonl", tmp_path / "payments.toml"
    catalogue.write_text(example("payments.toml").replace(', "idempotency_key"]', "]"))
    path.write_text(cases(None))

    ran = run("funnel", path, "--catalogue", catalogue)

    assert ran.stdout.splitlines()[-1] == "5 cases, 4 not as expected; effects committed: 1"


@pytest.mark.parametrize("without", ["case_id", "tenant"])
async def test_what_is_signed_for_no_case_or_tenant_is_no_evidence(without: str) -> None:
    text = signed({name: each for name, each in claims(tenant="").items() if name != without})

    with pytest.raises(EvidenceUnreadable):
        await SignedAuthority(records()).authority(proposal(text))


def test_no_record_of_ours_holds_a_signed_text() -> None:
    text = signed(claims(tenant=""))
    given = proposal(text, text)
    seen = Evidence(authority=authority(), world=WORLD)
    judged = judge(given, catalogue=PAYMENTS, evidence=seen, at=AT, namespace="tests")
    claim = arrival(given.call, 1).claim
    writer = CaseWriter(TOPICS, PAYMENTS, 1_000_000)

    sent = writer.write(
        Arrival(given, claim, ()), judged.verdict, judged=judged, evidence=seen, key=claim.key, at=AT
    )

    assert [each.topic for each in sent] == ["dispatch", "receipts"]
    assert not any(text.encode() in (each.value or b"") for each in sent)


def test_a_placeholder_releases_nothing(tmp_path: Path) -> None:
    path = tmp_path / "funnel.toml"
    text = example("payments.funnel.toml").replace("automatic = false", "automatic = true")
    path.write_text(text)
    (tmp_path / "payments.jsonl").write_text(example("payments.jsonl"))

    ran = run("release", path)

    assert (ran.returncode, ran.stdout.count("placeholder")) == (3, ran.stdout.count("example: "))
