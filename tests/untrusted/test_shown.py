"""What leaves the process, for people and for logs: no secret in it, and nothing that acts on a terminal."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import ConsumerRecord
from hypothesis import given, settings
from hypothesis import strategies as st
from ticketgate.agents.scoring import ScorerError, open_scorer
from ticketgate.codecs.values.printable import json_text, printable
from ticketgate.codecs.values.redact import redact
from ticketgate.streams.cli.running.settings import shown
from ticketgate.streams.config.logs import SafeFormatter
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.kafka.envelope import read_line, write_line
from ticketgate.streams.parts.process import open_log, owners_folder
from ticketgate.streams.process.exposure import exposures

ACTING = ["\u009b2K", "\x7f", "\u202e", "\u200b", "\u2066", "\x1b[2J", "\ufeff", "\u2028"]
SECRET_URLS = [
    "redis://:PASS/x@host", "remote:https://user:PASS@host", "https://host/a?api_key=PASS", "redis://host/0?password=PASS",
    "rediss://u:PA?PASS#PASS@host:1/0", "https://host/#PASS",
]  # fmt: skip


@pytest.mark.parametrize("url", SECRET_URLS)
@pytest.mark.parametrize("around", ["{}", "see {}: away", "('{}')", '"{}",'])
def test_no_part_of_a_url_that_may_be_secret_is_shown(url: str, around: str) -> None:
    told = redact(around.format(url))

    assert "PASS" not in told
    assert "host" in told


@pytest.mark.parametrize(
    "text",
    ["Authorization: Bearer PASS", "{'Authorization': 'Bearer PASS'}", "(b'Authorization', b'Basic PASS')",
     "proxy-authorization=PASS", "token=PASS", "x_api_key=PASS&a=1", "bearer PASS"],
)  # fmt: skip
def test_no_header_and_no_pair_shows_its_secret(text: str) -> None:
    assert "PASS" not in redact(text)


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters=":=")))
def test_plain_text_is_left_alone(text: str) -> None:
    assert "earer" in text or redact(text) == text


@settings(deadline=None)
@given(st.text())
def test_what_is_shown_is_printable_and_json_stays_what_it_was(text: str) -> None:
    told, written = printable(text), json_text({"k": text})

    for shown_text in (told, written):
        assert not any(acting in shown_text for acting in ACTING)
        assert all(each.isprintable() or each in "\n\t" or each.isspace() for each in shown_text)
    assert json.loads(written) == {"k": text}
    assert printable(told) == told


@pytest.mark.parametrize("acting", ACTING)
def test_a_record_is_shown_without_acting_and_sent_again_as_it_was(acting: str) -> None:
    value = json.dumps({"id": f"supplier_8{acting}"}, ensure_ascii=False).encode()
    record = ConsumerRecord(
        "tickets", 0, 1, 5, 0, acting.encode(), value, None, 0, 0, ((f"h{acting}", acting.encode()),)
    )

    line = write_line(record)

    assert acting not in line.decode()
    again = read_line(line)
    assert (again.key, again.value, again.headers) == (record.key, record.value, tuple(record.headers))


def test_a_log_line_shows_no_secret_does_not_act_and_forges_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    record = logging.LogRecord(
        "aiohttp", logging.ERROR, "f", 1, "asked redis://:PASS@h\n2026 ERROR forged \u009b2K", None, None
    )

    line = SafeFormatter("%(levelname)s %(message)s").format(record)

    assert "PASS" not in line
    assert "\n" not in line
    assert "\u009b" not in line


def test_an_error_of_a_command_is_shown_without_acting() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "from ticketgate.streams.cli import main; main()", "check", "no\u009b2K\u202efile",
         "--policy", "none"],
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip

    assert run.returncode == 2
    assert "\u009b" not in run.stdout + run.stderr
    assert "\u202e" not in run.stderr


def test_the_scorers_url_is_hidden_in_settings_and_errors() -> None:
    assert "PASS" not in str(shown("remote:https://user:PASS@host"))
    with pytest.raises(ScorerError) as caught:
        open_scorer("remote:https://user:PASS@host:port")
    assert "PASS" not in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("TICKETGATE_REDIS", "redis://:PASS@redis.example:6379/0", "TICKETGATE_REDIS"),
        ("TICKETGATE_SCORER", "remote:http://models.example", "TICKETGATE_SCORER"),
        ("TICKETGATE_WEB_BIND", "0.0.0.0", "TICKETGATE_WEB_KEYS"),  # noqa: S104 - what is warned of
    ],
)
def test_what_is_open_is_said_at_start(variable: str, value: str, told: str) -> None:
    loaded = load_settings(environment={variable: value}).settings

    (line,) = exposures(loaded)

    assert told in line
    assert "PASS" not in line


def test_a_settings_file_that_others_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.toml"
    path.write_text("")
    path.chmod(0o644)
    monkeypatch.setenv("TICKETGATE_CONFIG", str(path))

    assert any("others can read" in line for line in exposures(load_settings().settings))


def test_data_of_embedded_parts_are_the_owners(tmp_path: Path) -> None:
    old = os.umask(0o000)
    try:
        folder = tmp_path / "data"
        folder.mkdir()
        owners_folder(folder)
        open_log(folder / "log").close()
    finally:
        os.umask(old)

    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "log").stat().st_mode) == 0o600
