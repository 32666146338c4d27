"""The cases that the funnel's demo proposes, the evidence for each, and the funnel file that it works by.

Promise: they are the cases of agents/funnel/examples/payments.jsonl, but for two things. Each has an actor of its own,
so that one bank can answer for all of them; and what was confirmed was confirmed just now, since confirmations age.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from ticketgate.agents.funnel.evidence import Authority, World
from ticketgate.agents.funnel.file.catalogue_file import example
from ticketgate.agents.workbench.funnel.cases import Expectation, Faults, ReadCase, read_cases
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.receipt import EffectStatus, RepairReceipt
from ticketgate.codecs.values.strict import encode
from ticketgate.codecs.verdict import Stage, Status
from ticketgate.streams.kafka.envelope import Record
from ticketgate.streams.parts.bank import Script

CASES = "payments.jsonl"
FUNNEL_FILE = "payments.funnel.toml"
CONFIRMED_AGO = timedelta(minutes=2)
PROFILE = "profile.jsonl"
# What of the example's funnel file is another here: nobody wants to wait ten seconds to see a time-out, and a bank in
# memory settles at once. A busy machine answers within two. And what stands behind it: the example can only say where
# that goes, and is not automatic.
ADAPTED = {
    "timeout_s = 10": "timeout_s = 2",
    "settle_s = 30": "settle_s = 1",
    "automatic = false": "automatic = true",
    '"example: the report of `ticketgate funnel --profile` on your labelled requests"': f'"./{PROFILE}"',
    '"example: the same report, with the bounds that you set for it"': f'"./{PROFILE}"',
    'loss_bounded = "example: ': "loss_bounded = \"the demo's bank moves no money; elsewhere it would be ",
    'provider_key_tested = "example: ': 'provider_key_tested = "tests/streams/parts/test_bank.py; elsewhere ',
    'settle_time_measured = "example: ': "settle_time_measured = \"the demo's bank settles at once; elsewhere ",
    'reconcile_staffed = "example: ': 'reconcile_staffed = "you, who watch the demo; elsewhere ',
}
EXAMPLE_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCase:
    """One attempt at a case, what is said when evidence for it is looked up, and what must come of it. is_unanswered:
    whether the bank commits its transfer without an answer."""

    proposal: Proposal
    authority: Authority | None
    world: World
    expect: Expectation
    is_unanswered: bool = False

    @property
    def name(self) -> str:
        """The case, and which attempt if not the first."""
        case_id, attempt = self.attempt
        return case_id if attempt == 1 else f"{case_id} ({attempt})"

    @property
    def attempt(self) -> tuple[str, int]:
        """The case's id and the attempt's number."""
        return self.proposal.case_id, self.proposal.attempt

    def record(self) -> Record:
        """The proposal as it is sent: all attempts at a case under one key, and so in one partition."""
        return Record(key=self.proposal.case_id.encode(), value=encode(self.proposal.to_json()))


def seed_cases(now: datetime) -> tuple[DemoCase, ...]:
    """The example's cases, in its order. now: when they are proposed."""
    return tuple(_demo_case(each, now - CONFIRMED_AGO) for each in read_cases(example(CASES), source=CASES))


def mended(case: DemoCase, repair: RepairReceipt) -> DemoCase:
    """The next attempt, as a proposer makes it who changes what `repairs` permits to what it names as the truth.

    It comes after all others, and so is the second transfer at the bank.
    """
    call = json.loads(case.proposal.call)
    call["arguments"] |= {name: repair.anchors[name] for name in repair.permitted if name in repair.anchors}
    expect = Expectation(
        status=Status.ACCEPT,
        stage=Stage.POSTCONDITION,
        reasons=(),
        receipt=EffectStatus.CREATED,
        provider_id="tr_0002",
        committed=2,
    )
    proposal = replace(case.proposal, attempt=case.proposal.attempt + 1, call=json.dumps(call))
    return replace(case, proposal=proposal, expect=expect)


def script_of(cases: Sequence[DemoCase]) -> Script:
    """What the bank is told: the evidence for each case, and whom it leaves without an answer."""
    return Script(
        authority={each.authority.actor_id: each.authority.to_json() for each in cases if each.authority},
        world={each.proposal.case_id: each.world.to_json() for each in cases},
        unanswered=tuple(
            str(each.proposal.request.control["idempotency_key"]) for each in cases if each.is_unanswered
        ),
    )


def write_funnel_file(folder: Path, url: str) -> Path:
    """The example's funnel file with a bank at `url`, and beside it the files of cases that it names."""
    text = example(FUNNEL_FILE)
    for written, meant in {EXAMPLE_URL: url, **ADAPTED}.items():
        if written not in text:
            raise ValueError(f"{FUNNEL_FILE} has no {written!r}; bring it and ADAPTED together")
        text = text.replace(written, meant)
    for name in (CASES, PROFILE):
        (folder / name).write_text(example(name), encoding="utf-8")
    path = folder / FUNNEL_FILE
    path.write_text(text, encoding="utf-8")
    return path


def _demo_case(case: ReadCase, confirmed_at: datetime) -> DemoCase:
    written, proposal = case.written, case.proposal
    is_unanswered = written.faults == Faults(execute=("timeout_after_commit",))
    if written.expect is None or not (is_unanswered or written.faults == Faults()):
        raise ValueError(f"{CASES}: {written.name} expects nothing, or a fault that this bank does not have")
    actor_id = f"{proposal.request.actor_id}.{written.name}"
    return DemoCase(
        proposal=replace(proposal, request=replace(proposal.request, actor_id=actor_id)),
        authority=None if written.authority is None else _of(actor_id, written.authority, confirmed_at),
        world=written.world,
        expect=written.expect,
        is_unanswered=is_unanswered,
    )


def _of(actor_id: str, authority: Authority, confirmed_at: datetime) -> Authority:
    confirmations = tuple(
        replace(each, actor_id=actor_id, confirmed_at=confirmed_at) for each in authority.confirmations
    )
    return replace(authority, actor_id=actor_id, confirmations=confirmations)
