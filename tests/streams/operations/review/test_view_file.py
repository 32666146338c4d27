"""The view's file through what becomes of files: kills, full disks, damage, other versions, other processes."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ticketgate.streams.cli.review.sharing import view_fault
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.operations.review import tables
from ticketgate.streams.operations.review.rows import State, Wanted
from ticketgate.streams.operations.review.tables import ViewReplaced, is_broken
from ticketgate.streams.operations.review.view import View

from .test_view import NOW, keys, opened, reviewed, told

# Feeds rows, each batch with the offset behind it, from where the view stands; and says when it has begun.
FEEDER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.streams.operations.review.test_view import opened, reviewed
with opened(Path(sys.argv[2])) as view:
    for at in range(view.offsets().get(("review", 0), 0), int(sys.argv[3]), 20):
        view.add([reviewed(n) for n in range(at, at + 20)], {("review", 0): at + 20})
        print(at, flush=True)
"""
ROOT = str(Path(__file__).parents[4])


def feeding(folder: Path, stop: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", FEEDER, ROOT, str(folder), str(stop)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def all_rows(view: View) -> list[int]:
    return sorted(int(row.key[1:]) for row in view.page(Wanted(), now_ms=NOW, most=100_000))


def test_a_kill_in_the_midst_of_feeding_leaves_rows_and_offsets_together(tmp_path: Path) -> None:
    for batches in (1, 3, 10):
        running = feeding(tmp_path, 10**9)
        assert running.stdout is not None
        for _ in range(batches):
            running.stdout.readline()
        running.send_signal(signal.SIGKILL)
        running.communicate()

        with opened(tmp_path) as view:
            stop = view.offsets()[("review", 0)]
            assert not view.was_made
            assert view.count(Wanted(), now_ms=NOW).rows == stop
            assert view.page(Wanted(), now_ms=NOW, most=1)[0].key == "k0"


def test_two_processes_on_one_view_take_in_each_record_once(tmp_path: Path) -> None:
    both = [feeding(tmp_path, 400) for _ in range(2)]

    assert [each.wait(120) for each in both] == [0, 0]

    with opened(tmp_path) as view:
        assert all_rows(view) == list(range(400))
        assert view.count(Wanted(rules=["urgent-review"]), now_ms=NOW).rows == 400
        assert view.offsets() == {("review", 0): 400}
    for each in both:
        each.communicate()


def test_of_two_that_find_another_file_one_makes_it_and_the_other_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as first:
        first.add([reviewed()], {("review", 0): 1})
        with opened(tmp_path, namespace="other") as other:
            assert (other.was_made, keys(other)) == (True, [])
            asked: list[Callable[[], Any]] = [
                lambda: keys(first),
                lambda: first.count(Wanted(), now_ms=NOW),
                lambda: first.find("k0", now_ms=NOW),
                lambda: first.settlements(key="k0"),
                lambda: first.numbers(now_ms=NOW),
                lambda: first.add([reviewed(1)], {("review", 0): 2}),
                lambda: first.forget_before(NOW),
            ]
            for ask in asked:
                with pytest.raises(ViewReplaced):
                    ask()
            assert (keys(other), other.offsets()) == ([], {})


def test_who_comes_to_a_file_that_is_being_made_waits_and_finds_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path, namespace="before"):
        pass
    make, made = tables._make, list[View]()

    def make_after_another(*arguments: Any) -> None:
        monkeypatch.setattr(tables, "_make", make)
        make(*arguments)

    about_of, looks = tables.about_of, list[int]()

    def while_another_makes_it(db: sqlite3.Connection) -> dict[str, str]:
        found = about_of(db)
        looks.append(1)
        if len(looks) == 1:
            made.append(opened(tmp_path))
            made[0].add([reviewed()], {("review", 0): 1})
        return found

    monkeypatch.setattr(tables, "about_of", while_another_makes_it)
    with opened(tmp_path) as late:
        assert keys(late) == ["k0"]
    assert keys(made[0]) == ["k0"]
    made[0].close()


