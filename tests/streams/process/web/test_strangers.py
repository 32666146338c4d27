"""The web port against callers that send nothing, half of something, too much, or something else."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from .conftest import REQUEST, GivenScorer, Served, serving

PATH = "/v1/systemone"
BODY = json.dumps(REQUEST).encode()


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(GivenScorer(keeps=False), keys=["SECRETKEY"]) as server:
        yield server


def address(served: Served) -> tuple[str, int]:
    host, port = served.url.removeprefix("http://").split(":")
    return host, int(port)


def exchanged(served: Served, sent: bytes, *later: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the last answer to raw bytes."""
    with closing(socket.create_connection(address(served), timeout=20)) as connection:
        connection.sendall(sent)
        answer = b""
        for part in later:
            while b"\r\n\r\n" not in answer:
                answer += connection.recv(65_536)
            connection.sendall(part)
        while piece := connection.recv(65_536):
            answer += piece
    head, _, body = answer[answer.rindex(b"HTTP/1.") :].partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(status.split()[1]), headers, body


def head(method: str = "POST", path: str = PATH, size: int = len(BODY), **headers: str) -> bytes:
    given = {
        "Host": "127.0.0.1",
        "Authorization": "Bearer SECRETKEY",
        "Content-Type": "application/json",
        "Content-Length": str(size),
        "Connection": "close",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    lines = (f"{name}: {value}\r\n" for name, value in given.items() if value)
    return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode("latin-1")


def is_told(status: int, headers: dict[str, str], body: bytes) -> bool:
    """Whether an error is JSON with a request id."""
    detail: Any = json.loads(body)["detail"]
    return (
        status >= 400
        and headers["content-type"].startswith("application/json")
        and headers["x-typesafe-request-id"].startswith("req_")
        and bool(detail)
    )


UNREADABLE = {
    "no HTTP": b"hello\r\n\r\n",
    "a control character in a key": head(Authorization="Bearer SECRETKEY\x01"),
    "a header of 9 KB": head(X_Long="x" * 9_000),
    "a line of 9 KB": head(path="/" + "x" * 9_000),
    "an expectation that nobody meets": head(Expect="magic") + BODY,
    "two lengths": head(content_length="3") + BODY,
    "an unknown path": head("GET", "/nowhere", 0),
    "a method that a path has not": head("PUT") + BODY,
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_every_refusal_is_json_with_an_id_and_shows_no_secret(
    served: Served, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        found = exchanged(served, UNREADABLE[what])

    assert is_told(*found)
    assert "SECRETKEY" not in caplog.text + found[2].decode()


def test_text_behind_a_body_that_was_counted_in_characters_is_in_no_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    text = json.dumps({**REQUEST, "state": "Überweisung für Frau Geheimnis " * 5}, ensure_ascii=False)

    with caplog.at_level(logging.DEBUG), closing(socket.create_connection(address(served))) as connection:
        connection.sendall(head(size=len(text), Connection="keep-alive"))
        connection.sendall(text.encode())
        connection.settimeout(20)
        answer = b""
        while piece := connection.recv(65_536):
            answer += piece

    assert b"Geheimnis" not in answer
    assert "Geheimnis" not in caplog.text


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_that_does_not_say_it_is_json_is_refused(served: Served, content_type: str) -> None:
    status, headers, body = exchanged(served, head(Content_Type=content_type) + BODY)

    assert (status, is_told(status, headers, body)) == (415, True)


@pytest.mark.parametrize(
    ("named", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://l[ocalhost"}, 403),
        ({"Host": "localhost:6066"}, 200),
        ({"Host": "[::1]:6066"}, 200),
        ({"Origin": "http://127.0.0.1"}, 200),
    ],
)
def test_other_names_and_origins_are_refused(served: Served, named: dict[str, Any], status: int) -> None:
    assert exchanged(served, head(**named) + BODY)[0] == status


def test_a_list_of_faults_is_bounded(served: Served) -> None:
    body = json.dumps({"state": "s", "questions": {f"q{n}": {} for n in range(4_000)}}).encode()

    status, _, answer = exchanged(served, head(size=len(body)) + body)

    assert status == 422
    assert len(answer) < 16_000
    assert "more questions cannot be asked" in answer.decode()


def test_connections_that_send_nothing_keep_nobody_out() -> None:
    with serving(GivenScorer(keeps=False), connections=16) as served, ExitStack() as held:
        for place in range(60):
            connection = held.enter_context(closing(socket.create_connection(address(served), timeout=20)))
            if place % 2:
                connection.sendall(b"GET / HTTP/1.1\r\nHost: ")

        assert served.post(REQUEST).status == 200


def test_half_a_request_is_closed_after_the_idle_limit() -> None:
    with (
        serving(GivenScorer(keeps=False), idle_timeout_s=0.5) as served,
        closing(socket.create_connection(address(served), timeout=20)) as silent,
    ):
        silent.sendall(b"GET / HTTP/1.1\r\nHost: ")

        assert silent.recv(1) == b""


def test_one_key_can_neither_take_all_places_nor_ask_faster_than_its_rate() -> None:
    from ticketgate.streams.process.web.admission import Admission
    from ticketgate.streams.process.web.errors import ApiError

    now = [0.0]
    admission = Admission(most_bytes=100, most_of_one=1, rate=2.0, clock=lambda: now[0])

    def refused(caller: bytes, size: int) -> int:
        with pytest.raises(ApiError) as caught, admission.enter(caller, size):
            pass
        assert caught.value.headers["retry-after"]
        return caught.value.status

    with admission.enter(b"a", 60):
        assert refused(b"a", 1) == 429
        assert refused(b"b", 60) == 503
        with admission.enter(b"b", 40):
            pass
    assert refused(b"a", 1) == 429  # twice a second, and this is the third
    now[0] += 1.0
    with admission.enter(b"a", 100):
        pass


def test_bodies_together_hold_no_more_than_they_may() -> None:
    with (
        serving(GivenScorer(keeps=False), bytes_at_once=2**20, max_bytes=2**20) as served,
        ExitStack() as held,
    ):
        slow = held.enter_context(closing(socket.create_connection(address(served), timeout=20)))
        slow.sendall(head(size=2**20))
        deadline = time.monotonic() + 20
        while (reply := served.post(REQUEST)).status == 200 and time.monotonic() < deadline:
            pass  # until the first has been seen

        assert reply.status == 503
        assert reply.headers["retry-after"] == "1"
