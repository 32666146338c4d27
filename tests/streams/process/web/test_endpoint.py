"""POST /v1/systemone and GET /v1/models as a client meets them."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from ticketgate.agents.scoring import ScorerUnavailable, Scores
from ticketgate.agents.scoring.scorer import Failure
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.streams.process.web import systemone
from ticketgate.streams.process.web.batching import MicroBatcher

from tests.streams.process.web.conftest import QUESTION, REQUEST, GivenScorer, Reply, Serve, Served


def detail(reply: Reply, status: int) -> Any:
    assert reply.status == status, reply.body
    assert reply.headers["x-typesafe-request-id"].startswith("req_")
    return reply.json["detail"]


def test_a_request_is_answered(serve: Serve) -> None:
    with serve(GivenScorer()) as server:
        reply = server.post(REQUEST)

    assert reply.status == 200
    assert reply.headers["x-typesafe-request-id"].startswith("req_")
    assert reply.json == {
        "model": "given@1",
        "answers": {
            "urgent": {
                "type": "noul",
                "noul": 0.75,
                "x_answer_confidence": 0.75,
                "x_certainty": pytest.approx(0.188722),
            }
        },
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


@pytest.mark.parametrize(
    ("body", "loc", "kind"),
    [
        (b"", ["body"], "empty_value"),
        (b"{", ["body"], "not_json"),
        (b"\xff", ["body"], "not_utf8"),
        (b'{"a": NaN}', ["body"], "nan"),
        (b'{"state": "x", "state": "y"}', ["body"], "duplicate_key"),
        (b"[]", ["body"], "dict_type"),
        (b"[" * 100_000, ["body"], "too_deep"),
        ({"questions": {"a": QUESTION}}, ["body", "state"], "missing"),
        ({**REQUEST, "state": None}, ["body", "state"], "state_type"),
        ({"state": "x", "questions": {}}, ["body", "questions"], "too_short"),
        ({"state": "x", "questions": {"a": {}}}, ["body", "questions", "a", "type"], "missing"),
        (
            {"state": "x", "questions": {"a": {"type": "choice", "criteria": {"only": None}}}},
            ["body", "questions", "a", "criteria"],
            "value_error",
        ),
        (
            {"state": "x", "questions": {str(i): QUESTION for i in range(257)}},
            ["body", "questions"],
            "too_long",
        ),
        (
            {
                "state": "x",
                "questions": {
                    str(i): {"type": "choice", "criteria": {str(n): None for n in range(255)}}
                    for i in range(9)
                },
            },
            ["body", "questions"],
            "too_long",
        ),
    ],
)
def test_a_bad_request_is_a_422_that_says_where(
    serve: Serve, body: object, loc: list[str], kind: str
) -> None:
    scorer = GivenScorer()
    with serve(scorer) as server:
        (fault,) = detail(server.post(body), 422)

    assert (fault["loc"], fault["type"]) == (loc, kind)
    assert fault["msg"]
    assert scorer.batches == []


@pytest.mark.parametrize("model", ["jev-latest", "jev-1.13.0", "given@1", "given", None])
def test_the_model_that_is_here_answers_to_its_name_and_to_jev(serve: Serve, model: str | None) -> None:
    with serve(GivenScorer()) as server:
        assert server.post({**REQUEST, "model": model}).status == 200


@pytest.mark.parametrize("name", ["gpt-9", "decider:2b", "/etc/passwd", "http://127.0.0.1:1/m", "../m", ""])
def test_any_other_name_is_answered_by_the_default_model_which_says_so(serve: Serve, name: str) -> None:
    with serve(GivenScorer()) as server:
        reply = server.post({**REQUEST, "model": name})

    assert reply.status == 200
    answer = json.loads(reply.body)
    assert (answer["model"], answer["x_model_asked_for"]) == ("given@1", name)


@pytest.mark.parametrize("is_plain", [True, False, None])
def test_answer_confidence_has_its_plain_name_for_who_asks(serve: Serve, is_plain: bool | None) -> None:
    asked = REQUEST if is_plain is None else {**REQUEST, "x_plain": is_plain}
    with serve(GivenScorer()) as server:
        answer = json.loads(server.post(asked).body)["answers"]["urgent"]
        refused = server.post({**REQUEST, "x_plain": "yes"})

    assert answer["x_answer_confidence"] == 0.75
    assert answer.get("answer_confidence") == (0.75 if is_plain else None)
    assert detail(refused, 422)[0]["loc"] == ["body", "x_plain"]


def test_an_alias_is_answered_by_its_own_model(serve: Serve) -> None:
    class Other(GivenScorer):
        @property
        def model(self) -> ModelRef:
            return ModelRef(id="other@2", hash="1" * 64)

    with serve(GivenScorer(noul=0.75), aliases={"small": Other(noul=0.25)}) as server:
        said = {name: json.loads(server.post({**REQUEST, "model": name}).body) for name in ("small", "given")}
        models = json.loads(server.send("GET", "/v1/models").body)["models"]

    assert (said["small"]["model"], said["given"]["model"]) == ("other@2", "given@1")
    assert said["small"]["x_model_asked_for"] == "small"
    assert "x_model_asked_for" not in said["given"]
    assert said["small"]["answers"] != said["given"]["answers"]
    assert [each["name"] for each in models] == ["given@1", "small"]


def test_a_key_is_needed_where_keys_are_set(serve: Serve) -> None:
    with serve(GivenScorer(), keys=["alpha", "beta"]) as server:
        missing = server.post(REQUEST)
        wrong = server.post(REQUEST, Authorization="Bearer gamma")
        basic = server.post(REQUEST, Authorization="Basic YWxwaGE6")
        right = [server.post(REQUEST, Authorization=f"bearer {key}").status for key in ("alpha", "beta")]
        models = server.send("GET", "/v1/models")
        described = server.send("GET", "/openapi.json")

    for reply in (missing, wrong, basic, models):
        assert detail(reply, 401)["error_type"] == "authentication_error"
        assert reply.headers["www-authenticate"] == "Bearer"
        assert b"alpha" not in reply.body
    assert right == [200, 200]
    assert described.status == 200


def test_without_keys_a_key_is_ignored(serve: Serve) -> None:
    with serve(GivenScorer()) as server:
        assert server.post(REQUEST, Authorization="Bearer whatever").status == 200


def test_a_refused_caller_does_not_get_its_body_read(serve: Serve) -> None:
    with serve(GivenScorer(), keys=["alpha"], max_bytes=2048) as server:
        assert server.post(b"x" * 100_000).status == 401


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_large_is_a_413(serve: Serve, chunked: bool) -> None:
    with serve(GivenScorer(), max_bytes=2048) as server:
        host = server.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=30)
        body: Any = iter([b" " * 1500, b" " * 1500]) if chunked else b" " * 3000
        connection.request(
            "POST", "/v1/systemone", body, encode_chunked=chunked, headers=chunk_headers(chunked)
        )
        got = connection.getresponse()
        found = json.loads(got.read())
        connection.close()

    assert (got.status, found["detail"]["error_type"]) == (413, "request_too_large")


def chunk_headers(chunked: bool) -> dict[str, str]:
    return {"Transfer-Encoding": "chunked"} if chunked else {}


def test_a_large_body_is_read_to_its_end(serve: Serve) -> None:
    with serve(GivenScorer()) as server:
        assert server.post({**REQUEST, "state": "é" * 100_000}).status == 200


def test_a_compressed_body_is_refused(serve: Serve) -> None:
    with serve(GivenScorer()) as server:
        assert (
            detail(server.post(b"\x1f\x8b", Content_Encoding="gzip"), 415)["error_type"] == "api_usage_error"
        )


def test_a_body_that_does_not_arrive_in_time_is_a_408(serve: Serve) -> None:
    with serve(GivenScorer(), timeout_s=0.3) as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=30) as slow:
            slow.sendall(b"POST /v1/systemone HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
            answer = slow.recv(4096)

    assert answer.startswith(b"HTTP/1.1 408 ")


def test_an_unknown_path_and_a_wrong_method(serve: Serve) -> None:
    with serve(GivenScorer()) as server:
        assert detail(server.send("GET", "/nothing"), 404) == "Not Found"
        wrong = server.send("GET", "/v1/systemone")

    assert detail(wrong, 405) == "Method Not Allowed"
    assert wrong.headers["allow"] == "POST"


def test_the_models_are_listed(serve: Serve) -> None:
    with serve(GivenScorer()) as server:
        (model,) = server.send("GET", "/v1/models").json["models"]

    assert model["name"] == "given@1"
    assert {"name", "description", "release_date"} <= model.keys()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1.5])
def test_a_model_that_gives_no_probability_gets_nothing_through(serve: Serve, number: float) -> None:
    with serve(GivenScorer(noul=number)) as server:
        found = detail(server.post(REQUEST), 502)

    assert found["error_type"] == "answers_unusable"
    assert "urgent" in found["message"]


def test_a_scorer_that_raises_tells_the_caller_nothing_of_its_insides(serve: Serve) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("the secret path")

    with serve(GivenScorer(fail)) as server:
        reply = server.post(REQUEST)

    assert detail(reply, 500)["error_type"] == "internal_error"
    assert b"secret" not in reply.body
    assert reply.headers["x-typesafe-request-id"].encode() in reply.body


def test_a_scorer_that_is_away_is_a_503_with_its_retry_after(serve: Serve) -> None:
    def away(_: object) -> None:
        raise ScorerUnavailable("gone", retry_after_s=7)

    with serve(GivenScorer(away)) as server:
        reply = server.post(REQUEST)

    assert detail(reply, 503)["error_type"] == "unavailable_error"
    assert reply.headers["retry-after"] == "7"


@pytest.mark.parametrize(("is_senders", "status"), [(True, 422), (False, 502)])
def test_whose_fault_a_failure_is_decides_the_status(serve: Serve, is_senders: bool, status: int) -> None:
    class Refused(GivenScorer):
        def score(self, tickets: Sequence[Any], questions: Any) -> Sequence[Scores]:
            return [Scores({}, failure=Failure("too long", is_senders=is_senders)) for _ in tickets]

    with serve(Refused()) as server:
        reply = server.post(REQUEST)

    assert reply.status == status
    assert b"too long" in reply.body


def test_a_scorer_that_takes_too_long_is_a_503(serve: Serve) -> None:
    go_on = threading.Event()
    with serve(GivenScorer(lambda _: assert_set(go_on)), timeout_s=0.3) as server:
        began = time.monotonic()
        reply = server.post(REQUEST)
        took = time.monotonic() - began
        go_on.set()

    assert detail(reply, 503)["error_type"] == "timeout_error"
    assert reply.headers["retry-after"] == "1"
    assert took < 10


def assert_set(event: threading.Event) -> None:
    assert event.wait(30)


class HeldScorer(GivenScorer):
    """Does not answer its first call before `go_on` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.go_on = threading.Event(), threading.Event()
        self.act = self._hold

    def _hold(self, _: object) -> None:
        if not self.inside.is_set():
            self.inside.set()
            assert_set(self.go_on)


