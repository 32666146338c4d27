"""Console keys whose files change under a running process."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from ticketgate.agents.settling.console_keys import ConsoleKeysError
from ticketgate.streams.operations.review.keys_in_force import KeysInForce

TABLE = '[{name}]\nalgorithm = "HS256"\nroles = ["settle"]\nsecret_file = "{name}.key"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("ticketgate.codecs.files.watched.SETTLE_S", 0.0)
    for name in ("a", "b"):
        (tmp_path / f"{name}.key").write_bytes(name.encode() * 32)
    write(tmp_path, "a")
    return tmp_path


def write(folder: Path, *names: str) -> None:
    (folder / "keys.toml").write_text("".join(TABLE.format(name=name) for name in names))


async def test_keys_come_and_go_with_the_file(folder: Path) -> None:
    found = KeysInForce(folder / "keys.toml")
    seen: list[list[str]] = []
    for names in (("a",), ("a", "b"), ("b",)):
        write(folder, *names)
        await found.look()
        seen.append(sorted(found.keys))

    assert seen == [["a"], ["a", "b"], ["b"]]
    assert found.error is None


async def test_a_secret_that_was_changed_is_the_one_that_counts(folder: Path) -> None:
    found = KeysInForce(folder / "keys.toml")
    await found.look()
    (folder / "a.key").write_bytes(b"z" * 32)

    await found.look()

    assert found.keys["a"].verifying == b"z" * 32


@pytest.mark.parametrize("spoil", ["table", "secret", "gone", "empty"])
async def test_files_that_cannot_be_used_keep_the_good_keys_and_are_told_once(
    folder: Path, spoil: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = KeysInForce(folder / "keys.toml")
    good = found.keys
    match spoil:
        case "table":
            (folder / "keys.toml").write_text("[a]\nroles = [")
        case "secret":
            (folder / "a.key").write_bytes(b"short")
        case "gone":
            (folder / "keys.toml").unlink()
        case _:
            (folder / "keys.toml").write_text("")

    with caplog.at_level(logging.INFO, "ticketgate"):
        for _ in range(3):
            await found.look()
    told, kept, said = found.error, found.keys, list(caplog.messages)
    (folder / "a.key").write_bytes(b"a" * 32)
    write(folder, "b")
    await found.look()

    assert kept == good
    assert "keys.toml" in (told or "")
    assert len(said) == 1
    assert "a" * 32 not in caplog.text
    assert (list(found.keys), found.error) == (["b"], None)


def test_the_first_reading_refuses(folder: Path) -> None:
    (folder / "keys.toml").write_text("")

    with pytest.raises(ConsoleKeysError, match="has no key"):
        KeysInForce(folder / "keys.toml")
