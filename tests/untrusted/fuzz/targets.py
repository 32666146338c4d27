"""Readers of what strangers send, each as a function of bytes that raises only where a promise does not hold.

Promise of each: whatever the bytes are, they are read or refused in words; nothing else is raised.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

from ticketgate.agents.funnel.evidence import EvidenceUnreadable
from ticketgate.agents.funnel.file.catalogue_file import parse_catalogue
from ticketgate.agents.funnel.file.funnel_file import load_funnel_file
from ticketgate.agents.funnel.file.funnel_specs import FunnelFileError
from ticketgate.agents.funnel.lookups.reading import read_authority, read_world
from ticketgate.agents.policy import PolicyError, parse_policy
from ticketgate.agents.scoring.graph_file import NotAGraph, read_reach
from ticketgate.agents.scoring.render import render
from ticketgate.agents.scoring.systemone import RequestError, read_request
from ticketgate.codecs.records.case_decision import decode_case_decision, read_dispatched
from ticketgate.codecs.records.proposal import Proposal, Request, decode_proposal
from ticketgate.codecs.records.receipt import decode_receipt
from ticketgate.codecs.records.ticket import decode_ticket
from ticketgate.codecs.systemone.answer_checks import check_answers
from ticketgate.codecs.systemone.jsonschema import SchemaError, questions_from_json_schema
from ticketgate.codecs.systemone.question_reading import read_questions
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.printable import printable, printable_json
from ticketgate.codecs.values.redact import redact
from ticketgate.codecs.values.strict import decode, encode

Target = Callable[[bytes], object]

MOST_BYTES = 2**20
_PROPOSAL = Proposal(case_id="C", attempt=1, call="", request=Request(operation="pay", actor_id="ann"))
_QUESTIONS = read_questions(
    {
        "urgent": {"type": "noul", "instructions": "Is it urgent?"},
        "team": {
            "type": "choice",
            "criteria": {"billing": "money", "support": None},
            "instructions": "Which team?",
        },
    }
)
_FOLDER = Path(tempfile.gettempdir()) / "ticketgate-fuzz"


def ticket(data: bytes) -> object:
    """A ticket that was read is written and read back equal."""
    read = decode_ticket(data, max_bytes=MOST_BYTES)
    if not isinstance(read, Malformed):
        again = decode_ticket(encode(read.to_json()), max_bytes=2 * MOST_BYTES)
        assert again == read, (read, again)
    return read


def proposal(data: bytes) -> object:
    """The same of a proposal."""
    read = decode_proposal(data, max_bytes=MOST_BYTES)
    if not isinstance(read, Malformed):
        assert decode_proposal(encode(read.to_json()), max_bytes=2 * MOST_BYTES) == read
    return read


def records(data: bytes) -> object:
    """What our own topics hold, were it another's."""
    value = decode(data, max_bytes=MOST_BYTES)
    dispatched = value if isinstance(value, Malformed) else read_dispatched(value)
    return (
        dispatched,
        decode_case_decision(data, max_bytes=MOST_BYTES),
        decode_receipt(data, max_bytes=MOST_BYTES),
    )


def answers(data: bytes) -> object:
    """Answers of a model that says anything."""
    value = decode(data, max_bytes=MOST_BYTES)
    return check_answers(_QUESTIONS, value if not isinstance(value, Malformed) else None)


def request(data: bytes) -> object:
    """The body of a request to the endpoint."""
    value = decode(data, max_bytes=MOST_BYTES)
    if isinstance(value, Malformed):
        return value
    try:
        return read_request(value)
    except RequestError as err:
        return json.dumps(err.to_json())


def schema(data: bytes) -> object:
    """A JSON Schema with questions."""
    value = decode(data, max_bytes=MOST_BYTES)
    if isinstance(value, Malformed):
        return value
    try:
        return questions_from_json_schema(value)
    except SchemaError as err:
        return str(err)


def evidence(data: bytes) -> object:
    """What a source of evidence answers."""
    said: list[object] = []
    try:
        said.append(read_authority(data, _PROPOSAL, max_bytes=MOST_BYTES).to_json())
    except EvidenceUnreadable as err:
        said.append(err.what)
    try:
        said.append(read_world(data, max_bytes=MOST_BYTES).to_json())
    except EvidenceUnreadable as err:
        said.append(err.what)
    return said


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def policy(data: bytes) -> object:
    """A policy file, TOML or JSON."""
    try:
        return parse_policy(_text(data)).hash
    except PolicyError as err:
        return str(err)


def catalogue(data: bytes) -> object:
    """A catalogue file."""
    try:
        return parse_catalogue(_text(data)).name
    except PolicyError as err:
        return str(err)


def funnel(data: bytes) -> object:
    """A funnel file."""
    _FOLDER.mkdir(mode=0o700, exist_ok=True)
    path = _FOLDER / "funnel.toml"
    path.write_bytes(data)
    try:
        return load_funnel_file(path).path
    except (PolicyError, FunnelFileError) as err:
        return str(err)


def graph(data: bytes) -> object:
    """A model's graph."""
    try:
        return read_reach(data)
    except NotAGraph as err:
        return str(err)


def rendering(data: bytes) -> object:
    """What a model reads, and what a person is shown: nothing that acts, and JSON stays the same JSON."""
    text = printable(_text(data))
    assert all(each.isprintable() or each in "\n\t" or each.isspace() for each in text), text
    redact(_text(data))
    value = decode(data, max_bytes=MOST_BYTES)
    if isinstance(value, Malformed):
        return value
    shown = printable_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value
    return render(value)


TARGETS: dict[str, Target] = {
    each.__name__: each
    for each in (
        ticket,
        proposal,
        records,
        answers,
        request,
        schema,
        evidence,
        policy,
        catalogue,
        funnel,
        graph,
        rendering,
    )
}