@pytest.mark.parametrize("left", [b"", b"SQLite format 3\0" + bytes(20), b"no database at all" * 400])
def test_whatever_a_process_left_that_died_making_it_is_made_a_view_of(tmp_path: Path, left: bytes) -> None:
    (tmp_path / "view.sqlite3").write_bytes(left)

    with opened(tmp_path) as view:
        view.add([reviewed()], {})
        assert (view.was_made, keys(view)) == (True, ["k0"])


def test_a_view_of_an_older_version_is_made_anew_and_its_text_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "view.sqlite3"
    db = sqlite3.connect(path)
    db.executescript(
        "CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
        "INSERT INTO about VALUES('namespace', 'n'), ('version', '1');"
        "CREATE TABLE bodies(id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
        "INSERT INTO bodies VALUES(1, 'unheard-of words');"
        "CREATE VIRTUAL TABLE texts USING fts5(text, content='bodies', content_rowid='id');"
        "INSERT INTO texts(rowid, text) VALUES(1, 'unheard-of words');"
    )
    db.close()

    with opened(tmp_path) as view:
        view.add([reviewed()], {})
        assert (view.was_made, keys(view)) == (True, ["k0"])
    assert b"unheard-of" not in path.read_bytes()


def test_a_database_of_another_program_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / "view.sqlite3"
    db = sqlite3.connect(path)
    db.executescript("CREATE TABLE bank(account TEXT); INSERT INTO bank VALUES('all there is')")

    with pytest.raises(CommandError, match="a database of another program; name a file of its own"):
        opened(tmp_path)

    assert db.execute("SELECT * FROM bank").fetchall() == [("all there is",)]
    db.close()


def test_damage_in_the_midst_of_it_is_found_and_it_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "view.sqlite3"
    with opened(tmp_path) as view:
        view.add([reviewed(n) for n in range(2_000)], {("review", 0): 2_000})
    whole = path.read_bytes()
    chance = random.Random(1)
    # Behind the pages with the tables' names and whose view it is, so that opening it finds nothing.
    path.write_bytes(whole[: 8 * 4096] + chance.randbytes(len(whole) - 8 * 4096))

    with pytest.raises(sqlite3.DatabaseError) as found, opened(tmp_path) as view:
        all_rows(view)
    fault = view_fault(path, found.value)

    assert is_broken(found.value)
    assert "was damaged, and was taken away; run the command again" in str(fault)
    with opened(tmp_path) as again:
        assert (again.was_made, keys(again), again.offsets()) == (True, [], {})


def test_a_full_disk_is_told_and_takes_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / "view.sqlite3"
    with opened(tmp_path) as view:
        view.add([reviewed(n) for n in range(20)], {("review", 0): 20})
        (pages,) = view._db.execute("PRAGMA page_count").fetchone()
        view._db.execute(f"PRAGMA max_page_count = {pages + 5}")

        with pytest.raises(sqlite3.OperationalError) as full:
            view.add([reviewed(n) for n in range(20, 2_000)], {("review", 0): 2_000})

        assert all_rows(view) == list(range(20))
        assert view.offsets() == {("review", 0): 20}
        view._db.execute("PRAGMA max_page_count = 1000000")
        view.add([reviewed(20), told(reviewed(0))], {("review", 0): 21})
        assert all_rows(view) == list(range(1, 21))
        assert keys(view, state=State.ACCEPTED) == ["k0"]
    assert str(view_fault(path, full.value)) == (
        f"TICKETGATE_REVIEW_VIEW: {path} cannot be used (database or disk is full);"
        " make room or free it, or name another file"
    )


def test_a_file_that_another_process_holds_is_waited_for_and_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "BUSY_S", 0.1)
    with opened(tmp_path):
        pass
    holder = sqlite3.connect(tmp_path / "view.sqlite3", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    with pytest.raises(sqlite3.OperationalError, match="locked"), opened(tmp_path) as view:
        view.add([reviewed()], {})

    holder.close()
    with opened(tmp_path) as view:
        view.add([reviewed()], {})
        assert keys(view) == ["k0"]
