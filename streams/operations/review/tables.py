"""The file of a view: its tables, made for its owner alone, and made anew where it is not this deployment's.

Promise: of several processes that find a file that is not theirs, one makes it anew and the others find it made; who
had it open before is told at its next question (`ViewReplaced`), and shown nothing of it. A database of another program
is never touched. Of whatever a process leaves behind that died while it made a file, the next one makes a view.
Relies on: SQLite's write-ahead log, so that what was not committed was not written. A file in use is never taken away:
who closes it later would take its successor's log away with it. Only one that SQLite cannot read is.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ticketgate.streams.config.usage import CommandError

# Made anew by who reads another.
VERSION = "2"
# Another process of this machine may be writing.
BUSY_S = 10.0
# What SQLite says of a file that it cannot read: SQLITE_CORRUPT and SQLITE_NOTADB, in its table of result codes.
_BROKEN = {11, 26}

TABLES = """
CREATE TABLE about(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE offsets(topic TEXT, partition INT, next INT NOT NULL, PRIMARY KEY(topic, partition)) WITHOUT ROWID;
CREATE TABLE cases(
  id INTEGER PRIMARY KEY, place TEXT NOT NULL UNIQUE, key TEXT NOT NULL, ticket_id TEXT NOT NULL,
  tenant TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, sha256 TEXT NOT NULL, stage TEXT NOT NULL,
  policy TEXT NOT NULL, rules TEXT NOT NULL, labels TEXT NOT NULL, reasons TEXT NOT NULL, says TEXT NOT NULL,
  settlement TEXT);
CREATE INDEX cases_of_key ON cases(key);
CREATE INDEX cases_of_ticket ON cases(ticket_id);
CREATE TABLE tags(tag TEXT, id INT, PRIMARY KEY(tag, id)) WITHOUT ROWID;
CREATE TABLE counts(tag TEXT PRIMARY KEY, rows INT NOT NULL) WITHOUT ROWID;
CREATE TABLE settlements(
  coordinate TEXT PRIMARY KEY, id TEXT NOT NULL, key TEXT NOT NULL, review TEXT NOT NULL, action TEXT NOT NULL,
  by TEXT NOT NULL, at_ms INT NOT NULL, outcome TEXT, code TEXT, reasons TEXT, labels TEXT) WITHOUT ROWID;
CREATE INDEX settlements_of_key ON settlements(key);
CREATE INDEX settlements_of_review ON settlements(review);
CREATE TABLE bodies(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE VIRTUAL TABLE texts USING fts5(text, content='bodies', content_rowid='id')
"""
MADE = "made"
"""Under this name `about` has what tells one making of a file from the next."""


class ViewReplaced(sqlite3.DatabaseError):
    """Another process has made the file anew since it was opened. Open it again."""


def open_file(path: Path, about: Mapping[str, str], *, anew: bool) -> tuple[sqlite3.Connection, bool, str]:
    """The database, whether it was made anew, and by which making it is known. about: whose it is; one of another, of
    another version, or a broken one, is not kept. Raises OSError, sqlite3's errors, and `CommandError` for another
    program's database."""
    wanted = {**about, "version": VERSION}
    if not path.exists():
        # Before SQLite makes it readable for all.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    try:
        return _opened(path, wanted, anew=anew)
    except sqlite3.DatabaseError as err:
        if not is_broken(err):
            raise
    _take_away_if_broken(path)
    return _opened(path, wanted, anew=anew)


def is_broken(err: BaseException) -> bool:
    """Whether an error says that the file is damaged or no database, so that it has to be made anew."""
    return isinstance(err, sqlite3.DatabaseError) and getattr(err, "sqlite_errorcode", 0) & 0xFF in _BROKEN


def take_away(path: Path) -> None:
    """Take a view away, with its log."""
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()


def connect(path: Path) -> sqlite3.Connection:
    """A connection that begins its transactions itself."""
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        db.close()
        raise
    return db


def about_of(db: sqlite3.Connection) -> dict[str, str]:
    """Whose a database is; empty for one that has no tables yet."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'about'").fetchone():
        return {}
    return dict(db.execute("SELECT name, value FROM about"))


@contextmanager
def writing(db: sqlite3.Connection) -> Iterator[None]:
    """A transaction that writes, whole or not at all."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # SQLite itself ends the transaction where the disk is full.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _opened(path: Path, wanted: Mapping[str, str], *, anew: bool) -> tuple[sqlite3.Connection, bool, str]:
    db = connect(path)
    try:
        found = about_of(db)
        was_made = anew or not _is_same(found, wanted)
        if was_made:
            with writing(db):
                # Another process may have made it meanwhile.
                again = about_of(db)
                if again.get(MADE) == found.get(MADE) or not _is_same(again, wanted):
                    _make(path, db, wanted)
                found = about_of(db)
        if was_made:
            # What lay there before is no longer on the disk, unless somebody reads at this moment.
            with suppress(sqlite3.OperationalError):
                db.execute("VACUUM")
        return db, was_made, found[MADE]
    except BaseException:
        db.close()
        raise


def _is_same(found: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return MADE in found and {name: value for name, value in found.items() if name != MADE} == wanted


def _make(path: Path, db: sqlite3.Connection, about: Mapping[str, str]) -> None:
    there = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    if there and "about" not in there:
        raise CommandError(
            f"TICKETGATE_REVIEW_VIEW: {path} is a database of another program; name a file of its own"
        )
    # With the virtual table go those that it is made of.
    for name in sorted(there, key=lambda each: each != "texts"):
        if not name.startswith(("sqlite_", "texts_")):
            db.execute(f'DROP TABLE "{name}"')
    # One by one: a script would end the transaction.
    for table in TABLES.split(";"):
        db.execute(table)
    db.executemany("INSERT INTO about VALUES(?, ?)", {**about, MADE: secrets.token_hex(8)}.items())


def _take_away_if_broken(path: Path) -> None:
    """One process after the other, so that none takes away what another has just made."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        try:
            db = connect(path)
            try:
                about_of(db)
            finally:
                db.close()
        except sqlite3.DatabaseError as err:
            if not is_broken(err):
                raise
            take_away(path)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    finally:
        os.close(folder)
