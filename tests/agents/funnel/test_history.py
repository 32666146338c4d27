"""The history of attempts: what counts for one, and that no budget is exceeded however attempts arrive."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ticketgate.agents.funnel.catalogue import Catalogue, Offered
from ticketgate.agents.funnel.evidence import Evidence, World
from ticketgate.agents.funnel.history import CaseBook, written_attempt
from ticketgate.agents.funnel.judge import Judged, judge
from ticketgate.agents.funnel.repair import BUDGETS
from ticketgate.codecs.records.case_decision import CaseDecision, ProposedCall
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.attempts import AttemptHistory, CaseHistory, WrittenAttempt, case_key
from ticketgate.store.connect import connect
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.tokens import LaneToken, Superseded, take_token
from ticketgate.streams.parts.valkey import Valkey

from ...support.funnel import AT, PAYMENTS, WORLD, authority, call, request

ALWAYS = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))

# The transfer is offered only while the bank is open, so that an attempt may be judged otherwise after a crash.
OPENING_HOURS: Catalogue = replace(
    PAYMENTS,
    tools={
        name: replace(tool, offered=Offered(facts={"is_open": (True,)}))
        for name, tool in PAYMENTS.tools.items()
    },
)

TEXTS = (
    "{",
    "}",
    '{"call_id": "c"}',
    '{"call_id": "d"}',
    call("unknown"),
    call(amount_gbp=1),
    call(amount_gbp=2),
    call(amount_gbp="1"),
    call(amount_gbp="2"),
    call(),
)


def proposal(text: str = "{", number: int = 1) -> Proposal:
    return Proposal(case_id="case_1", attempt=number, call=text, request=request())


def place(partition: int = 0, offset: int = 0) -> Coordinate:
    return Coordinate("proposals", partition, offset)


def judged(book: CaseBook, given: Proposal, at: Coordinate, *, is_open: bool = True) -> Judged:
    """Judge and take down, as a lane does."""
    facts = {**WORLD.facts, "is_open": is_open}
    found = judge(
        given,
        catalogue=OPENING_HOURS,
        evidence=Evidence(authority=authority(), world=World(facts=facts)),
        at=AT,
        namespace="tests",
        committed=book.before(given, at),
    )
    book.add(given, at, found.verdict, found.repair)
    return found


def book(*before: CaseBook) -> CaseBook:
    """An empty book, or one that begins with what another took down."""
    histories = {
        each.case: CaseHistory(tuple(sorted(each.attempts, key=lambda one: one.number)), 1)
        for one in before
        for each in one.news()
    }
    return CaseBook("tests", histories)


def told(found: Judged) -> tuple[str, str, tuple[str, ...]]:
    return str(found.verdict.status), str(found.verdict.stage), found.verdict.reasons


def test_the_attempts_of_a_batch_count_for_those_behind_them() -> None:
    pages = book()
    first = judged(pages, proposal("{"), place())

    second = judged(pages, proposal("}", 2), place(offset=1))

    assert told(first)[:2] == ("repair", "parse")
    assert told(second) == ("review", "parse", ("budget_exhausted", "invalid_json_at_0"))


def test_an_attempt_that_is_judged_again_is_not_its_own_predecessor() -> None:
    before = book()
    judged(before, proposal(), place())

    again = judged(book(before), proposal(), place())

    assert told(again)[:2] == ("repair", "parse")


def test_what_an_uncommitted_batch_left_behind_does_not_make_its_first_attempt_stale() -> None:
    before = book()
    judged(before, proposal("{"), place())
    judged(before, proposal(call("unknown"), 2), place(offset=1))

    pages = book(before)

    assert told(judged(pages, proposal("{"), place()))[:2] == ("repair", "parse")
    assert told(judged(pages, proposal(call("unknown"), 2), place(offset=1)))[:2] == (
        "repair",
        "tool_catalogue",
    )


def test_an_attempt_behind_a_later_one_is_stale_and_ends_nothing() -> None:
    before = book()
    judged(before, proposal("{", 3), place())
    late = book(before)

    stale = judged(late, proposal(call(), 1), place(partition=1))

    assert told(stale) == ("review", "parse", ("not_repairable", "attempt_out_of_order:1:newest=3"))
    assert stale.command is None
    assert late.news() == ()
    assert told(judged(late, proposal(call(), 4), place(offset=1)))[0] == "accept"


def test_a_case_that_has_ended_takes_no_more_entries() -> None:
    before = book()
    judged(before, proposal(call(), 1), place())
    pages = book(before)

    outcome = judged(pages, proposal(call(), 2), place(offset=1))

    assert told(outcome)[2] == ("not_repairable", "attempted_after:accept")
    assert pages.news() == ()


def test_a_call_is_kept_only_while_it_may_be_mended() -> None:
    pages = book()
    judged(pages, proposal("{", 1), place())
    judged(pages, proposal(call(), 2), place(offset=1))

    (news,) = pages.news()

    assert [(each.number, each.call, each.permitted) for each in news.attempts] == [
        (1, "{", ("serialisation",)),
        (2, None, ()),
    ]


def test_what_a_void_record_left_under_the_same_number_does_not_count() -> None:
    before = book()
    judged(before, proposal("{", 1), place(partition=1, offset=7))

    assert told(judged(book(before), proposal("{", 1), place()))[:2] == ("repair", "parse")


def test_another_version_of_the_request_begins_anew() -> None:
    before = book()
    judged(before, proposal("{"), place())
    newer = replace(proposal("}", 2), request=replace(request(), version=2))

    assert book(before).before(newer, place(offset=1)) == ()


def decided(found: Judged, given: Proposal, at: Coordinate, **changed: Any) -> CaseDecision:
    fields: dict[str, Any] = {
        "case_id": given.case_id,
        "attempt": given.attempt,
        "verdict": found.verdict,
        "catalogue": found.decision.catalogue,
        "evidence": {"authority": None, "world": {}},
        "repair": found.repair,
        "idempotency_key": IdempotencyKey("k"),
        "fingerprint": Fingerprint("f"),
        "coordinate": at,
        "decided_at": AT,
        "proposal": ProposedCall(call=given.call, request=given.request),
    }
    return CaseDecision(**{**fields, **changed})


@pytest.mark.parametrize("text", ["{", call()])
def test_an_output_tells_of_the_attempt_that_was_recorded(text: str) -> None:
    pages, given = book(), proposal(text)
    found = judged(pages, given, place(offset=5))

    written = written_attempt(decided(found, given, place(offset=5)), namespace="tests", at_ms=7)

    (news,) = pages.news()
    assert written == WrittenAttempt(news.case, news.attempts[0], 7)


def test_an_output_of_what_was_not_judged_tells_of_no_attempt() -> None:
    given = proposal()
    found = judged(book(), given, place())
    collided = Verdict(Status.REVIEW, Stage.IDENTITY, ("collision",), "a person decides")

    assert written_attempt(decided(found, given, place(), verdict=collided), namespace="t", at_ms=0) is None
    cut = decided(found, given, place(), proposal=None)
    assert written_attempt(cut, namespace="t", at_ms=0) is None


@dataclass(slots=True)
class Lane:
    """One partition's lane, in steps that can be cut anywhere: read, judge and record, commit."""

    history: AttemptHistory
    records: Sequence[Proposal]
    partition: int
    token: LaneToken
    next_offset: int = 0
    committed: list[Judged] = field(default_factory=list)
    _read: CaseBook | None = None
    _recorded: list[Judged] | None = None

    async def step(self, *, size: int, is_open: bool) -> None:
        """The next step. One that finds its case written to goes back to reading."""
        batch = self.records[self.next_offset : self.next_offset + size]
        if not batch:
            return
        if self._recorded is not None:
            self.committed += self._recorded
            self.next_offset += len(self._recorded)
            self._read = self._recorded = None
        elif self._read is None:
            self._read = CaseBook("tests", await self.history.read([case_key("tests", batch[0])]))
        else:
            found = [
                judged(self._read, each, place(self.partition, self.next_offset + nth), is_open=is_open)
                for nth, each in enumerate(batch)
            ]
            if await self.history.record(self._read.news(), token=self.token):
                self._read = None
            else:
                self._recorded = found

    def crash(self, token: LaneToken) -> Lane:
        """Its successor, which knows what was committed and nothing else."""
        return Lane(self.history, self.records, self.partition, token, self.next_offset, list(self.committed))


