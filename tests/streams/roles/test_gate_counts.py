"""What a worker counts of the funnel's gates is what the profile counts of the same cases."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.effects.ledger import Command, Order
from ticketgate.agents.funnel.gates.order import FUNNEL_GATES
from ticketgate.agents.workbench.funnel.cases import read_cases
from ticketgate.agents.workbench.funnel.profiling import profile_cases
from ticketgate.store.attempts import CaseKey, NewAttempts
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.roles.effects.second_look import SecondLook
from ticketgate.streams.roles.propose.proposal_work import ProposalWork

from ...support.fakes import TOKEN
from ...support.funnel import PAYMENTS, WORLD, authority, call, confirmation
from .test_proposal_work import Books, Evident, arrival, now

# One that is repaired, one of the wrong tool, two that pass: each response comes to the gate parse once.
CALLS = ("{", call("strange"), call(), call())


class ContestedBooks(Books):
    """Another lane writes to the same cases meanwhile, once."""

    def __init__(self) -> None:
        super().__init__()
        self.is_contested = True

    async def record(self, news: Sequence[NewAttempts], *, token: object) -> frozenset[CaseKey]:
        if self.is_contested:
            self.is_contested = False
            return frozenset(each.case for each in news)
        return await super().record(news, token=token)


def counted(telemetry: Telemetry, look: str) -> Counter[str]:
    """By gate, how many came to it."""
    found: Counter[str] = Counter()
    text = telemetry.expose(is_ready=True)[0].decode()
    for line in re.finditer(
        r'^ticketgate_gate_evaluations_total\{gate="(\w+)",look="(\w+)",outcome="(\w+)"\} (\S+)$', text, re.M
    ):
        if line[2] == look and line[3] != "malformed":
            found[line[1]] += int(float(line[4]))
    return found


def proposal_work(telemetry: Telemetry, books: Any) -> ProposalWork:
    evidences: Any = Evident()
    nowhere: Any = None
    return ProposalWork(
        catalogue=PAYMENTS,
        evidences=evidences,
        history=books,
        namespace="tests",
        clock=now,
        writer=nowhere,
        telemetry=telemetry,
    )


async def judged(telemetry: Telemetry, books: Any, *, commits: bool = True) -> None:
    work = proposal_work(telemetry, books)
    for number, text in enumerate(CALLS, start=1):
        outcomes = await work.decide([arrival(text, number)], token=TOKEN)
        if commits:
            work.count(outcomes)


async def test_each_response_is_counted_once_at_its_first_look() -> None:
    telemetry = Telemetry()

    await judged(telemetry, Books())

    first = counted(telemetry, "first")
    assert first["parse"] == len(CALLS)
    assert first["envelope"] == first["tool_catalogue"] == 3
    assert first["schema"] == first["authority"] == 2
    assert counted(telemetry, "later") == {}


async def test_a_response_that_is_judged_again_since_its_case_was_contested_counts_once() -> None:
    telemetry = Telemetry()

    await judged(telemetry, ContestedBooks())

    assert counted(telemetry, "first")["parse"] == len(CALLS)


async def test_what_was_not_committed_is_not_counted() -> None:
    telemetry = Telemetry()

    await judged(telemetry, Books(), commits=False)

    assert counted(telemetry, "first") == {}


async def test_a_second_look_is_counted_apart() -> None:
    telemetry = Telemetry()
    await judged(telemetry, Books())
    before = counted(telemetry, "first")
    evidences: Any = Evident()
    look = SecondLook(catalogue=PAYMENTS, evidences=evidences, clock=now, telemetry=telemetry)
    proposal = arrival(call(), 1).document

    order = Order(command=Command("t", {}, "k"), provider="p", proposal=proposal.to_json())
    await look.at(order, confirmation().digest)

    assert counted(telemetry, "first") == before
    assert counted(telemetry, "later") == {str(gate.stage): 1 for gate in FUNNEL_GATES}


async def test_live_denominators_are_those_of_the_same_cases_in_a_file() -> None:
    telemetry = Telemetry()
    work = proposal_work(telemetry, Books())
    lines: list[str] = []
    for number, text in enumerate(CALLS, start=1):
        one = arrival(text, 1)
        proposal = replace(one.document, case_id=f"case_{number}")
        work.count(await work.decide([replace(one, document=proposal)], token=TOKEN))
        lines.append(
            json.dumps(
                {
                    "name": proposal.case_id,
                    "at": "2026-09-01T12:00:00Z",
                    "request": proposal.request.to_json(),
                    "authority": authority().to_json(),
                    "world": WORLD.to_json(),
                    "call": text,
                    "label": {},
                }
            )
        )
    cases = read_cases("\n".join(lines), source="test")

    profiled = await profile_cases(cases, catalogue=PAYMENTS, provider=MemoryProvider())

    assert dict(counted(telemetry, "first")) == profiled.profile.first_looks
    # Of the two that pass, the second finds the effect standing under its key, and nothing is judged again for it.
    assert set(profiled.profile.later_looks.values()) == {1}
