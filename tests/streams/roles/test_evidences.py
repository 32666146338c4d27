"""What /readyz is told of look-ups."""

from __future__ import annotations

import pytest
from ticketgate.agents.funnel.evidence import Authority, LookupUnavailable, World
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.roles.evidences import Evidences

from ...support.funnel import authority, call, request

PROPOSAL = Proposal(case_id="case_1", attempt=1, call=call(), request=request())


class Away:
    """A look-up whose server is away until it comes."""

    is_there = False

    async def authority(self, proposal: Proposal) -> Authority | None:
        if not self.is_there:
            raise LookupUnavailable("http://authority: no answer")
        return authority()

    async def world(self, proposal: Proposal) -> World:
        return World()


async def test_while_nobody_answers_a_lane_is_told_to_wait_and_then_to_go_on() -> None:
    lookup, readiness = Away(), Readiness()
    evidences = Evidences(lookup, readiness)

    with pytest.raises(LookupUnavailable):
        await evidences.of([PROPOSAL])
    assert readiness.reasons == {"lookup": "http://authority: no answer"}

    lookup.is_there = True
    await evidences.of([PROPOSAL])
    assert readiness.is_ready


async def test_who_keeps_no_lane_waiting_leaves_the_worker_ready_and_does_not_call_a_waiting_one_so() -> None:
    lookup, readiness = Away(), Readiness()
    evidences = Evidences(lookup, readiness)

    with pytest.raises(LookupUnavailable):
        await evidences.beside_lanes().of([PROPOSAL])
    assert readiness.is_ready

    readiness.wait("lookup", "a lane waits")
    lookup.is_there = True
    await evidences.beside_lanes().of([PROPOSAL])
    assert not readiness.is_ready
