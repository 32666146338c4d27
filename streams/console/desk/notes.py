"""What a console notes for itself: presses that are under way, what was deferred, and who looks at what.

Promise: a note outlives this process once its call has returned, in a file that is its owner's alone. Notes are
advice: no lane knows of them, and a lost file loses no effect and makes none.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson
from ticketgate.streams.config.usage import CommandError

# Another console of this machine may be writing.
BUSY_S = 5.0

TABLES = """
CREATE TABLE IF NOT EXISTS presses(
  id TEXT PRIMARY KEY, batch TEXT NOT NULL, key TEXT NOT NULL, place TEXT NOT NULL, ticket_id TEXT NOT NULL,
  action TEXT NOT NULL, by TEXT NOT NULL, pressed_ms INT NOT NULL, due_ms INT NOT NULL, stage TEXT NOT NULL,
  signed BLOB, at TEXT, reason TEXT NOT NULL,
  outcome TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS presses_of_place ON presses(place);
CREATE INDEX IF NOT EXISTS presses_by ON presses(by, pressed_ms);
CREATE INDEX IF NOT EXISTS presses_of_stage ON presses(stage);
CREATE TABLE IF NOT EXISTS deferred(
  place TEXT PRIMARY KEY, by TEXT NOT NULL, why TEXT NOT NULL, until_ms INT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS looking(
  place TEXT, by TEXT, until_ms INT NOT NULL, PRIMARY KEY(place, by)) WITHOUT ROWID;
"""


class PressStage(StrEnum):
    """How far a press is, as far as this console knows."""

    PRESSED = "pressed"
    """It can be taken back; nothing was sent."""
    TAKEN_BACK = "taken_back"
    NOT_SENT = "not_sent"
    """The console ended before it was sent, or it could not be signed; the ticket waits as before."""
    SENDING = "sending"
    """It is signed, and nobody knows yet whether it lies in the topic."""
    SENT = "sent"
    """It lies in the topic; what becomes of it a worker says."""
    TOLD = "told"
    """A worker has said what became of it, or its time is over."""


NOT_TAKEN = "not_taken"
"""The outcome of what no worker took in its time."""

OPEN = (PressStage.PRESSED, PressStage.SENDING, PressStage.SENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """One press. id: the settlement's. batch: shared by those pressed at once. signed: the settlement as it is sent,
    from SENDING on. at: where it lies, once it was sent. outcome: as `settled` has it, or NOT_TAKEN; empty before it is
    told. reason: why it was not sent, or not taken."""

    id: str
    batch: str
    key: str
    place: str
    ticket_id: str
    action: str
    by: str
    pressed_ms: int
    due_ms: int
    stage: PressStage = PressStage.PRESSED
    signed: bytes | None = None
    at: str | None = None
    reason: str = ""
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Deferred:
    """That a ticket is to be looked at later."""

    place: str
    by: str
    why: str
    until_ms: int


class Notes:
    """The file of notes. Calls take microseconds: none waits for the disk."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it. Raises OSError, sqlite3.Error, and `CommandError` where another has it open."""
        self._lock = os.open(path.with_name(f"{path.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            # Two consoles would take each other's presses for those of one that died.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as err:
            os.close(self._lock)
            raise CommandError(
                f"TICKETGATE_REVIEW_VIEW: another console keeps its notes in {path}; give each a file of its own"
            ) from err
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        # What a killed process had committed is there. After a power cut a note may be gone: what it was about waits in
        # review as before, or was sent, and then the topics tell.
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(TABLES)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
        os.close(self._lock)

    def add(self, presses: Sequence[Press]) -> list[Press]:
        """Note presses, all or none, and return those that are new: not one that is there already, nor one of a ticket
        that somebody else's press is under way for."""
        added: list[Press] = []
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            for each in presses:
                if self.open_of(each.place) or self.press(each.id):
                    continue
                self._db.execute(
                    "INSERT INTO presses VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        *(each.id, each.batch, each.key, each.place, each.ticket_id, each.action, each.by),
                        *(each.pressed_ms, each.due_ms, each.stage, each.signed, each.at, each.reason),
                        each.outcome,
                    ],
                )
                added.append(each)
        return added

    def move(self, press_id: str, *, of: PressStage, to: PressStage, **changes: Any) -> bool:
        """Bring a press one stage further, if it still is where the caller saw it; whether it was."""
        fields = {"stage": to, **changes}
        names = ", ".join(f"{name} = ?" for name in fields)
        done = self._db.execute(
            f"UPDATE presses SET {names} WHERE id = ? AND stage = ?",  # noqa: S608 - names of our own columns
            [*fields.values(), press_id, of],
        )
        return done.rowcount == 1

    def press(self, press_id: str) -> Press | None:
        """The press with an id."""
        return self._one(self._db.execute("SELECT * FROM presses WHERE id = ?", [press_id]))

    def open_of(self, place: str) -> Press | None:
        """The press that is under way for what lies at a place."""
        return self._one(
            self._db.execute(
                "SELECT * FROM presses WHERE place = ? AND stage IN (?, ?, ?) ORDER BY pressed_ms DESC LIMIT 1",
                [place, *OPEN],
            )
        )

    def opened(self, places: Iterable[str]) -> dict[str, Press]:
        """As `open_of`, for those of many that have one."""
        rows = self._db.execute(
            "SELECT * FROM presses WHERE stage IN (?, ?, ?) AND place IN (SELECT value FROM json_each(?))"
            " ORDER BY pressed_ms",
            [*OPEN, _json(places)],
        )
        return {row["place"]: _press(row) for row in rows}

    def at_stage(self, stage: PressStage) -> list[Press]:
        """All presses that are there, the oldest first."""
        rows = self._db.execute("SELECT * FROM presses WHERE stage = ? ORDER BY pressed_ms", [stage])
        return [_press(row) for row in rows]

    def of_batch(self, batch: str) -> list[Press]:
        """Those that were pressed at once."""
        rows = self._db.execute("SELECT * FROM presses WHERE batch = ? ORDER BY id", [batch])
        return [_press(row) for row in rows]

    def last_by(self, person: str, *, most: int) -> list[Press]:
        """A person's last presses, the newest first."""
        rows = self._db.execute(
            "SELECT * FROM presses WHERE by = ? ORDER BY pressed_ms DESC, id LIMIT ?", [person, most]
        )
        return [_press(row) for row in rows]

    def forget_before(self, at_ms: int) -> None:
        """Forget presses that are done with, and notes whose time is over."""
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(
                "DELETE FROM presses WHERE pressed_ms < ? AND stage NOT IN (?, ?)",
                [at_ms, PressStage.PRESSED, PressStage.SENDING],
            )
            self._db.execute("DELETE FROM deferred WHERE until_ms < ?", [at_ms])
            self._db.execute("DELETE FROM looking WHERE until_ms < ?", [at_ms])

    def defer(self, note: Deferred) -> None:
        """Note that a ticket is to be looked at later."""
        self._db.execute(
            "INSERT OR REPLACE INTO deferred VALUES(?, ?, ?, ?)",
            [note.place, note.by, note.why, note.until_ms],
        )

    def take_up(self, place: str) -> None:
        """It is deferred no longer."""
        self._db.execute("DELETE FROM deferred WHERE place = ?", [place])

    def deferred(self, places: Iterable[str], *, now_ms: int) -> dict[str, Deferred]:
        """What of these is deferred now."""
        rows = self._db.execute(
            "SELECT * FROM deferred WHERE until_ms > ? AND place IN (SELECT value FROM json_each(?))",
            [now_ms, _json(places)],
        )
        return {row["place"]: Deferred(*row) for row in rows}

    def deferred_places(self, *, now_ms: int) -> set[str]:
        """Where what is deferred now lies."""
        return {
            place for (place,) in self._db.execute("SELECT place FROM deferred WHERE until_ms > ?", [now_ms])
        }

    def look_at(self, place: str, by: str, *, until_ms: int) -> None:
        """Note that somebody looks at a ticket."""
        self._db.execute("INSERT OR REPLACE INTO looking VALUES(?, ?, ?)", [place, by, until_ms])

    def look_away(self, place: str, by: str) -> None:
        """Somebody looks at it no longer."""
        self._db.execute("DELETE FROM looking WHERE place = ? AND by = ?", [place, by])

    def lookers(self, places: Iterable[str], *, now_ms: int) -> dict[str, list[str]]:
        """Who looks at these now."""
        rows = self._db.execute(
            "SELECT place, by FROM looking WHERE until_ms > ? AND place IN (SELECT value FROM json_each(?))",
            [now_ms, _json(places)],
        )
        found: dict[str, list[str]] = {}
        for place, by in rows:
            found.setdefault(place, []).append(by)
        return found

    def _one(self, rows: sqlite3.Cursor) -> Press | None:
        row = rows.fetchone()
        return None if row is None else _press(row)


def _press(row: sqlite3.Row) -> Press:
    return Press(**{**{name: row[name] for name in row.keys()}, "stage": PressStage(row["stage"])})  # noqa: SIM118


def _json(values: Iterable[str]) -> str:
    return orjson.dumps(list(values)).decode()
