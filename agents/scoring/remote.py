"""The remote scorer: any System One server by its URL.

Promise: a server's answers come back as it sent them, to be checked whole by the gate; nothing is rounded or
renormalised. What goes wrong is told apart by what the caller can do. A fault that may pass was waited for and tried
again. A request that the server refuses, or fails on each time, is the ticket's fault exactly if the server afterwards
answers the same questions about a harmless state (the canary): then that ticket has a `Failure`. Everything else is
ScorerUnavailable, for which no ticket may suffer, whatever an outage looks like. After one the canary goes first.

HTTP is by aiohttp, in an event loop and thread of the scorer's own: the port is synchronous, yet requests of a batch
must overlap and connections outlive it, which a loop made for each call could not give.
"""

import asyncio
import concurrent.futures
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self, TypeVar

from ticketgate.agents.plural import counted
from ticketgate.agents.scoring.remote_client import (
    MOST_AT_ONCE,
    Answered,
    Faltered,
    Outcome,
    Refused,
    RemoteClient,
    endpoint_of,
)
from ticketgate.agents.scoring.scorer import Failure, ScorerUnavailable, Scores
from ticketgate.agents.scoring.shortlist import EmbedFn
from ticketgate.agents.scoring.shortlisting import Shortlister, score_shortlisted
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.values.strict import JsonValue, canonical, encode

DEFAULT_MODEL: Final = "jev-latest"

# Of the time that a batch may take, what one request may: two that hang and a canary still fit.
REQUEST_SHARE: Final = 0.3
CANARY_STATE: Final = "Hello."
# Answers kept from a call that was broken off, so that the next one comes further.
MOST_KEPT: Final = 4096

# How much of a server's reason is passed on.
MOST_TOLD: Final = 200

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Request:
    """What is posted for one ticket, what is asked in it, and the same questions about a harmless state."""

    body: bytes
    canary: bytes
    asked: Mapping[str, Question]


