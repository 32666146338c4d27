"""The remote scorer against jevcompat's reference server with each of its faults, and against worse servers."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pytest
from ticketgate.agents.deciding.decide import decide
from ticketgate.agents.policy import parse_policy
from ticketgate.agents.scoring import Scorer, ScorerError, ScorerUnavailable, open_scorer
from ticketgate.agents.scoring.remote import RemoteScorer
from ticketgate.agents.scoring.remote_client import message, retry_after_s
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.answers import ChoiceAnswer, NoulAnswer, ScoreAnswer
from ticketgate.codecs.systemone.question_reading import read_questions
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.strict import encode
from ticketgate.codecs.verdict import Stage, Status

QUESTIONS: dict[str, Question] = read_questions(
    {
        "urgent": {"type": "noul", "instructions": "Is it urgent?"},
        "Kind": {"type": "choice", "criteria": {"Bug": "a défaut", "Frage é": None, "other": None}},
        "anger": {"type": "score", "criteria": ["calm", "annoyed", "angry"]},
    }
)
TICKETS = [Ticket(id=f"T-{n}", state={"body": f"My card {n} was charged twice."}) for n in range(4)]
POLICY = parse_policy(
    """
    name = "remote"
    version = "1"
    [questions.urgent]
    type = "noul"
    instructions = "Is it urgent?"
    [questions.Kind]
    type = "choice"
    criteria = { Bug = "a défaut", "Frage é" = "asks", other = "else" }
    [questions.anger]
    type = "score"
    criteria = ["calm", "annoyed", "angry"]
    [[rules]]
    any_of = ["urgent", "!urgent"]
    """,
    source="remote.toml",
)

Open = Callable[..., RemoteScorer]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Remote scorers that are closed afterwards."""
    scorers: list[RemoteScorer] = []

    def open_remote(url: str, timeout_s: float = 20.0, **options: str) -> RemoteScorer:
        scorers.append(RemoteScorer.open(url, timeout_s=timeout_s, **options))
        return scorers[-1]

    yield open_remote
    for scorer in scorers:
        scorer.close()


# --- jevcompat's reference server ---

mock = pytest.importorskip("jevcompat.mock", reason="no jevcompat: install ticketgate[conformance]")

# What each fault must come to. "accept": what is broken is nothing that a decision rests on.
AWAY = {"wrong-route", "auth-rejects-header", "reject-jev-latest", "xssi-200", "nan"}
REVIEW = {
    "first-question-only",
    "nfd-keys",
    "extra-answer",
    "boolean-type",
    "noul-range",
    "choice-key-case",
    "choice-sum",
    "choice-second",
    "legend-1-based",
    "score-keys-1-based",
    "score-sum",
    "score-argmax",
    "confidence-over",
}


@contextmanager
def mocked(*faults: str, key: str | None = None, busy_every: int = 0) -> Iterator[str]:
    with mock.Running(mock.MockConfig(faults=frozenset(faults), key=key, busy_every=busy_every)) as running:
        yield running.url


@pytest.mark.parametrize("fault", sorted(mock.FAULTS))
def test_no_fault_leads_to_a_dispatch_on_a_broken_answer_and_none_to_a_crash(
    opened: Open, fault: str
) -> None:
    with mocked(fault) as url:
        scorer = opened(url, key="any")
        if fault in AWAY:
            with pytest.raises(ScorerUnavailable, match=url):
                decide(TICKETS, policy=POLICY, scorer=scorer)
            return
        decisions = decide(TICKETS, policy=POLICY, scorer=scorer)
        scores = scorer.score(TICKETS, POLICY.questions)

    for decision, found in zip(decisions, scores, strict=True):
        if fault in REVIEW:
            assert (decision.verdict.status, decision.verdict.stage) == (Status.REVIEW, Stage.ANSWERS)
            assert decision.verdict.reasons
            assert decision.selected == ()
        else:
            assert isinstance(check_answers(POLICY.questions, found.answers), dict)
            assert decision.verdict.status is Status.ACCEPT


