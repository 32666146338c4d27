"""`ticketgate console`: what keeps it from starting, and the people that may come in."""

from __future__ import annotations

from pathlib import Path

import pytest
from ticketgate.streams.console.door.people import read_entries
from ticketgate.streams.console.door.tokens import fits

from tests.streams.cli.conftest import Run
from tests.streams.console.conftest import door_settings


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is not there yet."""
    monkeypatch.setenv("TICKETGATE_CONSOLE_USERS", str(tmp_path / "people.json"))
    return tmp_path / "people.json"


def test_a_console_that_others_reach_and_nobody_may_enter_does_not_start(
    ticketgate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = door_settings(tmp_path)
    monkeypatch.setenv("TICKETGATE_CONSOLE_KEYS", str(settings.console_keys))
    monkeypatch.setenv("TICKETGATE_CONSOLE_KEY", "desk")

    for bind in ("0.0.0.0", "::", "192.0.2.1", "desk.example"):  # noqa: S104 - it is to be refused
        ran = ticketgate("console", "--console-bind", bind)

        assert ran.code == 2
        assert ran.err.startswith("ticketgate: TICKETGATE_CONSOLE_BIND")
        assert "TICKETGATE_CONSOLE_USERS" in ran.err


def test_without_a_key_it_does_not_start(ticketgate: Run) -> None:
    ran = ticketgate("console")

    assert ran.code == 2
    assert "TICKETGATE_CONSOLE_KEYS: not set" in ran.err


def test_a_person_is_added_changed_and_removed(ticketgate: Run, users: Path) -> None:
    (added,) = ticketgate("console", "user", "add", "anna", "--role", "settle", "--json").lines
    first = read_entries(users)["anna"]
    (changed,) = ticketgate(
        "console", "user", "change", "anna", "--role", "read", "--new-token", "--json"
    ).lines
    second = read_entries(users)["anna"]
    ticketgate("console", "user", "add", "ben", "--role", "read", "--by-proxy")
    rows = ticketgate("console", "user", "list", "--json").lines
    removed = ticketgate("console", "user", "remove", "anna")

    assert first.token is not None
    assert fits(added["token"], first.token)
    assert second.token is not None
    assert fits(changed["token"], second.token)
    assert not fits(added["token"], second.token)
    assert (first.role, second.role) == ("settle", "read")
    assert [(each["name"], each["role"], each["known_by"]) for each in rows] == [
        *(("anna", "read", "token"), ("ben", "read", "proxy")),
    ]
    assert removed.code == 0
    assert list(read_entries(users)) == ["ben"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "a b", "--role", "read"), "is no name"),
        (("change", "nobody", "--role", "read"), "nobody of the name"),
        (("remove", "nobody"), "nobody of the name"),
        (("change", "nobody"), "give what changes"),
        (("change", "nobody", "--new-token", "--by-proxy"), "give one of"),
    ],
)
def test_what_makes_no_sense_is_told(
    ticketgate: Run, users: Path, arguments: tuple[str, ...], said: str
) -> None:
    ran = ticketgate("console", "user", *arguments)

    assert ran.code == 2
    assert said in ran.err
    assert not users.exists()


def test_nobody_is_added_twice(ticketgate: Run, users: Path) -> None:
    ticketgate("console", "user", "add", "anna", "--role", "settle")
    before = users.read_text()

    again = ticketgate("console", "user", "add", "anna", "--role", "administer")

    assert again.code == 2
    assert users.read_text() == before
