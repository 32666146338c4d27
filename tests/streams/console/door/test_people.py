"""The users' file: what is refused, and what becomes of a running console when it changes."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.console.door.people import Entry, People, read_entries, write_entries

from ..conftest import ENTRIES, door_settings

HASH = ENTRIES["anna"].token


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "users.json"),
        ("[]", "is no object"),
        (
            '{"anna": {"role": "read", "token": null}, "anna": {"role": "administer", "token": null}}',
            "twice|users.json",
        ),
        ('{"anna": 1}', "is no object"),
        ('{"anna": {"token": null}}', "role is missing"),
        ('{"anna": {"role": "god", "token": null}}', "role is missing or unknown"),
        ('{"anna": {"role": "read", "token": "plain"}}', "no hash"),
        ('{"anna": {"role": "read", "token": null, "tokn": 1}}', "unknown field 'tokn'"),
        ('{"a b": {"role": "read", "token": null}}', "is no name"),
        ('{"\\u0430nna": {"role": "read", "token": null}}', "is no name"),
        ('{"anna": {"role": "read", "token": null, "key": 7}}', "key is no text"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_setting(tmp_path: Path, written: str, said: str) -> None:
    path = tmp_path / "users.json"
    path.write_text(written)

    with pytest.raises(SettingsError, match=said) as refused:
        read_entries(path)

    assert str(refused.value).startswith("TICKETGATE_CONSOLE_USERS")


def test_what_is_written_is_read_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    entries = {**ENTRIES, "dora": Entry(role=ConsoleRole.READ, token=None, key="wall")}

    write_entries(path, entries)

    assert read_entries(path) == entries
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert HASH is not None
    assert HASH in path.read_text()


@pytest.mark.parametrize(
    ("roles", "said"), [('["read"]', "has the role settle"), ('["settle"]', "has the role read")]
)
def test_a_person_whose_key_may_less_is_refused_at_the_start(tmp_path: Path, roles: str, said: str) -> None:
    settings = door_settings(tmp_path)
    keys = tmp_path / "keys.toml"
    keys.write_text(keys.read_text().replace('["read", "settle", "administer"]', roles))
    write_entries(tmp_path / "users.json", {"anna": ENTRIES["anna"], "ben": ENTRIES["ben"]})

    with pytest.raises(SettingsError, match=said):
        People(settings)


async def test_a_file_that_is_mended_is_taken_again(tmp_path: Path) -> None:
    people = People(door_settings(tmp_path))
    path = tmp_path / "users.json"

    path.write_text("{")
    await people.look()
    broken = people.fault
    write_entries(path, {"ben": ENTRIES["ben"]})
    await people.look()

    assert broken is not None
    assert "users.json" in broken
    assert people.fault is None
    assert (people.get("anna"), len(people)) == (None, 1)


async def test_what_changed_is_taken_whatever_its_time_and_size_and_whichever_file_it_is(
    tmp_path: Path,
) -> None:
    people = People(door_settings(tmp_path))
    path, first = tmp_path / "users.json", people.get("anna")
    before = path.stat()

    path.write_text(path.read_text().replace('"anna"', '"anne"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    await people.look()
    (tmp_path / "secret").write_text("t" * 64)
    await people.look()

    anne = people.get("anne")
    assert people.get("anna") is None
    assert anne is not None
    assert first is not None
    assert anne.key != first.key


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"console_proxy": "10.0.0.1"}, "console_proxy: set without console_proxy_secret"),
        ({"console_proxy_secret": "x" * 32}, "CONSOLE_PROXY_SECRET: set without console_proxy"),
        ({"console_proxy": "10.0.0.1", "console_proxy_secret": "short"}, "shorter than 32"),
        ({"console_proxy": "nowhere", "console_proxy_secret": "x" * 32}, "is no address"),
        ({"console_proxy": "10.0.0.1", "console_proxy_secret": "x" * 32}, "set without console_users"),
        ({"console_idle": "2d"}, "longer than console_session"),
        ({"console_proxy_user": "X User"}, "CONSOLE_PROXY_USER"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(given: dict[str, str], said: str) -> None:
    environment = {f"TICKETGATE_{name.upper()}": value for name, value in given.items()}

    with pytest.raises(SettingsError) as refused:
        load_settings(environment=environment)

    assert said.lower() in str(refused.value).lower()


def test_an_entry_says_no_more_than_it_has(tmp_path: Path) -> None:
    write_entries(tmp_path / "users.json", {"ben": Entry(role=ConsoleRole.READ, token=None)})

    written: Any = json.loads((tmp_path / "users.json").read_text())

    assert written == {"ben": {"role": "read", "token": None}}