def wait_until_arrived(server: Served, sent: Sequence[Future[Reply]]) -> None:
    """Returns once each request waits for the scorer or has its reply, as one has that is refused."""
    deadline = time.monotonic() + 30
    while server.waiting() + sum(each.done() for each in sent) < len(sent):
        assert time.monotonic() < deadline, f"{server.waiting()} of {len(sent)} requests wait"
        time.sleep(0.005)


def post_while_held(server: Served, scorer: HeldScorer, bodies: Sequence[object]) -> list[Reply]:
    """The first is being scored while the others arrive, one after the other."""
    with ThreadPoolExecutor(len(bodies) + 1) as threads:
        first = threads.submit(server.post, {**REQUEST, "state": "first"})
        assert_set(scorer.inside)
        others = []
        for body in bodies:
            others.append(threads.submit(server.post, body))
            wait_until_arrived(server, others)
        scorer.go_on.set()
        return [first.result(30), *(other.result(30) for other in others)]


def test_requests_that_wait_and_ask_alike_are_scored_together(serve: Serve) -> None:
    scorer = HeldScorer()
    other = {"state": "c", "questions": {"urgent": {"type": "noul", "instructions": "Another?"}}}
    with serve(scorer) as server:
        replies = post_while_held(
            server, scorer, [{**REQUEST, "state": "a"}, other, {**REQUEST, "state": "b"}]
        )

    assert [reply.status for reply in replies] == [200] * 4
    assert scorer.batches == [["first"], ["a", "b"], ["c"]]


