"""The file of a view: its tables, made for its owner alone, and made anew where it is not this deployment's."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# Made anew by who reads another.
VERSION = "1"
# Another process of this machine may be writing.
BUSY_S = 10.0

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
CREATE VIRTUAL TABLE texts USING fts5(text, content='bodies', content_rowid='id');
"""


def open_file(path: Path, about: Mapping[str, str], *, anew: bool) -> tuple[sqlite3.Connection, bool]:
    """The database, and whether it was made anew. about: whose it is; one of another, or a broken one, is not kept."""
    wanted = {**about, "version": VERSION}
    is_ours = not anew and _is_ours(path, wanted)
    if not is_ours:
        _make(path, wanted)
    return connect(path), not is_ours


def connect(path: Path) -> sqlite3.Connection:
    """A connection that begins its transactions itself."""
    db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def _is_ours(path: Path, wanted: Mapping[str, str]) -> bool:
    if not path.exists():
        return False
    try:
        db = connect(path)
        try:
            return dict(db.execute("SELECT name, value FROM about")) == wanted
        finally:
            db.close()
    except sqlite3.DatabaseError:
        return False


def _make(path: Path, about: Mapping[str, str]) -> None:
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").unlink()
    # Before SQLite makes it readable for all.
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    db = connect(path)
    try:
        db.executescript(TABLES)
        db.executemany("INSERT INTO about VALUES(?, ?)", about.items())
    finally:
        db.close()
