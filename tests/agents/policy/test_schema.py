"""The published JSON Schema of a policy is current, and takes what the reader takes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from ticketgate.agents.workbench.policy.published import policy_schema, published_schema

from ...support.deciding import SUPPORT, small
from ...support.random_policies import Drawn, drawn_policies
from .test_policy_readme import WHOLE

SAMPLES = sorted((Path(__file__).parents[3] / "streams" / "samples").glob("*.toml"))
VALIDATOR = jsonschema.Draft202012Validator(json.loads(published_schema()))


def faults(document: Any) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(document)]


def test_the_published_schema_is_current() -> None:
    assert published_schema() == policy_schema()
    jsonschema.Draft202012Validator.check_schema(json.loads(policy_schema()))


@pytest.mark.parametrize("text", [SUPPORT, WHOLE, *(path.read_text("utf-8") for path in SAMPLES)])
def test_it_takes_policies(text: str) -> None:
    assert faults(tomllib.loads(text)) == []


@given(drawn_policies())
def test_it_takes_whatever_the_reader_takes(drawn: Drawn) -> None:
    assert faults(drawn.document) == []


@pytest.mark.parametrize(
    "text",
    [
        small("", top="treshold = 0.5"),
        small("", top="threshold = 0"),
        small('[[rules]]\nexcludes = ["a", "b"]\nany_of = ["a"]'),
        small('[[rules]]\nid = "x"'),
        small('[[rules]]\nimplies = ["a"]'),
        small('[questions.d]\ntype = "yesno"'),
        small('[questions.d]\ntype = "noul"\ninstructions = "?"\n[questions.d.examples]\nfits = 3'),
    ],
)
def test_it_refuses_what_an_editor_should_underline(text: str) -> None:
    assert faults(tomllib.loads(text))