def test_every_answer_type_is_read_at_the_precision_it_came_with(opened: Open) -> None:
    with mocked() as url:
        scorer = opened(url)
        (scores,) = scorer.score(TICKETS[:1], QUESTIONS)
    sent: Any = mock.respond(mock.MockConfig(), json.loads(scorer._body(TICKETS[0].state, asked())))

    assert scores.answers == sent["answers"]
    answers = check_answers(QUESTIONS, scores.answers)
    assert isinstance(answers, dict), answers
    assert [type(each) for each in answers.values()] == [NoulAnswer, ChoiceAnswer, ScoreAnswer]
    assert scores.input_tokens == sent["usage"]["input_tokens"]
    assert scores.model is not None
    assert scores.model.id == "jevcompat-mock-0.1"


def asked() -> Any:
    return {name: question.to_json() for name, question in QUESTIONS.items()}


def test_the_record_names_the_model_that_answered(opened: Open) -> None:
    with mocked() as url:
        (decision,) = decide(TICKETS[:1], policy=POLICY, scorer=opened(url, model="jev-preview"))

    assert decision.model.id == "jevcompat-mock-0.1"


def test_a_key_is_sent(opened: Open) -> None:
    with mocked(key="s3cret") as url:
        right = opened(url, key="s3cret").score(TICKETS[:1], QUESTIONS)
        with pytest.raises(
            ScorerUnavailable, match="401: the key is refused: set TICKETGATE_SCORER_KEY"
        ) as wrong:
            opened(url, key="other").score(TICKETS[:1], QUESTIONS)
        with pytest.raises(ScorerUnavailable, match="403"):
            opened(url).score(TICKETS[:1], QUESTIONS)

    assert right[0].failure is None
    assert "other" not in str(wrong.value)


def test_a_busy_server_is_asked_again(opened: Open) -> None:
    with mocked(busy_every=2) as url:
        scores = opened(url).score(TICKETS, QUESTIONS)

    assert all(isinstance(check_answers(QUESTIONS, each.answers), dict) for each in scores)


# --- servers that misbehave ---

GOOD: dict[str, Any] = {
    "model": "m",
    "answers": {"urgent": {"type": "noul", "noul": 0.1}},
    "usage": {"input_tokens": 5},
}
URGENT = {"urgent": QUESTIONS["urgent"]}


class Server:
    """Answers by `behave`, from the state to a status, headers and body; None breaks the connection."""

    def __init__(self, behave: Callable[[Any], tuple[int, dict[str, str], bytes] | None]) -> None:
        self.states: list[Any] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                state = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["state"]
                server.states.append(state)
                given = behave(state)
                if given is None:
                    self.close_connection = True
                    return
                status, headers, body = given
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError):  # the scorer has given up
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def good(_: Any = None) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, encode(GOOD)


def on(state: str, otherwise: tuple[int, dict[str, str], bytes] | None) -> Callable[[Any], Any]:
    return lambda found: otherwise if found == state else good()


def tickets(*states: str) -> list[Ticket]:
    return [Ticket(id=state, state=state) for state in states]


@pytest.mark.parametrize("status", [400, 404, 413, 415, 422])
def test_a_refusal_of_one_ticket_is_that_tickets(opened: Open, status: int) -> None:
    body = encode({"detail": [{"loc": ["body", "state"], "msg": "too long", "type": "x", "input": "secret"}]})
    with Server(on("bad", (status, {}, body))) as server:
        fine, bad = opened(server.url).score(tickets("fine", "bad"), URGENT)

    assert fine.failure is None
    assert bad.failure is not None
    assert bad.failure.is_senders
    assert bad.failure.reason == f"the model's server says {status}: body.state: too long"


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_refusal_whatever_the_ticket_is_an_outage(opened: Open, status: int) -> None:
    with (
        Server(lambda _: (status, {}, b'{"error": "no such model"}')) as server,
        pytest.raises(ScorerUnavailable, match=f"about no ticket: {status}: no such model"),
    ):
        opened(server.url).score(tickets("a", "b"), URGENT)


@pytest.mark.parametrize("fault", [(500, {}, b'{"detail": "boom"}'), None], ids=["500", "connection broken"])
def test_a_server_that_fails_on_one_ticket_each_time_fails_that_ticket(opened: Open, fault: Any) -> None:
    with Server(on("bad", fault)) as server:
        fine, bad = opened(server.url).score(tickets("fine", "bad"), URGENT)

    assert fine.failure is None
    assert bad.failure is not None
    assert not bad.failure.is_senders
    assert server.states.count("bad") == 4


