"""The rivals that claim to do the same work come to the same decisions as ticketgate."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.deciding.decide import decide
from ticketgate.agents.policy import parse_policy
from ticketgate.agents.scoring.fixed import FixedScorer
from ticketgate.agents.scoring.onnx import OnnxScorer
from ticketgate.agents.scoring.shipped import default_model_path
from ticketgate.codecs.records.ticket import Ticket, decode_ticket

from ...support.deciding import policy
from .arms import WORKERS
from .inputs import Inputs, mails, tickets, write_inputs

COUNT = 300


@pytest.fixture
def inputs(tmp_path: Path) -> Inputs:
    return write_inputs(tmp_path)


@pytest.fixture
def same_work(inputs: Inputs, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, which knows nothing of this package, with a Redis in which every key is free."""
    for name, value in {
        "GROUP": "g",
        "DISPATCH": "dispatch",
        "REVIEW": "review",
        "REDIS": "redis://127.0.0.1:1",
    }.items():
        monkeypatch.setenv(f"RIVAL_{name}", value)
    for name, value in inputs.rival.items():
        monkeypatch.setenv(name, value)
    return _module("same_work")


def test_the_same_tickets_end_in_the_same_place_with_the_same_labels_and_effects(
    inputs: Inputs, same_work: Any
) -> None:
    work = same_work.Work()
    work._claim = lambda keys, args: [b""] * len(keys)
    sent = [value for _, value in tickets("r", COUNT)]

    made = work.do([same_work.Record("tickets", 0, n, value, []) for n, value in enumerate(sent)])

    policy = parse_policy(inputs.policy.read_text())
    read = [decode_ticket(value) for value in sent]
    scorer = FixedScorer.from_file(Path(inputs.rival["RIVAL_ANSWERS"]))
    decisions = decide([each for each in read if isinstance(each, Ticket)], policy=policy, scorer=scorer)
    theirs = [json.loads(each.value) for each in made]
    assert {each["verdict"]["status"] for each in theirs} == {"accept", "review"}
    assert [_told(each, record.topic) for each, record in zip(theirs, made, strict=True)] == [
        (
            "dispatch" if each.verdict.status == "accept" else "review",
            [*each.selected],
            [each.policy.name, dict(each.probabilities)],
            len(each.violations),
            [(effect.tool, dict(effect.arguments)) for effect in each.effects],
        )
        for each in decisions
    ]


def test_a_ticket_that_another_record_owns_is_not_sent_again(inputs: Inputs, same_work: Any) -> None:
    work = same_work.Work()
    work._claim = lambda keys, args: [b"tickets:0:7:other", args[2].encode()]
    sent = [value for _, value in tickets("r", 2)]

    made = work.do([same_work.Record("tickets", 0, n, value, []) for n, value in enumerate(sent)])

    assert [json.loads(each.value)["coordinate"]["offset"] for each in made] == [1]


def test_the_same_model_gives_the_same_answers() -> None:
    model = _module("same_model").Model(default_model_path())
    sent = [decode_ticket(value) for _, value in mails("r", 40)]
    read = [each for each in sent if isinstance(each, Ticket)]

    found = model.answer([str(each.state) for each in read])

    scored = OnnxScorer.open(default_model_path()).score(read, policy().questions)
    assert len(found) == len(read) == 40
    for mine, its in zip(found, scored, strict=True):
        assert mine.keys() == its.answers.keys()
        for name, answer in its.answers.items():
            assert isinstance(answer, dict)
            assert mine[name]["noul"] == pytest.approx(answer["noul"], abs=1e-4)


def _module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, WORKERS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _told(record: dict[str, Any], topic: str) -> tuple[Any, ...]:
    return (
        topic,
        record["selected"],
        [record["policy"]["name"], record["probabilities"]],
        len(record["violations"]),
        [(effect["tool"], effect["arguments"]) for effect in record["effects"]],
    )
