"""The kept corpus replayed, and inputs made of it: nothing is raised, no 5xx but 503 and 529, nothing grows."""

from __future__ import annotations

import json
import logging
import os
import resource
import socket
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial

import pytest

from ...streams.process.web.conftest import GivenScorer, serving
from ...support.cost import allowed_bytes, peak_bytes
from .inputs import CORPUS, corpus, inputs
from .targets import TARGETS

SOME = int(os.environ.get("TICKETGATE_FUZZED", "2000"))
# 100,000 in all: 13 readers, the web port among them.
MANY = 7_700
# Each of these kept, over all inputs: what a process may have grown by, in KB, for caches and fragments.
MOST_GROWTH_KB = 64 * 1024
# What is read beside an input: the built-in catalogue that a funnel file names.
BESIDE = {"funnel": 8 * 1024}
# How long an answer is waited for, before we say that no more is sent: half a request is never answered.
PATIENCE_S = 0.05


def test_each_reader_has_a_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} == {*TARGETS, "http"}
    assert all(corpus(name) for name in (*TARGETS, "http"))


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_is_read_at_the_cost_of_its_bytes(name: str) -> None:
    for data in corpus(name):
        assert peak_bytes(partial(TARGETS[name], data)) <= allowed_bytes(len(data) + BESIDE.get(name, 0)), (
            data[:80]
        )


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_made_of_the_corpus_is_read_or_refused(name: str) -> None:
    read(name, inputs(name, SOME // len(TARGETS)))


@pytest.mark.chaos
@pytest.mark.parametrize("name", TARGETS)
def test_a_hundred_thousand_inputs_are_read_or_refused(name: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read(name, inputs(name, MANY, seed=1))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWTH_KB
    for data in inputs(name, 200, seed=2):
        assert peak_bytes(partial(TARGETS[name], data)) <= allowed_bytes(len(data) + BESIDE.get(name, 0)), (
            data[:200]
        )


def read(name: str, made: Iterable[bytes]) -> None:
    for data in made:
        try:
            TARGETS[name](data)
        except Exception as err:
            raise AssertionError(f"{name} broke its promise at {data!r}") from err


def test_what_is_made_of_requests_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    answered(inputs("http", SOME // 10), caplog)


@pytest.mark.chaos
def test_thousands_of_requests_are_answered(caplog: pytest.LogCaptureFixture) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answered(inputs("http", MANY, seed=1), caplog)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWTH_KB


def answered(made: Iterator[bytes], caplog: pytest.LogCaptureFixture) -> None:
    """Every request of a connection is answered in JSON or by closing it; the server says nothing that it was sent."""
    statuses: Counter[int] = Counter()
    with (
        caplog.at_level(logging.INFO),
        serving(GivenScorer(keeps=False), keys=["SECRETKEY"], idle_timeout_s=5.0) as served,
    ):
        host, port = served.url.removeprefix("http://").split(":")
        for data in (*corpus("http"), *made):
            statuses.update(told_by(exchanged((host, int(port)), data), data))
        whole = (CORPUS / "http/whole.txt").read_bytes()
        assert told_by(exchanged((host, int(port)), whole, patience_s=20), whole) == [200]
    assert not [each for each in statuses if each >= 500 and each not in (503, 529)], statuses
    assert "Traceback" not in caplog.text
    assert "SECRETKEY" not in caplog.text


def exchanged(address: tuple[str, int], data: bytes, *, patience_s: float = PATIENCE_S) -> bytes:
    answer = b""
    with closing(socket.create_connection(address, timeout=20)) as connection:
        try:
            connection.sendall(data)
            connection.settimeout(patience_s)
            try:
                answer += connection.recv(65_536)
            except TimeoutError:
                connection.shutdown(socket.SHUT_WR)
            connection.settimeout(20)
            while piece := connection.recv(65_536):
                answer += piece
        except ConnectionError:
            pass  # it is closed while we still send
    return answer


def told_by(answer: bytes, data: bytes) -> list[int]:
    """The statuses of the answers that came, each with a body in JSON, and with Retry-After where it says to wait."""
    found: list[int] = []
    while answer:
        head, _, rest = answer.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        names = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        if status != 100:
            found.append(status)
            size = int(names.get(b"content-length", b"0"))
            body, rest = rest[:size], rest[size:]
            if body:
                json.loads(body)
            assert status < 500 or b"retry-after" in names, (status, data)
        answer = rest
    return found
