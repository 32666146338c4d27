"""POST /v1/systemone and GET /v1/models: the protocol's server, on a scorer.

Promise: what cannot be answered gets a 4xx in the protocol's shape that names every fault with its place; a 5xx means
that the fault is ours or the model's. One deadline covers reading and answering. A response is checked as answers from
outside are, and written strictly, so it holds no NaN.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from aiohttp import web
from ticketgate.agents.scoring import Scorer, ScorerUnavailable
from ticketgate.agents.scoring.models import Models
from ticketgate.agents.scoring.systemone import (
    AnswersUnusable,
    Fault,
    Request,
    RequestError,
    SenderAtFault,
    read_request,
    respond,
)
from ticketgate.codecs.systemone.protocol import PATH
from ticketgate.codecs.systemone.questions import NoulQuestion
from ticketgate.codecs.values.strict import JsonValue, Malformed, decode
from ticketgate.streams.process.web.admission import Admission, Origins, require_json, room_for
from ticketgate.streams.process.web.auth import Keys
from ticketgate.streams.process.web.batching import MicroBatcher, Overloaded
from ticketgate.streams.process.web.bodies import read_body, require_size
from ticketgate.streams.process.web.errors import OVERLOADED, ApiError, json_response, refusal
from ticketgate.streams.process.web.openapi import document

# The protocol names no number; third-party catalogues assume 64. What costs time is the texts to be read: each noul
# is one, and each option and level. 2,048 short ones that were never seen before take the default model 2 to 3 s.
MOST_QUESTIONS = 256
MOST_TEXTS = 2048

# Larger bodies are parsed in a thread: the event loop of a worker has heartbeats to send.
INLINE_BYTES = 32 * 1024
RETRY_AFTER_S = 1
# Where no setting says otherwise.
BYTES_AT_ONCE = 64 * 2**20


class SystemOne:
    """The endpoint. Used from one event loop; `close` ends it."""

    def __init__(
        self,
        models: Models,
        *,
        keys: Keys,
        max_bytes: int,
        timeout: timedelta,
        origins: Origins | None = None,
        admission: Admission | None = None,
    ) -> None:
        self._models = models
        self._keys, self._origins = keys, origins or Origins()
        self._admission = admission or Admission(most_bytes=BYTES_AT_ONCE)
        self._max_bytes = max_bytes
        self._timeout_s = timeout.total_seconds()
        self._batchers = {id(scorer): MicroBatcher(scorer) for scorer in models.every}

    @property
    def routes(self) -> Sequence[web.AbstractRouteDef]:
        """What it answers."""
        return [
            web.post(PATH, self._answer),
            web.get("/v1/models", self._list_models),
            web.get("/openapi.json", self._openapi),
        ]

    async def close(self) -> None:
        """Answer nobody more."""
        for batcher in self._batchers.values():
            await batcher.close()

    async def _answer(self, request: web.Request) -> web.Response:
        caller = self._keys.require(request)
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        require_size(request, self._max_bytes)
        with self._admission.enter(caller, room_for(request.content_length, self._max_bytes)):
            body = await read_body(
                request, max_bytes=self._max_bytes, deadline=deadline, timeout_s=self._timeout_s
            )
            self._origins.require(request)
            require_json(request)
            asked = await self._read(body)
            return json_response(await self._score(asked, deadline))

    async def _list_models(self, request: web.Request) -> web.Response:
        self._origins.require(request)
        self._keys.require(request)
        aliases = self._models.aliases
        told = [
            _described(self._models.default, self._models.default.model.id, "the model of this ticketgate")
        ]
        told += [
            _described(scorer, name, f"an alias of {scorer.model.id}") for name, scorer in aliases.items()
        ]
        return json_response({"models": [*told]})

    async def _openapi(self, _: web.Request) -> web.Response:
        return json_response(document())

    async def _read(self, body: bytes) -> Request:
        if len(body) <= INLINE_BYTES:
            return self._checked(body)
        return await asyncio.to_thread(self._checked, body)

    def _checked(self, body: bytes) -> Request:
        value = decode(body, max_bytes=self._max_bytes)
        try:
            if isinstance(value, Malformed):
                raise RequestError(Fault(("body",), value.reason, value.code))
            asked = read_request(value)
            _limit(asked)
        except RequestError as err:
            raise ApiError(422, err.to_json()) from err
        return asked

    async def _score(self, asked: Request, deadline: float) -> JsonValue:
        try:
            async with asyncio.timeout_at(deadline):
                scorer = self._models.named(asked.model)
                scores = await self._batchers[id(scorer)].score(asked.ticket, asked.questions)
            return respond(asked, scores, model=scorer.model.id).to_json()
        except TimeoutError as err:
            what = f"no answer within {self._timeout_s:g} s"
            raise refusal(503, "timeout_error", what, retry_after=str(RETRY_AFTER_S)) from err
        except Overloaded as err:
            what = "too many requests wait already"
            raise refusal(OVERLOADED, "overloaded_error", what, retry_after=str(RETRY_AFTER_S)) from err
        except ScorerUnavailable as err:
            wait = RETRY_AFTER_S if err.retry_after_s is None else max(1, round(err.retry_after_s))
            raise refusal(
                503, "unavailable_error", "the model does not answer at present", retry_after=str(wait)
            ) from err
        except SenderAtFault as err:
            raise ApiError(422, RequestError(Fault(("body",), str(err), "value_error")).to_json()) from err
        except AnswersUnusable as err:
            raise refusal(502, "answers_unusable", str(err)) from err


def _described(scorer: Scorer, name: str, what: str) -> dict[str, JsonValue]:
    model = scorer.model
    return {
        "name": name,
        "description": f"{what}, sha256 {model.hash}",
        # The protocol wants one; a model folder has none.
        "release_date": "",
        "x_hash": model.hash,
    }


def _limit(asked: Request) -> None:
    """Raises RequestError for more questions than one request may ask."""
    place = ("body", "questions")
    if (count := len(asked.questions)) > MOST_QUESTIONS:
        what = f"at most {MOST_QUESTIONS} questions in one request, not {count}"
        raise RequestError(Fault(place, what, "too_long"))
    texts = sum(1 if isinstance(q, NoulQuestion) else len(q.labels) for q in asked.questions.values())
    if texts > MOST_TEXTS:
        what = f"at most {MOST_TEXTS} options and levels in one request, not {texts}"
        raise RequestError(Fault(place, what, "too_long"))
