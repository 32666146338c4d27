"""The line before the decider: whoever's tickets go together, each lane has what it would have alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.deciding.decide import Decision, decide
from ticketgate.agents.scoring import ScorerUnavailable, Scores
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.streams.roles.decide.deciding import ScorerHung, decide_all
from ticketgate.streams.roles.decide.line import APART_TURNS, MOST_S, MOST_TICKETS, Line

from ...support.deciding import noul, policy

POLICY = policy()
WORDS = ("urgent", "review", "billing", "technical", "auto_reply")


class WordScorer:
    """Says yes to each question whose word the ticket has."""

    model = ModelRef(id="words", hash="0" * 64)

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        return [
            Scores({name: noul(0.9 if name in str(each.state) else 0.1) for name in questions})
            for each in tickets
        ]


def decide_each(tickets: Sequence[Ticket]) -> tuple[Decision, ...]:
    return decide(tickets, policy=POLICY, scorer=WordScorer())


@dataclass
class Deciding:
    """Decides by the words of a ticket, and fails for those that ask for it. `asked`: the ids, call by call; `seconds`:
    what a ticket takes by `now`."""

    seconds: float = 0.0
    now: float = 0.0
    asked: list[list[str]] = field(default_factory=list)

    async def __call__(self, tickets: Sequence[Ticket]) -> Sequence[Decision]:
        self.asked.append([each.id for each in tickets])
        await asyncio.sleep(0)
        self.now += self.seconds * len(tickets)
        texts = [str(each.state) for each in tickets]
        if any("hang" in text for text in texts):
            raise ScorerHung(1)
        if any("away" in text for text in texts):
            raise ScorerUnavailable("nobody answers")
        if any("raise" in text for text in texts):
            raise RuntimeError("on one of them")
        decisions = decide_each(tickets)
        return decisions[:-1] if any("short" in text for text in texts) else decisions

    def clock(self) -> float:
        return self.now


def ticket(ticket_id: str, text: str = "urgent") -> Ticket:
    return Ticket(id=ticket_id, state=text)


async def turn_of(line: Line, *batches: Sequence[Ticket]) -> list[Sequence[Decision] | BaseException]:
    """What each batch gets, all in the line at once, and as many turns taken as there are batches."""
    waiting = [line.join(batch) for batch in batches]
    for _ in batches:
        await line.take_turn()
    assert all(each.decisions.done() for each in waiting)
    return await asyncio.gather(*(each.decisions for each in waiting), return_exceptions=True)


async def warm(deciding: Deciding) -> Line:
    """A line that knows what tickets take."""
    line = Line(deciding, clock=deciding.clock)
    await turn_of(line, [ticket("warm")])
    deciding.asked.clear()
    return line


texts = st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)
batches = st.lists(st.lists(texts, min_size=1, max_size=5), min_size=1, max_size=6)


@given(batches, st.integers(0, 4))
def test_each_ticket_gets_what_it_gets_alone_in_order_whatever_goes_together(
    given_batches: list[list[str]], poisoned: int
) -> None:
    tickets = [
        [ticket(f"{lane}-{place}", text) for place, text in enumerate(each)]
        for lane, each in enumerate(given_batches)
    ]
    faulty = tickets[poisoned] if poisoned < len(tickets) else None
    if faulty is not None:
        faulty[-1] = ticket(faulty[-1].id, "raise")

    async def run() -> list[Sequence[Decision] | BaseException]:
        return await turn_of(await warm(Deciding()), *tickets)

    found = asyncio.run(run())

    for batch, got in zip(tickets, found, strict=True):
        if batch is faulty:
            assert isinstance(got, RuntimeError)
            continue
        assert not isinstance(got, BaseException)
        assert [*got] == [decide_each([each])[0] for each in batch]


async def test_what_waits_is_decided_in_one_turn() -> None:
    deciding = Deciding()
    line = await warm(deciding)

    await turn_of(line, [ticket("a"), ticket("b")], [ticket("c")], [ticket("d")])

    assert deciding.asked == [["a", "b", "c", "d"]]


async def test_nothing_goes_together_before_it_is_known_what_tickets_take() -> None:
    deciding = Deciding()

    await turn_of(Line(deciding, clock=deciding.clock), [ticket("a")], [ticket("b")], [ticket("c")])

    assert deciding.asked == [["a"], ["b", "c"]]


async def test_a_slow_model_decides_each_lanes_tickets_by_themselves() -> None:
    deciding = Deciding(seconds=MOST_S)
    line = await warm(deciding)

    await turn_of(line, [ticket("a")], [ticket("b")])

    assert deciding.asked == [["a"], ["b"]]


async def test_a_turn_is_bounded_in_tickets() -> None:
    deciding = Deciding()
    line = await warm(deciding)
    half = [ticket(f"{number}") for number in range(MOST_TICKETS // 2)]

    await turn_of(line, half, half, half)

    assert [len(each) for each in deciding.asked] == [MOST_TICKETS, MOST_TICKETS // 2]


@pytest.mark.parametrize(("word", "kind"), [("hang", ScorerHung), ("away", ScorerUnavailable)])
async def test_each_whose_tickets_were_under_way_is_told_and_none_is_asked_again(
    word: str, kind: type[Exception]
) -> None:
    deciding = Deciding()
    line = await warm(deciding)

    found = await turn_of(line, [ticket("a", word)], [ticket("b")])

    assert [type(each) for each in found] == [kind, kind]
    assert deciding.asked == [["a", "b"]]


async def test_who_joins_after_a_turn_began_is_not_told_of_its_hang() -> None:
    deciding = Deciding()
    line = await warm(deciding)
    under_way = [line.join([ticket("a", "hang")]), line.join([ticket("b")])]
    turn = asyncio.create_task(line.take_turn())
    await asyncio.sleep(0)

    later = line.join([ticket("c")])
    await turn

    assert [type(each.decisions.exception()) for each in under_way] == [ScorerHung, ScorerHung]
    assert not later.decisions.done()
    later.decisions.cancel()


async def test_a_lanes_tries_of_a_ticket_that_fails_cost_the_others_one_turn() -> None:
    deciding = Deciding()
    line = await warm(deciding)

    class Lanes:
        async def decide(self, tickets: Sequence[Ticket]) -> Sequence[Decision]:
            waiting = line.join(tickets)
            await line.take_turn()
            return await waiting.decisions

        def refuse(self, stage: object, reasons: object) -> Decision:
            return decide_each([ticket("refused")])[0]

    batch = [ticket("a"), ticket("x", "raise"), ticket("b")]
    innocent = line.join([ticket("i")])
    mine = line.join(batch)
    await line.take_turn()
    assert innocent.decisions.done()
    assert isinstance(mine.decisions.exception(), RuntimeError)
    others = asyncio.gather(*(decide_all(Lanes(), [ticket(f"o{number}")]) for number in range(3)))

    decisions = await decide_all(Lanes(), batch)  # type: ignore[arg-type]
    await others

    assert len(decisions) == 3
    failed_with_others = [each for each in deciding.asked if "x" in each and not {*each} <= {"a", "x", "b"}]
    assert failed_with_others == [["i", "a", "x", "b"]]
    assert len(deciding.asked) <= APART_TURNS


async def test_results_of_the_wrong_number_fail_the_lane_whose_they_are() -> None:
    found = await turn_of(await warm(Deciding()), [ticket("a")], [ticket("b", "short")])

    assert not isinstance(found[0], BaseException)
    assert isinstance(found[1], Exception)


async def test_whoever_gave_up_is_not_decided() -> None:
    deciding = Deciding()
    line = await warm(deciding)
    gone, left = line.join([ticket("a")]), line.join([ticket("b")])
    gone.decisions.cancel()
    line.leave(left)

    await line.take_turn()

    assert deciding.asked == []