def test_one_that_fails_the_scorer_fails_alone(serve: Serve) -> None:
    scorer = HeldScorer()

    def act(states: Sequence[Any]) -> None:
        scorer._hold(states)
        if "poison" in states:
            raise RuntimeError("cannot read it")

    scorer.act = act
    with serve(scorer) as server:
        replies = post_while_held(
            server, scorer, [{**REQUEST, "state": state} for state in ("a", "poison", "b")]
        )

    assert [reply.status for reply in replies] == [200, 200, 500, 200]


def test_too_many_that_wait_are_told_so(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:

    scorer = HeldScorer()
    monkeypatch.setattr(
        systemone, "MicroBatcher", lambda given: MicroBatcher(given, most_together=32, most_waiting=1)
    )
    with serve(scorer) as server:
        replies = post_while_held(server, scorer, [{**REQUEST, "state": state} for state in ("a", "b")])

    assert [reply.status for reply in replies] == [200, 200, 529]
    assert replies[2].headers["retry-after"] == "1"
    assert replies[2].json["detail"]["error_type"] == "overloaded_error"


def test_many_at_once_all_get_their_own_answers(served: Served) -> None:
    states = [f"My card {n} was charged twice." for n in range(48)]
    alone = {state: served.post({**REQUEST, "state": state}).json["answers"] for state in states[:4]}

    with ThreadPoolExecutor(24) as threads:
        replies = list(threads.map(lambda state: served.post({**REQUEST, "state": state}), states))

    assert {reply.status for reply in replies} == {200}
    for state, reply in zip(states[:4], replies, strict=False):
        assert reply.json["answers"]["urgent"]["noul"] == pytest.approx(
            alone[state]["urgent"]["noul"], abs=1e-5
        )