def test_a_fault_that_passes_costs_nothing(opened: Open) -> None:
    faults = iter([None, (500, {}, b"")])
    with Server(lambda _: next(faults, good())) as server:
        (scores,) = opened(server.url).score(tickets("a"), URGENT)

    assert scores.answers == GOOD["answers"]


def test_a_server_that_fails_on_everything_is_away(opened: Open) -> None:
    with (
        Server(lambda _: (500, {}, b"out of memory")) as server,
        pytest.raises(ScorerUnavailable, match="500: out of memory"),
    ):
        opened(server.url).score(tickets("a"), URGENT)


@pytest.mark.parametrize("status", [429, 503, 529])
def test_an_overloaded_server_is_waited_for_as_long_as_it_asks(opened: Open, status: int) -> None:
    replies = iter([(status, {"retry-after-ms": "300"}, b"{}")])
    with Server(lambda _: next(replies, good())) as server:
        began = time.monotonic()
        (scores,) = opened(server.url).score(tickets("a"), URGENT)
        took = time.monotonic() - began

    assert scores.answers == GOOD["answers"]
    assert 0.3 <= took < 5


def test_one_that_stays_overloaded_is_away_and_says_for_how_long(opened: Open) -> None:
    with Server(lambda _: (529, {"retry-after": "60"}, b'{"detail": {"message": "full"}}')) as server:
        scorer = opened(server.url)
        with pytest.raises(ScorerUnavailable) as away:
            scorer.score(tickets("a"), URGENT)
        with pytest.raises(ScorerUnavailable, match="asks to wait for"):
            scorer.score(tickets("b"), URGENT)

    assert away.value.retry_after_s == pytest.approx(60, abs=2)
    assert server.states == ["a"]


def test_a_server_that_is_not_there_is_away_and_may_come_back(opened: Open) -> None:
    with Server(good) as server:
        url = server.url
    scorer = opened(url)

    with pytest.raises(ScorerUnavailable, match="no connection"):
        scorer.score(tickets("a"), URGENT)


def test_a_server_that_hangs_is_away_within_the_time_given(opened: Open) -> None:
    go_on = threading.Event()

    def hang(_: Any) -> tuple[int, dict[str, str], bytes]:
        go_on.wait(30)
        return good()

    with Server(hang) as server:
        began = time.monotonic()
        with pytest.raises(ScorerUnavailable):
            opened(server.url, timeout_s=1.0).score(tickets("a"), URGENT)
        took = time.monotonic() - began
        go_on.set()

    assert took < 5


def test_what_was_answered_before_an_outage_is_not_asked_again(opened: Open) -> None:
    is_away = threading.Event()
    is_away.set()

    def behave(state: Any) -> Any:
        return (503, {}, b"") if is_away.is_set() and state == "late" else good()

    with Server(behave) as server:
        scorer = opened(server.url)
        with pytest.raises(ScorerUnavailable):
            scorer.score(tickets("early", "late"), URGENT)
        is_away.clear()
        scores = scorer.score(tickets("early", "late"), URGENT)

    assert [each.answers for each in scores] == [GOOD["answers"]] * 2
    assert server.states.count("early") == 1


def test_no_redirect_is_followed(opened: Open) -> None:
    with (
        Server(lambda _: (307, {"Location": "http://127.0.0.1:9/v1/systemone"}, b"")) as server,
        pytest.raises(ScorerUnavailable, match="no redirect is followed"),
    ):
        opened(server.url, key="s3cret").score(tickets("a"), URGENT)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "cannot be read: not JSON"),
        (b'{"answers": {"a": 1, "a": 2}}', 'duplicate key "a"'),
        (b'{"answers": {"urgent": {"type": "noul", "noul": 1e999}}}', "out of range"),
        (b"[]", 'no object "answers"'),
        (b'{"answers": []}', 'no object "answers"'),
        (b" " * (8 * 2**20 + 1), "too large"),
    ],
)
def test_a_response_that_cannot_be_read_is_no_answer(opened: Open, body: bytes, reason: str) -> None:
    with Server(on("bad", (200, {}, body))) as server:
        (scores,) = opened(server.url).score(tickets("bad"), URGENT)

    assert scores.answers == {}
    assert scores.failure is not None
    assert reason in scores.failure.reason


