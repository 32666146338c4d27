"""Concurrent requests scored together.

Promise: while the scorer is busy, requests wait; as soon as it is free, all that ask the same questions go to it in one
call. Nobody waits for company. A request that fails the scorer fails alone: the others of its batch are asked again.
Relies on: a scorer whose answers do not depend on the batch (its port says so).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ticketgate.agents.scoring import Scorer, ScorerUnavailable, Scores
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.strict import encode

log = logging.getLogger(__name__)

# A batch holds the next one up: 32 tickets take the default model about a tenth of a second.
MOST_TOGETHER = 32
# Beyond this a caller waits longer than it would care to; it is told at once.
MOST_WAITING = 256


class Overloaded(Exception):
    """Too many requests wait already."""


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    ticket: Ticket
    questions: Mapping[str, Question]
    # The questions as bytes: equal only if they are asked alike and in the same order.
    kind: bytes
    scores: asyncio.Future[Scores]


class MicroBatcher:
    """One scorer for many callers, in a thread of its own. Used from one event loop."""

    def __init__(
        self, scorer: Scorer, *, most_together: int = MOST_TOGETHER, most_waiting: int = MOST_WAITING
    ) -> None:
        self._scorer = scorer
        self._most_together, self._most_waiting = most_together, most_waiting
        self._waiting: deque[_Job] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="systemone")

    async def score(self, ticket: Ticket, questions: Mapping[str, Question]) -> Scores:
        """The scores of one ticket. Raises `Overloaded`, and what the scorer raises.

        Cancelled while it waits, it is not scored at all.
        """
        if len(self._waiting) >= self._most_waiting:
            self._forget_cancelled()
        if len(self._waiting) >= self._most_waiting:
            raise Overloaded
        kind = encode({name: question.to_json() for name, question in questions.items()})
        job = _Job(ticket, questions, kind, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="systemone batches")
        return await job.scores

    async def close(self) -> None:
        """Score nothing more; who waits is cancelled. A computation under way is not waited for."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await worker
        for job in self._waiting:
            job.scores.cancel()
        self._waiting.clear()
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        """Until nobody waits."""
        try:
            while batch := self._take():
                try:
                    await self._answer(batch)
                finally:
                    for job in batch:
                        job.scores.cancel()  # no effect on one that has its scores
        finally:
            self._worker = None

    def _take(self) -> list[_Job]:
        """The first that waits, and those behind it that ask the same; the others keep their order."""
        self._forget_cancelled()
        if not self._waiting:
            return []
        kind = self._waiting[0].kind
        batch: list[_Job] = []
        others: deque[_Job] = deque()
        for job in self._waiting:
            fits = job.kind == kind and len(batch) < self._most_together
            (batch if fits else others).append(job)
        self._waiting = others
        return batch

    def _forget_cancelled(self) -> None:
        """Whoever waited for these has gone."""
        self._waiting = deque(job for job in self._waiting if not job.scores.done())

    async def _answer(self, batch: Sequence[_Job]) -> None:
        try:
            scores = await self._scored(batch)
        except Exception as err:  # noqa: BLE001 - a scorer may raise anything, and each caller gets to know it
            if len(batch) == 1 or isinstance(err, ScorerUnavailable):
                for job in batch:
                    if not job.scores.done():
                        job.scores.set_exception(err)
                return
            log.warning("scoring %d requests together failed: %r; each by itself now", len(batch), err)
            for job in batch:
                await self._answer([job])
            return
        for job, found in zip(batch, scores, strict=True):
            if not job.scores.done():
                job.scores.set_result(found)

    async def _scored(self, batch: Sequence[_Job]) -> Sequence[Scores]:
        return await asyncio.get_running_loop().run_in_executor(
            self._executor, self._scorer.score, [job.ticket for job in batch], batch[0].questions
        )
