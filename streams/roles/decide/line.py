"""The tickets of all lanes that wait, decided together, so that an inference is as full as what waits allows.

A lane puts its tickets into the line and waits. Each turn takes from the head of the line as many lanes' tickets as may
go together: no more than MOST_TICKETS, and no more than are likely to be decided within MOST_S, by what earlier turns
took for the length of their texts. Nobody waits for company, and nobody is overtaken. A model that is slow for each
ticket has each lane's tickets decided by themselves, since together they would only look like a hang.

Promise: each lane has the decisions on its own tickets, in order, or what went wrong with them. Each whose tickets were
under way is told of a hang, and of a scorer that is away. Whatever else is raised over several lanes' tickets is no
lane's fault yet: each lane's are decided alone then, and for APART_TURNS nobody's together, so that the tries of the
lane at fault cost the others nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ticketgate.agents.deciding.decide import Decision, ScorerMisbehavedError
from ticketgate.agents.scoring import ScorerUnavailable
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.streams.roles.decide.deciding import ScorerHung

# As many texts as the local model tokenises at once.
MOST_TICKETS = 256
# With the shipped model, two or three full batches of short tickets. After longer turns lanes would commit in crowds,
# and the core would idle meanwhile.
MOST_S = 0.3
APART_TURNS = 16
# What a ticket counts beside its text, in characters: its share of what does not grow with texts.
EACH_CHARS = 32

Decide = Callable[[Sequence[Ticket]], Awaitable[Sequence[Decision]]]


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """One lane's tickets, and the future that takes their decisions. weight: of their texts, in characters."""

    tickets: Sequence[Ticket]
    weight: int
    decisions: asyncio.Future[Sequence[Decision]]


class Line:
    """Who waits for decisions. `decide` decides some tickets, in order; `clock` in seconds."""

    def __init__(self, decide: Decide, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._decide, self._clock = decide, clock
        self._waiting: deque[Waiting] = deque()
        # None until a turn was taken: nobody's tickets go together before it is known what they take.
        self._seconds_a_char: float | None = None
        self._apart = 0

    def join(self, tickets: Sequence[Ticket]) -> Waiting:
        """Put one lane's tickets at the end of the line. Whoever does has a turn taken, and leaves."""
        future: asyncio.Future[Sequence[Decision]] = asyncio.get_running_loop().create_future()
        waiting = Waiting(tickets, sum(map(_weight, tickets)), future)
        self._waiting.append(waiting)
        return waiting

    def leave(self, waiting: Waiting) -> None:
        """Its decisions are there, or nobody waits for them any more."""
        if waiting in self._waiting:
            self._waiting.remove(waiting)

    async def take_turn(self) -> None:
        """Decide what stands at the head of the line; nothing, where an earlier turn did. Raises nothing."""
        together = self._next()
        if len(together) > 1:
            found = await self._outcome(together)
            if not isinstance(found, Exception) or isinstance(found, (ScorerHung, ScorerUnavailable)):
                _tell(together, found)
                return
            self._apart = APART_TURNS
        for each in together:
            _tell([each], await self._outcome([each]))

    def _next(self) -> list[Waiting]:
        self._apart = max(0, self._apart - 1)
        found: list[Waiting] = []
        while self._waiting and (not found or self._fits(found, self._waiting[0])):
            waiting = self._waiting.popleft()
            if not waiting.decisions.done():  # else its lane gave up
                found.append(waiting)
        return found

    def _fits(self, found: Sequence[Waiting], further: Waiting) -> bool:
        if self._apart or self._seconds_a_char is None:
            return False
        together = (*found, further)
        return (
            sum(len(each.tickets) for each in together) <= MOST_TICKETS
            and sum(each.weight for each in together) * self._seconds_a_char <= MOST_S
        )

    async def _outcome(self, together: Sequence[Waiting]) -> Sequence[Decision] | Exception:
        tickets = [ticket for each in together for ticket in each.tickets]
        began = self._clock()
        try:
            found = await self._decide(tickets)
        except Exception as err:  # noqa: BLE001 - the lanes' to handle; raised here it would end who takes turns
            return err
        if len(found) != len(tickets):
            return ScorerMisbehavedError(tickets=len(tickets), results=len(found))
        self._learn(self._clock() - began, sum(each.weight for each in together))
        return found

    def _learn(self, seconds: float, weight: int) -> None:
        """What a character takes: as the last turns had it, the last of them for half."""
        if weight:
            each, before = seconds / weight, self._seconds_a_char
            self._seconds_a_char = each if before is None else (each + before) / 2


def _tell(together: Sequence[Waiting], found: Sequence[Decision] | Exception) -> None:
    """Each its own part of what was decided, or what was raised."""
    begin = 0
    for each in together:
        end = begin + len(each.tickets)
        if not each.decisions.done():
            if isinstance(found, Exception):
                each.decisions.set_exception(found)
            else:
                each.decisions.set_result(found[begin:end])
        begin = end


def _weight(ticket: Ticket) -> int:
    state = ticket.state
    return EACH_CHARS + len(state if isinstance(state, str) else str(state))
