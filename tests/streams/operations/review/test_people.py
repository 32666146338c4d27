"""Whom a pseudonym stands for: kept beside other processes, and erased for good."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.operations.review.people import forget, names, pseudonym_of


def test_people_who_come_at_once_keep_the_pseudonyms_that_they_were_given(tmp_path: Path) -> None:
    file = tmp_path / "people.json"
    everybody = [f"person {n}" for n in range(40)]

    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(lambda name: pseudonym_of(file, name), everybody))

    assert [pseudonym_of(file, name) for name in everybody] == given
    assert len(set(given)) == len(everybody)


def test_who_is_erased_while_others_come_stays_erased(tmp_path: Path) -> None:
    file = tmp_path / "people.json"
    gone = [f"gone {n}" for n in range(20)]
    old = {name: pseudonym_of(file, name) for name in gone}

    with ThreadPoolExecutor(8) as pool:
        coming = pool.map(lambda n: pseudonym_of(file, f"new {n}"), range(40))
        going = pool.map(lambda name: forget(file, name), gone)
        assert all(going)
        assert len(list(coming)) == 40

    left = names(file)
    assert not set(left.values()) & set(gone)
    assert not set(left) & set(old.values())
    assert len(left) == 40
    assert b"gone" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


def test_an_erased_person_gets_another_pseudonym_and_a_stranger_is_not_erased(tmp_path: Path) -> None:
    file = tmp_path / "people.json"
    first = pseudonym_of(file, "Ada")

    assert forget(file, "Ada")
    assert not forget(file, "Ada")
    assert pseudonym_of(file, "Ada") != first


def test_all_files_are_their_owners_alone(tmp_path: Path) -> None:
    pseudonym_of(tmp_path / "people.json", "Ada")

    assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be written"):
        pseudonym_of(tmp_path / "nowhere" / "people.json", "Ada")
