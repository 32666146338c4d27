"""`ticketgate settings`, and what is said of a setting that is wrong."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from ticketgate.codecs.values.redact import HIDDEN
from ticketgate.streams.cli.running.settings import hide_secrets
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings, load_settings

from tests.streams.cli.conftest import Run


def test_every_setting_has_a_name_a_value_a_source_and_a_meaning(
    ticketgate: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "ticketgate.toml"
    file.write_text('web_port = 7000\ngroup = "from-file"\n')
    monkeypatch.setenv("TICKETGATE_CONFIG", str(file))
    monkeypatch.setenv("TICKETGATE_GROUP", "from-environment")

    ran = ticketgate("settings", "--json")

    rows = {row["name"]: (row["value"], row["source"]) for row in ran.lines}
    assert list(rows) == [f"TICKETGATE_{name.upper()}" for name in Settings.model_fields]
    assert rows["TICKETGATE_WEB_PORT"] == (7000, str(file))
    assert rows["TICKETGATE_GROUP"] == ("from-environment", "environment")
    assert rows["TICKETGATE_CLAIM_TTL"] == ("30d", "default")
    assert rows["TICKETGATE_POLICY"] == (None, "default")
    assert all(row["meaning"] for row in ran.lines)
    assert f"TICKETGATE_CONFIG names the file {file}" in ticketgate("settings").err


def test_the_table_shows_the_same(ticketgate: Run) -> None:
    ran = ticketgate("settings")

    lines = ran.out.decode().splitlines()
    assert lines[0].split() == ["setting", "value", "source", "meaning"]
    assert lines[1].split()[:3] == ["TICKETGATE_KAFKA", "127.0.0.1:9092", "default"]
    assert len(lines) == 1 + len(Settings.model_fields)
    assert "TICKETGATE_CONFIG can name one" in ran.err


def test_a_password_is_shown_in_neither_form(ticketgate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKETGATE_REDIS", "redis://user:s3cret@redis.example:6380/1")

    table, data = ticketgate("settings"), ticketgate("settings", "--json")

    assert f"redis://{HIDDEN}@redis.example:6380/1" in table.out.decode()
    assert b"s3cret" not in table.out + data.out


def test_passwords_on_the_way_to_kafka_are_hidden_whole(
    ticketgate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "SECURITY": "sasl_ssl",
        "SASL": "plain",
        "USER": "alice",
        "PASSWORD": "kafka://s3cret",
        "CERTIFICATE": "c.pem",
        "KEY": "k.pem",
        "KEY_PASSWORD": "s3cret-too",
    }
    for name, value in given.items():
        monkeypatch.setenv(f"TICKETGATE_KAFKA_{name}", value)

    table, data = ticketgate("settings"), ticketgate("settings", "--json")

    rows = {row["name"]: row["value"] for row in data.lines}
    assert rows["TICKETGATE_KAFKA_PASSWORD"] == rows["TICKETGATE_KAFKA_KEY_PASSWORD"] == HIDDEN
    assert b"s3cret" not in table.out + data.out


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("rediss://[::1]:6379", "rediss://[::1]:6379"),
        ("redis://only-a-user@host/2", f"redis://{HIDDEN}@host/2"),
        ("redis://:a@b@host:1/0", f"redis://{HIDDEN}@host:1/0"),
        ("redis://host/0?password=s3cret", f"redis://host/0?{HIDDEN}"),
        ("redis://:s3/cret@host:1/0", HIDDEN),
        ("redis://s3?cret@host/0", HIDDEN),
        ("redis://s3#cret@host/0", HIDDEN),
        ("redis://host/s3cret", HIDDEN),
        ("unix://user:s3cret@/var/run/redis.sock", HIDDEN),
        ("s3cret", HIDDEN),
        ("", HIDDEN),
    ],
)
def test_nothing_but_an_address_is_shown_of_a_url(url: str, shown: str) -> None:
    assert hide_secrets(url) == shown


@pytest.mark.parametrize(
    ("given", "lives_days"),
    [
        ({}, 30),
        ({"TICKETGATE_OUTPUTS_RETENTION": "60d"}, 60),
        ({"TICKETGATE_OUTPUTS_RETENTION": "20d"}, 20),
        ({"TICKETGATE_CLAIM_TTL": "17d"}, 17),
        ({"TICKETGATE_CLAIM_TTL": "17d", "TICKETGATE_OUTPUTS_RETENTION": "60d"}, 17),
    ],
)
def test_a_claim_lives_as_long_as_outputs_are_kept_unless_told(
    given: dict[str, str], lives_days: int
) -> None:
    """So that what lies in review can be settled for as long as it lies there."""
    loaded = load_settings(environment=given)

    assert loaded.settings.claim_ttl == timedelta(days=lives_days)
    assert loaded.sources["claim_ttl"] == ("environment" if "TICKETGATE_CLAIM_TTL" in given else "default")


def test_claims_are_not_made_shorter_than_a_ticket_can_come_again() -> None:
    with pytest.raises(SettingsError, match=r"CLAIM_TTL: 5d is less than .* at least 10d"):
        load_settings(environment={"TICKETGATE_OUTPUTS_RETENTION": "5d"})


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("TICKETGATE_KAFCA", "x", "TICKETGATE_KAFCA: unknown setting; did you mean TICKETGATE_KAFKA?"),
        ("TICKETGATE_WEB_PORT", "http", "TICKETGATE_WEB_PORT: Input should be a valid integer"),
        ("TICKETGATE_CLAIM_TTL", "1d", "set it to at least 10d"),
        ("TICKETGATE_CONFIG", "/nowhere.toml", "/nowhere.toml: the file of settings cannot be read"),
    ],
)
def test_a_wrong_setting_is_one_line_that_names_it(
    ticketgate: Run, monkeypatch: pytest.MonkeyPatch, name: str, value: str, line: str
) -> None:
    monkeypatch.setenv(name, value)

    ran = ticketgate("settings")

    assert (ran.code, ran.out) == (2, b"")
    assert ran.err.startswith(f"ticketgate: {name}: ")
    assert line in ran.err
    assert ran.err.count("\n") == 1
