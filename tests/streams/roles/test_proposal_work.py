"""What a lane does with a batch of proposals when judging one of them fails."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from ticketgate.agents.funnel.evidence import Evidence
from ticketgate.agents.funnel.judge import judge
from ticketgate.codecs.records.identity import Coordinate, proposal_fingerprint, proposal_key
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.store.attempts import CaseHistory, CaseKey, NewAttempts
from ticketgate.store.claims import Claim
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.taking.intake import Arrival
from ticketgate.streams.lane.taking.records import OutputTopics
from ticketgate.streams.roles.case_records import CaseWriter
from ticketgate.streams.roles.propose import proposal_work
from ticketgate.streams.roles.propose.proposal_work import ProposalWork

from ...support.fakes import TOKEN
from ...support.funnel import PAYMENTS, WORLD, authority, call, request


class Evident:
    """The same evidence for all."""

    async def of(self, proposals: Sequence[Proposal]) -> list[Evidence]:
        return [Evidence(authority=authority(), world=WORLD) for _ in proposals]


class Books:
    """A store of attempts that starts empty."""

    def __init__(self) -> None:
        self.news: list[NewAttempts] = []

    async def read(self, cases: Collection[CaseKey]) -> Mapping[CaseKey, CaseHistory]:
        return {
            case: CaseHistory(tuple(one for each in self.news if each.case == case for one in each.attempts))
            for case in cases
        }

    async def record(self, news: Sequence[NewAttempts], *, token: object) -> frozenset[CaseKey]:
        self.news += news
        return frozenset()


async def now() -> datetime:
    return datetime(2026, 9, 1, 12, tzinfo=UTC)


def arrival(text: str, number: int) -> Arrival[Proposal]:
    proposal = Proposal(case_id="case_1", attempt=number, call=text, request=request())
    at = Coordinate("proposals", 0, number)
    claim = Claim(proposal_key("tests", "", "case_1", number), at, proposal_fingerprint(proposal))
    return Arrival(proposal, claim, ())


async def test_an_attempt_that_could_not_be_judged_counts_and_ends_its_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails_for_the_second(proposal: Proposal, **given: Any) -> object:
        if proposal.attempt == 2:
            raise RecursionError
        return judge(proposal, **given)

    monkeypatch.setattr(proposal_work, "judge", fails_for_the_second)
    books: Any = Books()
    evidences: Any = Evident()
    nowhere: Any = None
    work = ProposalWork(
        catalogue=PAYMENTS,
        evidences=evidences,
        history=books,
        namespace="tests",
        clock=now,
        writer=nowhere,
        telemetry=Telemetry(),
    )
    said = []
    for number, text in enumerate(("{", call("strange"), call()), start=1):
        (outcome,) = await work.decide([arrival(text, number)], token=TOKEN)
        said.append((str(outcome.verdict.status), outcome.verdict.reasons))

    assert said == [
        ("repair", ("invalid_json_at_1",)),
        ("review", ("judging failed: RecursionError",)),
        ("review", ("not_repairable", "attempted_after:review")),
    ]


async def test_a_proposal_set_aside_goes_to_review_without_its_call_and_is_no_attempt() -> None:
    books: Any = Books()
    nobody: Any = None
    topics = OutputTopics("dispatch", "review", "dead-letter", "repairs", "receipts", "settled")
    work = ProposalWork(
        catalogue=PAYMENTS,
        evidences=nobody,
        history=books,
        namespace="tests",
        clock=now,
        writer=CaseWriter(topics, PAYMENTS, 1_000_000),
        telemetry=Telemetry(),
    )
    proposal = arrival("a call that nobody must see", 1)

    outcome = work.set_aside(proposal, "fault: it fails alone, and others pass")
    (sent,) = work.write_bare(proposal, outcome, key=proposal.claim.key, at=await now())

    assert sent.topic == "review"
    assert b"nobody must see" not in sent.value
    assert b"it fails alone" in sent.value
    assert dict(sent.headers)["ticketgate-coordinate"] == b"proposals:0:1"
    assert books.news == []
