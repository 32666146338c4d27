"""The endpoint on a free port, in a thread with an event loop of its own, as a client meets it."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr
from ticketgate.agents.scoring import Scorer, Scores, open_scorer
from ticketgate.agents.scoring.models import Models
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question
from ticketgate.streams.process.web.admission import Admission
from ticketgate.streams.process.web.auth import Keys
from ticketgate.streams.process.web.server import WebServer
from ticketgate.streams.process.web.systemone import SystemOne

QUESTION = {"type": "noul", "instructions": "Is it urgent?"}
REQUEST: dict[str, Any] = {"state": "My card was charged twice.", "questions": {"urgent": QUESTION}}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server sent."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"].startswith("application/json"), self.body[:200]
        return json.loads(self.body, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


@dataclass(frozen=True, slots=True)
class Served:
    """A running endpoint. `waiting`: how many requests wait for the scorer, which no reply tells."""

    url: str
    waiting: Callable[[], int]

    def post(self, body: object, **headers: str) -> Reply:
        """POST /v1/systemone; bytes are sent as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send("POST", "/v1/systemone", data, **headers)

    def send(self, method: str, path: str, data: bytes | None = None, **headers: str) -> Reply:
        """Any request; `Content_Type` is the header `Content-Type`."""
        sent = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        asked = urllib.request.Request(self.url + path, data, sent, method=method)  # noqa: S310 - ours
        try:
            with urllib.request.urlopen(asked, timeout=60) as got:  # noqa: S310 - ours
                return Reply(got.status, {k.lower(): v for k, v in got.headers.items()}, got.read())
        except urllib.error.HTTPError as err:
            with err:
                return Reply(err.code, {k.lower(): v for k, v in err.headers.items()}, err.read())


Serve = Callable[..., AbstractContextManager[Served]]


@dataclass
class GivenScorer:
    """Says true with 0.75 and chooses the first option; `act` is called first, with the states."""

    act: Callable[[Sequence[Any]], None] = lambda states: None
    noul: float = 0.75
    batches: list[list[Any]] = field(default_factory=list)
    keeps: bool = True

    @property
    def model(self) -> ModelRef:
        return ModelRef(id="given@1", hash="0" * 64)

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        states = [ticket.state for ticket in tickets]
        if self.keeps:
            self.batches.append(states)
        self.act(states)
        return [
            Scores({name: self._answer(question) for name, question in questions.items()}) for _ in tickets
        ]

    def _answer(self, question: Question) -> object:
        if isinstance(question, NoulQuestion):
            return {"type": "noul", "noul": self.noul}
        chances = dict.fromkeys(question.labels, 0.0) | {question.labels[0]: 1.0}
        if isinstance(question, ChoiceQuestion):
            return {"type": "choice", "choice": question.labels[0], "probabilities": chances}
        return {"type": "score", "score": 0.0, "probabilities": chances}


@contextmanager
def serving(
    scorer: Scorer,
    *,
    keys: Sequence[str] = (),
    max_bytes: int = 2**20,
    timeout_s: float = 30.0,
    bytes_at_once: int = 64 * 2**20,
    aliases: Mapping[str, Scorer] | None = None,
    **port: Any,
) -> Iterator[Served]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="endpoint", daemon=True)
    thread.start()

    async def start() -> tuple[SystemOne, WebServer]:
        endpoint = SystemOne(
            Models(scorer, aliases or {}),
            keys=Keys([SecretStr(key) for key in keys]),
            max_bytes=max_bytes,
            timeout=timedelta(seconds=timeout_s),
            admission=Admission(most_bytes=bytes_at_once),
        )
        server = WebServer(endpoint.routes, bind="127.0.0.1", port=0, **port)
        await server.start()
        return endpoint, server

    endpoint, server = asyncio.run_coroutine_threadsafe(start(), loop).result(30)

    async def stop() -> None:
        await server.stop()
        await endpoint.close()
        await loop.shutdown_default_executor()

    def waiting() -> int:
        return sum(len(batcher._waiting) for batcher in endpoint._batchers.values())

    try:
        yield Served(f"http://{server.address}", waiting=waiting)
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@pytest.fixture
def serve() -> Serve:
    """Serve a scorer for as long as a `with` lasts."""
    return serving


@pytest.fixture(scope="session")
def default_model() -> Scorer:
    return open_scorer("onnx")


@pytest.fixture(scope="session")
def served(default_model: Scorer) -> Iterator[Served]:
    """The default model, open to all."""
    with serving(default_model) as server:
        yield server