class RemoteScorer:
    """Asks a System One server, a request a ticket. Safe to call from several threads at once."""

    def __init__(self, url: str, *, key: str | None, model: str, timeout_s: float) -> None:
        self._url, self._asked_model, self._timeout_s = url, model, timeout_s
        self._ref = self._model_ref(model)
        self._shortlister = Shortlister(_shipped_encoder)
        self._loop = _LoopThread()
        self._client = self._loop.run(_client(url, key, timeout_s * REQUEST_SHARE))
        # The rest is touched in the loop alone.
        self._at_once = asyncio.Semaphore(MOST_AT_ONCE)
        self._asking_canary = asyncio.Lock()
        # When the canary was last asked that was well answered, by canary.
        self._answered_at: dict[bytes, float] = {}
        self._is_away = False
        self._kept: OrderedDict[bytes, Scores] = OrderedDict()

    @classmethod
    def open(
        cls, url: str, *, key: str | None = None, model: str = DEFAULT_MODEL, timeout_s: float = 45.0
    ) -> Self:
        """A scorer on the server whose root is `url`. Nothing is asked yet: a server that is away now may come back.

        model: what to ask it for. timeout_s: the longest that a batch may take. Raises ScorerError for what is no URL.
        """
        return cls(endpoint_of(url), key=key, model=model, timeout_s=timeout_s)

    @property
    def model(self) -> ModelRef:
        """The model asked for. Which one answered stands in each `Scores.model`."""
        return self._ref

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """One Scores a ticket, in order. Raises ScorerUnavailable."""
        if not tickets or not questions:
            return tuple(Scores(answers={}) for _ in tickets)
        return score_shortlisted(self._ask, self._shortlister, tickets, questions)

    def _ask(self, tickets: Sequence[Ticket], asked: Sequence[Mapping[str, Question]]) -> Sequence[Scores]:
        written: dict[int, tuple[JsonValue, bytes]] = {}
        requests: list[_Request] = []
        for ticket, questions in zip(tickets, asked, strict=True):
            if id(questions) not in written:
                told: JsonValue = {name: question.to_json() for name, question in questions.items()}
                written[id(questions)] = (told, self._body(CANARY_STATE, told))
            told, canary = written[id(questions)]
            requests.append(_Request(self._body(ticket.state, told), canary, questions))
        return self._loop.run(self._score(requests))

    def close(self) -> None:
        """Break off what is under way and close the connections."""
        self._loop.close(self._client.close())

    def _body(self, state: JsonValue, questions: JsonValue) -> bytes:
        return encode({"model": self._asked_model, "state": state, "questions": questions})

    async def _score(self, requests: Sequence[_Request]) -> tuple[Scores, ...]:
        try:
            async with asyncio.timeout(self._timeout_s):
                if self._is_away:
                    await self._try_gently(requests[0].canary)
                scores = await self._together([self._one(request) for request in requests])
        except ScorerUnavailable:
            self._is_away = True
            raise
        except TimeoutError as err:
            self._is_away = True
            raise ScorerUnavailable(
                f"{self._url}: not every one of {counted(len(requests), 'ticket')} was answered in"
                f" {self._timeout_s:g} s; those that were are kept (a smaller TICKETGATE_BATCH_SIZE asks for less at a"
                " time)"
            ) from err
        self._is_away = False
        self._kept.clear()
        return scores

    async def _try_gently(self, canary: bytes) -> None:
        """One request, and no ticket's, so that a server that comes back is not met by all that waited for it."""
        try:
            await self._require_answer(canary)
        except ScorerUnavailable as err:
            raise ScorerUnavailable(
                f"{err}; it is asked about something harmless before any ticket",
                retry_after_s=err.retry_after_s,
            ) from err

    async def _together(self, asking: Sequence[Coroutine[Any, Any, Scores]]) -> tuple[Scores, ...]:
        """The first that finds the server away ends them all, for all would say the same."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(each, name="remote ticket") for each in asking]
        except BaseExceptionGroup as errors:
            # Not by `except*`: Python 3.11.2 puts what is raised in it into a group again.
            away, others = errors.split(ScorerUnavailable)
            if away is None or others is not None:
                raise
            raise _first(away) from errors
        return tuple(task.result() for task in tasks)

    async def _one(self, request: _Request) -> Scores:
        name = hashlib.sha256(request.body).digest()
        if name in self._kept:
            return self._kept[name]
        async with self._at_once:
            outcome = await self._client.ask(request.body)
            if not isinstance(outcome, Answered):
                await self._require_answer(request.canary)
        scores = self._scores(outcome, request.asked)
        self._kept[name] = scores
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return scores

    async def _require_answer(self, canary: bytes) -> None:
        """Raises ScorerUnavailable unless the server answers the same questions about a harmless state, asked from now
        on: what it answered before says nothing of an outage that has begun since."""
        after = asyncio.get_running_loop().time()
        async with self._asking_canary:
            if self._answered_at.get(canary, -1.0) >= after:
                return
            began = asyncio.get_running_loop().time()
            outcome = await self._client.ask(canary, tries=2)
            if not isinstance(outcome, Answered):
                raise ScorerUnavailable(
                    f"{self._url} answers these questions about no ticket: {_told(outcome)}"
                )
            self._answered_at = {canary: began}

    def _scores(self, outcome: Outcome, asked: Mapping[str, Question]) -> Scores:
        if isinstance(outcome, Refused):
            return Scores({}, failure=Failure(f"the model's server says {_told(outcome)}", is_senders=True))
        if isinstance(outcome, Faltered):
            return Scores({}, failure=Failure(f"the model's server failed on it: {_told(outcome)}"))
        response = outcome.response
        usage = response.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        tokens = usage.get("input_tokens")
        model = response.get("model")
        return Scores(
            outcome.answers,
            truncated=_truncated(usage, asked),
            abstention=_abstention(usage),
            input_tokens=tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else 0,
            model=self._model_ref(model) if isinstance(model, str) and model else None,
        )

    def _model_ref(self, model: str) -> ModelRef:
        """The name, and the SHA-256 of server and name: of a remote model nothing else can be known."""
        identity = canonical({"model": model, "url": self._url})
        return ModelRef(id=model[:256], hash=hashlib.sha256(identity).hexdigest())


class _LoopThread:
    """An event loop in a thread of its own, which does not keep the process from ending."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="remote scorer", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, waited for. Raises ScorerUnavailable once closed."""
        if self._loop.is_closed():
            work.close()
            raise ScorerUnavailable("the remote scorer is closed")
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except concurrent.futures.CancelledError as err:
            raise ScorerUnavailable("the remote scorer is closed") from err

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel what runs, do `last`, end the thread."""
        if self._loop.is_closed():
            last.close()
            return
        asyncio.run_coroutine_threadsafe(self._end(last), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self, last: Coroutine[Any, Any, None]) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await last


async def _client(url: str, key: str | None, request_timeout_s: float) -> RemoteClient:
    """Made in the loop that it will live in."""
    return RemoteClient(url, key=key, request_timeout_s=request_timeout_s)


def _told(outcome: Refused | Faltered) -> str:
    return outcome.said if isinstance(outcome, Faltered) else f"{outcome.status}: {outcome.said}"


def _truncated(usage: Mapping[str, JsonValue], asked: Mapping[str, Question]) -> frozenset[str]:
    """Questions answered on a part of the text, as servers tell: we by `x_truncated`, Laya by `truncated` and
    `truncated_questions`. Told without saying which, it is all."""
    for name in ("x_truncated", "truncated_questions"):
        listed = usage.get(name)
        if isinstance(listed, list) and listed:
            return frozenset(asked).intersection(each for each in listed if isinstance(each, str))
    return frozenset(asked) if usage.get("truncated") or usage.get("x_truncated") else frozenset()


def _abstention(usage: Mapping[str, JsonValue]) -> str | None:
    """Why the server's model does not stand by its answers, as we tell it."""
    told = usage.get("x_abstention")
    return f"the model's server says {quote(told[:MOST_TOLD])}" if isinstance(told, str) and told else None


def _shipped_encoder() -> EmbedFn:
    # Here, for a remote scorer that is asked no large choice loads no engine.
    from ticketgate.agents.scoring.onnx import default_embed

    return default_embed()


def _first(errors: BaseExceptionGroup[ScorerUnavailable]) -> ScorerUnavailable:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found if isinstance(found, ScorerUnavailable) else ScorerUnavailable(str(found))
