"""What others rely on: the published schemas, records already written, the names, and the light import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Protocol

import pytest
import ticketgate.codecs
from ticketgate.codecs import (
    JsonValue,
    Malformed,
    decode,
    encode,
    read_case_decision,
    read_decision,
    read_in_force,
    read_proposal,
    read_receipt,
    read_settled,
    read_settlement,
    read_ticket,
)
from ticketgate.codecs.records.published import schema_files, write_schemas

RECORDED = Path(__file__).parent / "recorded"


class Written(Protocol):
    """What every record is."""

    def to_json(self) -> Mapping[str, JsonValue]: ...


# By the record's name, which its files bear before their version.
READERS: dict[str, Callable[[JsonValue], Written | Malformed]] = {
    "ticket": read_ticket,
    "decision": read_decision,
    "proposal": read_proposal,
    "case-decision": read_case_decision,
    "receipt": read_receipt,
    "settlement": read_settlement,
    "settled": read_settled,
    "in-force": read_in_force,
}


def test_the_schemas_in_the_package_are_those_of_the_models() -> None:
    folder = resources.files("ticketgate.codecs") / "schemas"

    kept = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.endswith(".json")}

    assert kept == schema_files(), (
        "run: .venv/bin/python -m ticketgate.codecs.records.published codecs/schemas"
    )


def test_the_schemas_are_written_where_told(tmp_path: Path) -> None:
    write_schemas(tmp_path / "new")

    assert {file.name for file in (tmp_path / "new").iterdir()} == {f"{name}-1.json" for name in READERS}


@pytest.mark.parametrize("file", sorted(RECORDED.glob("*.jsonl")), ids=lambda file: file.name)
def test_recorded_records_of_every_version_are_still_read_whole(file: Path) -> None:
    """One file a version, one record a line: never change a line, add files as versions come."""
    lines = file.read_bytes().splitlines()

    assert lines
    for line in lines:
        value = decode(line)
        assert not isinstance(value, Malformed), value
        record = READERS[file.stem.rpartition("-")[0]](value)
        assert not isinstance(record, Malformed), record
        assert encode(record.to_json()) == encode(value)


def test_there_are_recorded_records_of_every_published_version() -> None:
    assert {file.stem for file in RECORDED.glob("*.jsonl")} == {Path(name).stem for name in schema_files()}


def test_the_front_door_offers_what_it_names() -> None:
    assert ticketgate.codecs.__all__ == sorted(
        ticketgate.codecs.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)
    )
    assert all(hasattr(ticketgate.codecs, name) for name in ticketgate.codecs.__all__)


def test_codecs_stand_on_no_engine() -> None:
    heavy = {
        "faust",
        "mode",
        "aiokafka",
        "redis",
        "aiohttp",
        "onnxruntime",
        "numpy",
        "tokenizers",
        "click",
        "rich",
    }
    code = f"import sys, ticketgate.codecs; print(sorted({heavy!r} & set(sys.modules)))"

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "[]"
