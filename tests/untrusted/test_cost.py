"""No reader costs more than what it reads weighs: 16 bytes of memory a byte and 1 MB, and linear work."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ticketgate.agents.cleaning import STEPS, clean
from ticketgate.agents.funnel.evidence import EvidenceUnreadable
from ticketgate.agents.funnel.lookups.reading import read_authority, read_world
from ticketgate.agents.policy import PolicyError, parse_policy
from ticketgate.agents.scoring.render import render
from ticketgate.agents.scoring.systemone import RequestError, read_request
from ticketgate.codecs.records.proposal import Proposal, Request, decode_proposal
from ticketgate.codecs.records.ticket import decode_ticket
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.jsonschema import SchemaError, questions_from_json_schema
from ticketgate.codecs.systemone.question_reading import read_questions
from ticketgate.codecs.values.strict import Malformed, decode

from ..support.cost import allowed_bytes, lines_run, peak_bytes
from ..support.shapes import SHAPES, written

SIZES = (30_000, 240_000)
PROPOSAL = Proposal(case_id="C", attempt=1, call="", request=Request(operation="pay", actor_id="ann"))


def ticket(value: Any) -> bytes:
    return written({"id": "T", "state": value if isinstance(value, (str, dict, list)) else [value]})


def proposal(**request: Any) -> bytes:
    return written(
        {"schema": "proposal/1", "case_id": "C", "attempt": 1, "call": "x",
         "request": {"operation": "pay", "actor_id": "ann"} | request}
    )  # fmt: skip


def authority(value: Any) -> object:
    try:
        return read_authority(value, PROPOSAL, max_bytes=2**20)
    except EvidenceUnreadable as err:
        return err


def world(value: Any) -> object:
    try:
        return read_world(value, max_bytes=2**20)
    except EvidenceUnreadable as err:
        return err


def asked(body: bytes) -> object:
    value = decode(body, max_bytes=2**20)
    if isinstance(value, Malformed):
        return value
    try:
        return read_request(value)
    except RequestError as err:
        return json.dumps(err.to_json())


def schema(body: bytes) -> object:
    value = decode(body, max_bytes=2**20)
    try:
        return questions_from_json_schema(value)  # type: ignore[arg-type]  # a Malformed is no schema either
    except SchemaError as err:
        return err


def many(make: Callable[[int], tuple[str, Any]], size: int) -> dict[str, Any]:
    """As many entries as fit."""
    entry = len(written(dict([make(0)])))
    return dict(make(n) for n in range(size // (entry + 3)))


# What a mail can be made of.
MAIL = {
    "open divs": "<div>",
    "quoted blocks": "<blockquote>x",
    "quoted lines": "> abc\nb\n",
    "heads below words": "abc\nFrom: b\n",
    "half a wrote": "abcdef\nOn 1\n",
    "greetings": "thanks\nAda\n",
}


def cleaned(text: bytes) -> object:
    # In a list: what is left is no message, which would have to be short.
    return [clean(text.decode(), STEPS)]


# Each reader, and by size what it is to read.
READERS: dict[str, tuple[Callable[[bytes], object], Callable[[int], bytes]]] = {
    **{
        f"ticket, {name}": (decode_ticket, lambda size, shape=shape: ticket(shape(size)))  # type: ignore[misc]
        for name, shape in SHAPES.items()
    },
    "ticket, unknown fields": (
        decode_ticket,
        lambda size: written({"id": "T", "state": "s"} | many(lambda n: (f"f{n}", 1), size)),
    ),
    "proposal, wrong values": (
        decode_proposal, lambda size: proposal(values=many(lambda n: (f"f{n}", None), size)),
    ),
    "proposal, wrong roles": (decode_proposal, lambda size: proposal(roles=[1] * (size // 2))),
    "proposal, unknown fields": (decode_proposal, lambda size: proposal(**many(lambda n: (f"f{n}", 1), size))),
    "authority, wrong confirmations": (authority, lambda size: written({"confirmations": [{}] * (size // 3)})),
    "authority, unknown fields": (
        authority, lambda size: written({"actor_id": "ann"} | many(lambda n: (f"f{n}", 1), size)),
    ),
    "authority, unknown fields of a confirmation": (
        authority,
        lambda size: written({"actor_id": "ann", "confirmations": [many(lambda n: (f"f{n}", 1), size)]}),
    ),
    "authority, wrong tools": (authority, lambda size: written({"actor_id": "ann", "tools": [1] * (size // 2)})),
    "world, wrong facts": (world, lambda size: written({"facts": many(lambda n: (f"f{n}", None), size)})),
    "request, wrong questions": (
        asked, lambda size: written({"state": "s", "questions": many(lambda n: (f"q{n}", 1), size)}),
    ),
    "request, a long name": (
        asked, lambda size: written({"state": "s", "questions": {"\x01" * (size // 6): {"type": "x"}}}),
    ),
    "request, criteria of a noul": (
        asked,
        lambda size: written(
            {"state": "s", "questions": {"q": {"type": "noul", "criteria": many(lambda n: (f"{n}", ""), size)}}}
        ),
    ),
    "schema, properties": (
        schema,
        lambda size: written(
            {"type": "object", "properties": many(lambda n: (f"p{n}", {"type": "boolean"}), size)}
        ),
    ),
    "schema, required": (
        schema,
        lambda size: written({"type": "object", "properties": {"a": {"const": 1}}, "required": [[0] * (size // 2)]}),
    ),
    **{
        f"cleaning, {name}": (
            cleaned, lambda size, piece=piece: (piece * (size // len(piece))).encode()  # type: ignore[misc]
        )
        for name, piece in MAIL.items()
    },
    "schema, a type": (
        schema,
        lambda size: written({"type": "object", "properties": {"a": {"type": {"x" * size: 1}}}}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("size", SIZES)
def test_reading_costs_memory_in_proportion(reader: str, size: int) -> None:
    read, make = READERS[reader]
    given = make(size)

    assert peak_bytes(lambda: read(given)) <= allowed_bytes(len(given))


@pytest.mark.parametrize("reader", READERS)
def test_twice_as_much_is_at_most_two_and_a_half_times_the_work(reader: str) -> None:
    read, make = READERS[reader]
    once, twice = make(SIZES[0]), make(2 * SIZES[0])
    read(once)

    assert lines_run(lambda: read(twice)) <= 2.5 * lines_run(lambda: read(once)) + 200


@pytest.mark.parametrize("reader", READERS)
def test_what_is_said_of_it_is_short(reader: str) -> None:
    read, make = READERS[reader]
    found = read(make(SIZES[1]))

    if isinstance(found, Malformed):
        assert len(found.reason) < 8_000
    if isinstance(found, (str, Exception)):
        assert len(str(found)) < 16_000


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", SIZES)
def test_rendering_costs_memory_in_proportion(shape: str, size: int) -> None:
    value = SHAPES[shape](size)

    assert peak_bytes(lambda: render(value)) <= allowed_bytes(len(written(value)))


def test_answers_that_are_nothing_but_faults_are_told_shortly() -> None:
    asked = {f"q{n}": {"type": "choice", "criteria": {f"{c}": None for c in range(200)}} for n in range(60)}
    questions = read_questions(asked)
    answers = {name: {"type": "choice", "choice": "0", "probabilities": {}} for name in asked}

    found = check_answers(questions, answers)

    assert isinstance(found, tuple)
    assert sum(map(len, found)) < 8_000
    assert peak_bytes(lambda: check_answers(questions, answers)) <= allowed_bytes(len(written(asked)))


def test_a_policy_of_dots_is_refused_before_it_is_read() -> None:
    with pytest.raises(PolicyError, match="parts between dots"):
        parse_policy("a." * 200_000 + "b = 1")