@pytest.fixture(scope="module")
def server() -> Iterator[Valkey]:
    with Valkey() as server:
        yield server


arrivals = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(TEXTS)), min_size=1, max_size=9).flatmap(
    lambda given: st.permutations(range(1, len(given) + 1)).map(
        lambda numbers: [
            (partition, number, text) for number, (partition, text) in zip(numbers, given, strict=True)
        ]
    )
)
steps = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["step", "step", "step", "crash"]),
        st.integers(1, 3),
        st.booleans(),
    ),
    max_size=40,
)


@pytest.mark.redis
@pytest.mark.filterwarnings("ignore::hypothesis.errors.NonInteractiveExampleWarning")
@settings(max_examples=80, deadline=None)
@given(arrivals=arrivals, steps=steps)
def test_no_budget_is_exceeded_however_attempts_arrive_and_lanes_crash(
    server: Valkey, arrivals: list[tuple[int, int, str]], steps: list[tuple[int, str, int, bool]]
) -> None:
    async def run() -> tuple[list[Lane], int]:
        redis, keys = connect(server.url, timeout=timedelta(seconds=5)), Keys("h")
        history = AttemptHistory(redis, keys, ttl=timedelta(days=1), durability=ALWAYS)
        lanes = [
            Lane(
                history,
                [proposal(text, number) for partition, number, text in arrivals if partition == mine],
                mine,
                await take_token(redis, keys, "proposals", mine),
            )
            for mine in range(3)
        ]
        try:
            for partition, what, size, is_open in steps:
                zombie = lanes[partition]
                if what == "crash":
                    lanes[partition] = zombie.crash(await take_token(redis, keys, "proposals", partition))
                await lanes[partition].step(size=size, is_open=is_open)
                if zombie is not lanes[partition]:
                    # It goes on, unaware: it may write nothing, and the broker lets it commit nothing.
                    with suppress(Superseded):
                        await zombie.step(size=size, is_open=is_open)
            while any(lane.next_offset < len(lane.records) for lane in lanes):
                for lane in lanes:
                    await lane.step(size=2, is_open=True)
            return lanes, await redis.hlen(keys.attempts(case_key("tests", proposal()).key, 1))
        finally:
            await redis.flushdb()
            await redis.aclose()

    lanes, entries = asyncio.run(run())

    committed = [found for lane in lanes for found in lane.committed]
    assert len(committed) == len(arrivals)
    granted = Counter(found.verdict.stage for found in committed if found.verdict.status is Status.REPAIR)
    assert all(granted[stage] <= BUDGETS.get(stage, 0) for stage in Stage), granted
    assert sum(found.command is not None for found in committed) <= 1
    assert entries <= len(arrivals) + 1
