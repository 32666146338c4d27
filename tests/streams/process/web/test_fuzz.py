"""Requests generated from the OpenAPI description that we publish, whole and broken: no 5xx, no hang.

A few hundred in `make test`, 100,000 in `make chaos`.
"""

from __future__ import annotations

import copy
import http.client
import json
import time
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from ticketgate.agents.scoring import Scorer
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.question_reading import read_questions
from ticketgate.streams.process.web.openapi import document

from tests.streams.process.web.conftest import GivenScorer, Served, serving
from tests.support.from_schema import ANYTHING, from_schema

# What a bad request may get; 529 and 503 cannot be had by one caller who waits for each answer.
ALLOWED = {200, 400, 413, 415, 422}
# The server's own limit is 30 s; on a busy machine the slowest of 100,000 took 2 s.
MOST_S = 20.0


def inlined(schema: Any, schemas: Any) -> Any:
    """`schema` with its references filled in; ours have no cycle."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return inlined(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
        return {key: inlined(value, schemas) for key, value in schema.items()}
    return [inlined(each, schemas) for each in schema] if isinstance(schema, list) else schema


def published() -> Any:
    described: Any = document()
    (content,) = described["paths"]["/v1/systemone"]["post"]["requestBody"]["content"].values()
    return inlined(content["schema"], described["components"]["schemas"])


AS_PUBLISHED = from_schema(published())


@st.composite
def one_part_replaced(draw: st.DrawFn) -> Any:
    """A request as published, in which anything stands at one place."""
    request = draw(AS_PUBLISHED)
    place: Any = request
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return request
        key = draw(st.sampled_from(keys))
        if isinstance(place[key], (dict, list)) and place[key] and draw(st.booleans()):
            place = place[key]
            continue
        place[key] = draw(ANYTHING)
        return request


@st.composite
def bytes_broken(draw: st.DrawFn) -> bytes:
    """A request as published, some of its bytes cut out or replaced."""
    body = json.dumps(draw(AS_PUBLISHED)).encode()
    start = draw(st.integers(0, len(body)))
    return body[:start] + draw(st.binary(max_size=6)) + body[start + draw(st.integers(0, 6)) :]


BODIES = st.one_of(AS_PUBLISHED, one_part_replaced(), bytes_broken(), st.binary(max_size=64))


class Client:
    """One connection, opened again when the server closed it; counts what it got."""

    def __init__(self, server: Served) -> None:
        self._connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        self.statuses: Counter[int] = Counter()
        self.slowest_s = 0.0

    def post(self, body: object) -> tuple[int, bytes]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        began = time.monotonic()
        self._connection.request("POST", "/v1/systemone", data, {"Content-Type": "application/json"})
        got = self._connection.getresponse()
        answer = got.read()
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        self.statuses[got.status] += 1
        return got.status, answer

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(params=["given", "default model"])
def client(request: pytest.FixtureRequest, default_model: Scorer) -> Iterator[Client]:
    scorer: Scorer = GivenScorer(keeps=False) if request.param == "given" else default_model
    with serving(scorer) as server:
        client = Client(server)
        yield client
        client.close()
    print(f"{request.param}: {dict(client.statuses)}, slowest {client.slowest_s:.2f} s")


def refuse_no_request_wrongly(client: Client, body: object) -> None:
    status, answer = client.post(body)

    assert status in ALLOWED, (status, answer)
    assert client.slowest_s < MOST_S
    got = json.loads(answer, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    if status == 200:
        asked: Any = body if isinstance(body, dict) else json.loads(body)  # type: ignore[arg-type]  # bytes
        questions = read_questions(asked["questions"], unknown_fields="ignore")
        assert isinstance(check_answers(questions, got["answers"]), dict)
    elif status == 422:
        assert all(fault["loc"][0] == "body" and fault["msg"] and fault["type"] for fault in got["detail"])
    else:
        assert got["detail"]["message"]


QUICK = settings(
    max_examples=150,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


@QUICK
@given(body=BODIES)
def test_no_request_gets_a_5xx_or_hangs(client: Client, body: object) -> None:
    refuse_no_request_wrongly(client, body)


# What stands in the place of something in a request: of each kind, and what servers have stumbled over.
NASTY: list[Any] = [
    None, True, 0, -1, 1e308, 2**63, 2**64, -0.0, float("nan"), float("inf"), "", "\x00", "\ufeff", "\ud800",
    "a" * 5000,
    "[MASK] [SEP]", "{state}", [], [[]], {}, {"": ""}, {"type": "noul"}, [None] * 300,
    {str(n): None for n in range(300)},
    ["x"] * 11, "noul", "choice", "score", {"true": 1}, [[[[[[[[[[[[]]]]]]]]]]]],
]  # fmt: skip


def damaged(request: Any, random: Random) -> bytes:
    """The request with one or two of its parts replaced, and of one in three some bytes broken."""
    if isinstance(request, bytes):
        request = {"state": "x", "questions": {"a": {"type": "noul", "instructions": request.hex()}}}
    request = copy.deepcopy(request)
    for _ in range(random.randint(1, 2)):
        place: Any = request
        while isinstance(place, (dict, list)) and place:
            key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
            if isinstance(place[key], (dict, list)) and place[key] and random.random() < 0.7:
                place = place[key]
                continue
            place[key] = copy.deepcopy(random.choice(NASTY))
            break
    body = json.dumps(request).encode()
    if random.random() < 1 / 3:
        start = random.randrange(len(body))
        body = body[:start] + random.randbytes(random.randint(0, 4)) + body[start + random.randint(0, 4) :]
    return body


# Of each request that Hypothesis makes, so many more: making one takes as long as asking ten times.
DAMAGED = 19


@pytest.mark.chaos
@pytest.mark.parametrize(
    ("client", "examples"), [("given", 4500), ("default model", 500)], indirect=["client"]
)
def test_none_of_100_000_requests_gets_a_5xx_or_hangs(client: Client, examples: int) -> None:
    @settings(QUICK, max_examples=examples, database=None)
    @given(body=BODIES, seed=st.integers(0, 2**32))
    def ask(body: object, seed: int) -> None:
        refuse_no_request_wrongly(client, body)
        random = Random(seed)
        for _ in range(DAMAGED):
            refuse_no_request_wrongly(client, damaged(body, random))

    ask()

    # Not all that were asked for need differ, and Hypothesis may stop at fewer; all that were sent are counted.
    assert client.statuses.total() > examples * (DAMAGED + 1) * 0.9


@settings(QUICK, max_examples=100)
@given(request=AS_PUBLISHED)
def test_what_the_description_allows_is_answered_but_for_what_it_cannot_say(
    client: Client, request: dict[str, Any]
) -> None:
    status, answer = client.post(request)

    if status != 200:
        # JSON Schema cannot say these.
        known = ("Field required", "without instructions", "no model", "NaN", "Infinity", "range", "bits")
        assert any(reason in answer.decode() for reason in known), (status, answer)
