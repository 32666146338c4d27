"""The page of effects says what the code does."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ticketgate.agents.effects.adapters.http import FINGERPRINT_HEADER, KEY_HEADER, NOT_SAID
from ticketgate.agents.effects.adapters.memory_ledger import BACK_OFF_FIRST_S, BACK_OFF_MOST_S
from ticketgate.agents.effects.ledger import Command, Entry, Order
from ticketgate.agents.effects.port import LATEST_START_S
from ticketgate.agents.effects.rules import NO_ANSWER
from ticketgate.codecs.records.receipt import EffectState
from ticketgate.store.ledger import ledger as store_ledger
from ticketgate.streams.cli.operations.reconcile import _show

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "agents" / "effects" / "README.md").read_text(encoding="utf-8")


def test_the_page_shows_what_reconcile_prints(capsys: pytest.CaptureFixture[str]) -> None:
    entry = Entry(
        order=Order(
            command=Command("schedule_transfer", {}, "key-of-case-17"), provider="bank", subject="case-17"
        ),
        state=EffectState.UNKNOWN,
        sequence=2,
        sends=1,
        age_s=250,
        at=datetime(2026, 9, 1, tzinfo=UTC),
        verdict=NO_ANSWER,
    )

    _show([entry], as_json=False, count=1, oldest_s=250.2)

    for line in capsys.readouterr().out.splitlines():
        assert line.rstrip() in PAGE


def test_both_ledgers_wait_as_long_and_the_page_says_so() -> None:
    assert store_ledger.BACK_OFF_FIRST.total_seconds() == BACK_OFF_FIRST_S == 2
    assert store_ledger.BACK_OFF_MOST.total_seconds() == BACK_OFF_MOST_S == 600
    assert "after 2, 4, 8 … at most 600 seconds" in PAGE


def test_the_page_says_what_the_settle_time_is_made_of() -> None:
    assert f"{LATEST_START_S:g} s + `timeout_s` + `settle_s`" in PAGE
    assert f"held up for more than {LATEST_START_S:g} s" in PAGE


def test_the_page_names_the_headers_the_statuses_and_files_that_are_there() -> None:
    assert f"{KEY_HEADER}: " in PAGE
    assert f"{FINGERPRINT_HEADER}: " in PAGE
    assert ", ".join(map(str, sorted(NOT_SAID))) in PAGE
    for name in re.findall(r"`([a-z_/]+\.py)`", PAGE):
        places = [
            ROOT / "agents" / "effects" / name,
            ROOT / "agents" / "effects" / "adapters" / name,
            ROOT / "agents" / "workbench" / "funnel" / name,
            ROOT / name,
            ROOT / "tests" / "agents" / "effects" / "model" / name,
        ]
        assert any(place.exists() for place in places), name


def test_every_state_and_each_way_between_them_is_drawn() -> None:
    drawn = {tuple(each) for each in re.findall(r"^    (\w+) --> (\w+):", PAGE, re.MULTILINE)}

    assert drawn == {
        ("prepared", "unknown"),
        ("prepared", "rejected"),
        ("unknown", "committed"),
        ("unknown", "rejected"),
        ("unknown", "absent"),
        ("absent", "unknown"),
        ("absent", "committed"),
        ("absent", "rejected"),
        ("rejected", "prepared"),
        ("rejected", "committed"),
    }
