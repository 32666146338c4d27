"""Records on the demo's embedded broker, which has neither transactions nor idempotent producers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.tansu import Tansu

from tests.streams.cli.conftest import Run


@pytest.fixture
def tansu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tansu]:
    try:
        broker = Tansu()
    except PartMissing as err:
        pytest.skip(str(err))
    with broker:
        monkeypatch.setenv("TICKETGATE_KAFKA", broker.bootstrap)
        yield broker


def test_topics_records_and_parts_of_a_topic_work_on_it_too(
    tansu: Tansu, ticketgate: Run, tmp_path: Path
) -> None:
    file = tmp_path / "records.jsonl"
    # Placed in one partition: so they go out as one batch, whose last offset Tansu does not tell when asked.
    file.write_text(
        '{"key":"a","value":1,"partition":1}\n'
        '{"key":"b","value_base64":"//4=","headers":[["a",{"base64":"/w=="}]],"partition":1}\n'
        '{"key":"c","value":null,"partition":1}\n'
    )

    made = ticketgate("topics", "create", "--json")
    again = ticketgate("topics", "create", "--json")
    sent = ticketgate("produce", "--unchecked", file)
    shown = ticketgate("consume", "tickets")
    part = ticketgate("consume", "tickets", "--from", "1:1", "--until", "1")
    later = ticketgate("consume", "tickets", "--from", "2040-01-01T00:00:00Z")
    end = ticketgate("consume", "tickets", "--from", "end")

    assert [each.code for each in (made, again, sent, shown, part, later, end)] == [0] * 7
    assert [each["created"] for each in made.lines + again.lines] == [True] * 10 + [False] * 10
    assert [each["key"] for each in shown.lines] == ["a", "b", "c"]
    assert [each["key"] for each in part.lines] == ["b"]
    assert later.out == end.out == b""