@pytest.mark.parametrize(
    ("usage", "cut"),
    [
        ({"x_truncated": ["urgent", "unasked"]}, {"urgent"}),
        ({"truncated": True}, {"urgent"}),
        ({"truncated": True, "truncated_questions": ["urgent"]}, {"urgent"}),
        ({"truncated": False}, set()),
        ({}, set()),
        (None, set()),
        ({"input_tokens": 1.0}, set()),
    ],
)
def test_truncation_is_reported_as_servers_tell_it(opened: Open, usage: Any, cut: set[str]) -> None:
    with Server(lambda _: (200, {}, encode({**GOOD, "usage": usage}))) as server:
        (scores,) = opened(server.url).score(tickets("a"), URGENT)

    assert scores.truncated == cut
    assert scores.input_tokens == 0


@pytest.mark.parametrize(
    ("usage", "reason"),
    [
        ({"x_abstention": 'reads as "de"'}, """the model's server says "reads as \\"de\\"" """.strip()),
        ({"x_abstention": ""}, None),
        ({"x_abstention": ["de"]}, None),
        ({}, None),
    ],
)
def test_a_server_that_does_not_stand_by_its_answers_is_believed(
    opened: Open, usage: Any, reason: str | None
) -> None:
    with Server(lambda _: (200, {}, encode({**GOOD, "usage": usage}))) as server:
        (scores,) = opened(server.url).score(tickets("a"), URGENT)

    assert scores.abstention == reason


def test_a_closed_scorer_answers_nobody_and_closing_breaks_off_what_is_under_way(opened: Open) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def hang(_: Any) -> tuple[int, dict[str, str], bytes]:
        inside.set()
        go_on.wait(30)
        return good()

    raised: list[BaseException] = []

    def ask(scorer: RemoteScorer) -> None:
        try:
            scorer.score(tickets("a"), URGENT)
        except ScorerUnavailable as err:
            raised.append(err)

    with Server(hang) as server:
        scorer = opened(server.url)
        asking = threading.Thread(target=ask, args=(scorer,), name="asking")
        asking.start()
        assert inside.wait(10)
        scorer.close()
        asking.join(10)
        go_on.set()
        with pytest.raises(ScorerUnavailable, match="closed"):
            scorer.score(tickets("b"), URGENT)

    assert len(raised) == 1


@pytest.mark.parametrize(
    "url",
    ["ftp://host", "host:80", "http://", "http://user:pw@host", "http://host?key=1", "http://host:99999"],
)
def test_what_is_no_servers_url_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(ScorerError) as refused:
        open_scorer(f"remote:{url}")

    assert "\n" not in str(refused.value)
    assert refused.value.setting == "TICKETGATE_SCORER"


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://host:8000", "http://host:8000/v1/systemone"),
        ("https://host/inference/", "https://host/inference/v1/systemone"),
        ("https://host/v1/systemone", "https://host/v1/systemone"),
    ],
)
def test_the_servers_root_or_its_endpoint_may_be_named(opened: Open, url: str, endpoint: str) -> None:
    assert opened(url)._url == endpoint


def test_it_is_a_scorer_by_its_setting(opened: Open) -> None:
    scorer: Scorer = open_scorer("remote:http://127.0.0.1:1", remote_model="jev-1")
    try:
        assert scorer.model.id == "jev-1"
        assert tuple(scorer.score([], URGENT)) == ()
    finally:
        assert isinstance(scorer, RemoteScorer)
        scorer.close()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"detail": {"error_type": "x", "message": "no such model"}}', "no such model"),
        (b'{"error": {"message": "bad"}}', "bad"),
        (b"plain\ntext", "plain text"),
        (b"", "no message"),
        (b"{}", "no message"),
        (b'{"detail": [{"msg": "a"}, {"msg": "b"}]}', "a; b"),
        (b'"' + b"x" * 1000 + b'"', "x" * 300 + "…"),
    ],
)
def test_a_message_is_one_line_whatever_its_shape(body: bytes, said: str) -> None:
    assert message(body) == said


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers) == seconds
