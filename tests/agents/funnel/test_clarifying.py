"""A proposer that keeps choosing the wrong tool is not asked again: the requester is, on `repairs`, once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ticketgate.agents.funnel.evidence import Evidence
from ticketgate.agents.funnel.history import CaseBook
from ticketgate.agents.funnel.judge import Judged, judge
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.store.attempts import CaseHistory, case_key

from ...support.funnel import AT, PAYMENTS, WORLD, arguments, authority, bare_call, request

QUOTE, SCHEDULE, STRANGE = "quote_transfer", "schedule_transfer", "strange"


def written(tool: str) -> str:
    given = arguments()
    if tool == QUOTE:
        del given["minimum_remaining_balance_gbp"]
    return bare_call(given, tool)


def judged(tools: Sequence[str]) -> list[Judged]:
    """Each attempt at one case, whose request is to schedule."""
    found: list[Judged] = []
    history = CaseHistory()
    for number, tool in enumerate(tools, start=1):
        proposal = Proposal(case_id="case_1", attempt=number, call=written(tool), request=request())
        at = Coordinate("proposals", 0, number)
        book = CaseBook("tests", {case_key("tests", proposal): history})
        one = judge(
            proposal,
            catalogue=PAYMENTS,
            evidence=Evidence(authority=authority(), world=WORLD),
            at=AT,
            namespace="tests",
            committed=book.before(proposal, at),
        )
        book.add(proposal, at, one.verdict, one.repair)
        for news in book.news():
            numbers = {each.number for each in news.attempts}
            others = [each for each in history.attempts if each.number not in numbers]
            history = CaseHistory((*others, *news.attempts), history.revision)
        found.append(one)
    return found


def said(found: Judged) -> tuple[str, str]:
    return str(found.verdict.status), str(found.verdict.stage)


@pytest.mark.parametrize("tools", [(STRANGE, QUOTE), (STRANGE, STRANGE), (QUOTE, QUOTE), (QUOTE, STRANGE)])
def test_a_second_disagreement_on_the_tool_asks_the_requester(tools: tuple[str, str]) -> None:
    _, second = judged(tools)

    assert said(second) == ("repair", "tool_selection")
    assert second.verdict.reasons[0] == "clarify:requested:schedule:offered=quote,schedule"
    assert second.repair is not None
    assert second.repair.permitted == ("request",)
    assert (second.repair.remaining, second.repair.source_of_truth) == (0, "requester")
    assert second.command is None


@pytest.mark.parametrize("third", [QUOTE, STRANGE, SCHEDULE])
def test_the_requester_is_asked_once(third: str) -> None:
    last = judged((STRANGE, QUOTE, third))[-1]

    assert said(last) == ("review", "tool_selection")
    assert last.verdict.reasons[1] == "clarification_not_answered"


def test_a_fourth_attempt_ends_nothing_anew() -> None:
    assert said(judged((STRANGE, QUOTE, STRANGE, QUOTE))[-1])[0] == "review"


def test_one_disagreement_is_no_question() -> None:
    assert said(judged((QUOTE,))[0]) == ("reject", "tool_selection")
    assert said(judged((STRANGE,))[0]) == ("repair", "tool_catalogue")
    assert said(judged((STRANGE, SCHEDULE))[1]) == ("accept", "authority")


def test_after_a_rejected_tool_no_argument_is_carried_to_another() -> None:
    second = judged((QUOTE, SCHEDULE))[1]

    assert said(second)[0] == "review"
    assert second.verdict.reasons == ("not_repairable", "attempted_after:reject")
