"""The shared cases' records that end at `parse` or `schema`, and those that must get beyond them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from ticketgate.codecs import Malformed, Ticket, decode_ticket, is_empty_state

CASES = Path(__file__).parents[3] / "shared" / "cases" / "cases.jsonl"


def _cases() -> list[Any]:
    if not CASES.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"no shared cases at {CASES}"))]
    cases = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    return [pytest.param(case, id=case["name"]) for case in cases if case.get("value", "") is not None]


@pytest.mark.parametrize("case", _cases())
def test_a_shared_case_ends_at_its_stage_or_goes_on(case: dict[str, Any]) -> None:
    value = case["value"].encode() if "value" in case else base64.b64decode(case["value_base64"])
    expected = case["expect"]

    result = decode_ticket(value)

    if expected["topic"] == "dead-letter":
        assert isinstance(result, Malformed)
        assert result.stage == expected["stage"]
        assert expected.get("reason_contains", "") in result.reason
    else:
        assert isinstance(result, Ticket)
        assert is_empty_state(result.state) is (expected.get("stage") == "state")
