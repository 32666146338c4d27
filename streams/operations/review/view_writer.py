"""How rows get into a view, and out of it again.

Promise: rows and the offsets that they were read to are written in one transaction; what was taken in before changes
nothing. Text is kept of what waits, and forgotten with what is settled.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import orjson
from ticketgate.streams.operations.review.rows import EFFECTIVE, Case, Kind, Reviewed, Sent, State, Told
from ticketgate.streams.operations.review.tables import MADE, ViewReplaced, writing

# A record's id is its time in ms and a number: as many in one millisecond as there may be without a gap in order.
PER_MS = 4096
# Of a ticket's text, so much is searched and kept.
TEXT_CHARS = 4_000
SAYS_CHARS = 120


class ViewWriter:
    """Writes into the tables of one view. `made`: the making that it was opened as; `claim_ttl_ms`: how long a record
    in review can be settled. Raises `ViewReplaced` where another process made the file anew, and sqlite3's errors."""

    def __init__(self, db: sqlite3.Connection, *, made: str, claim_ttl_ms: int) -> None:
        self._db, self._made, self._ttl_ms = db, made, claim_ttl_ms

    def offsets(self) -> dict[tuple[str, int], int]:
        """By topic and partition, one past the last record that was taken in."""
        return {
            (topic, part): following for topic, part, following in self._db.execute("SELECT * FROM offsets")
        }

    def add(self, rows: Sequence[Reviewed | Sent | Told], following: Mapping[tuple[str, int], int]) -> None:
        """Take rows in, with the offsets that they reach to. What was taken in before changes nothing."""
        with self._writing():
            for row in rows:
                match row:
                    case Reviewed():
                        self._add_reviewed(row)
                    case Sent():
                        self._add_sent(row)
                    case Told():
                        self._add_told(row)
            self._db.executemany(
                "INSERT INTO offsets VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET next = max(next, excluded.next)",
                [(*source, at) for source, at in following.items()],
            )

    def forget_before(self, at_ms: int) -> None:
        """Forget what was written before a moment: its topics have forgotten it too."""
        with self._writing():
            rows = self._db.execute("SELECT id FROM cases WHERE id < ?", [at_ms * PER_MS]).fetchall()
            for (case_id,) in rows:
                self._untag(case_id)
                self._forget_text(case_id)
                self._db.execute("DELETE FROM cases WHERE id = ?", [case_id])
            self._db.execute("DELETE FROM settlements WHERE at_ms < ?", [at_ms])

    def _add_reviewed(self, row: Reviewed) -> None:
        if self._db.execute("SELECT 1 FROM cases WHERE place = ?", [row.place]).fetchone():
            return
        case_id = self._free_id(row.at_ms)
        state, settlement = self._state_of(row)
        self._db.execute(
            "INSERT INTO cases VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                *(case_id, row.place, row.key, row.ticket_id, row.tenant, row.kind, state, row.sha256),
                *(row.stage, row.policy, _json(row.rules), _json(row.labels), _json(row.reasons)),
                *(row.text[:SAYS_CHARS], settlement),
            ],
        )
        if state is not State.WAITING:
            self._tag(case_id, [f"state:{state}"])
            return
        self._tag(case_id, tags_of(row))
        text = row.text[:TEXT_CHARS]
        self._db.execute("INSERT INTO bodies VALUES(?, ?)", [case_id, text])
        self._db.execute("INSERT INTO texts(rowid, text) VALUES(?, ?)", [case_id, text])
        if row.kind is Kind.DECISION:
            before = self._db.execute(
                "SELECT id FROM cases WHERE key = ? AND state = 'waiting' AND id < ? AND kind = 'decision'",
                [row.key, case_id],
            ).fetchall()
            for (each,) in before:
                self._end(each, State.REPLACED, None)

    def _state_of(self, row: Reviewed) -> tuple[State, str | None]:
        """A settlement may have come in before its record did, from another topic."""
        found = self._db.execute(
            "SELECT outcome, id FROM settlements WHERE review = ? AND key = ? AND outcome IN (?, ?, ?)",
            [row.place, row.key, *EFFECTIVE],
        ).fetchone()
        return (State.WAITING, None) if found is None else (EFFECTIVE[found[0]], found[1])

    def _add_sent(self, row: Sent) -> None:
        self._db.execute(
            "INSERT INTO settlements(coordinate, id, key, review, action, by, at_ms) VALUES(?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            [row.coordinate, row.id, row.key, row.review, row.action, row.by, row.at_ms],
        )

    def _add_told(self, row: Told) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO settlements VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                *(row.coordinate, row.id, row.key, row.review, row.action, row.by, row.at_ms, row.outcome),
                *(row.code, _json(row.reasons), _json(row.labels)),
            ],
        )
        if (state := EFFECTIVE.get(row.outcome)) is None:
            return
        found = self._db.execute(
            "SELECT id FROM cases WHERE place = ? AND key = ?", [row.review, row.key]
        ).fetchone()
        if found is not None:
            self._end(found[0], state, row.id)

    def _end(self, case_id: int, state: State, settlement: str | None) -> None:
        self._untag(case_id)
        self._forget_text(case_id)
        self._db.execute(
            "UPDATE cases SET state = ?, settlement = ?, says = '' WHERE id = ?", [state, settlement, case_id]
        )
        self._tag(case_id, [f"state:{state}"])

    def _forget_text(self, case_id: int) -> None:
        body = self._db.execute("SELECT text FROM bodies WHERE id = ?", [case_id]).fetchone()
        if body is not None:
            self._db.execute(
                "INSERT INTO texts(texts, rowid, text) VALUES('delete', ?, ?)", [case_id, body[0]]
            )
            self._db.execute("DELETE FROM bodies WHERE id = ?", [case_id])

    def _free_id(self, at_ms: int) -> int:
        first = max(0, at_ms) * PER_MS
        (last,) = self._db.execute(
            "SELECT max(id) FROM cases WHERE id >= ? AND id < ?", [first, first + PER_MS]
        ).fetchone()
        free: int = first if last is None else last + 1
        return free if free < first + PER_MS else self._free_id(at_ms + 1)

    def _tag(self, case_id: int, tags: Sequence[str]) -> None:
        self._db.executemany("INSERT INTO tags VALUES(?, ?)", [(tag, case_id) for tag in tags])
        self._db.executemany(
            "INSERT INTO counts VALUES(?, 1) ON CONFLICT DO UPDATE SET rows = rows + 1",
            [(tag,) for tag in tags],
        )

    def _untag(self, case_id: int) -> None:
        row = self._db.execute("SELECT * FROM cases WHERE id = ?", [case_id]).fetchone()
        if row is None:
            return
        case = self._case(row, 0)
        is_open = case.state is State.WAITING
        tags = tags_of(case) if is_open else [f"state:{case.state}"]
        self._db.executemany("DELETE FROM tags WHERE tag = ? AND id = ?", [(tag, case_id) for tag in tags])
        self._db.executemany("UPDATE counts SET rows = rows - 1 WHERE tag = ?", [(tag,) for tag in tags])

    def _case(self, row: Sequence[Any], now_ms: int) -> Case:
        at_ms = row[0] // PER_MS
        state = State(row[6])
        expires_ms = at_ms + self._ttl_ms
        if state is State.WAITING and row[5] == Kind.DECISION and 0 < expires_ms <= now_ms:
            state = State.EXPIRED
        rules, labels, reasons = (tuple(orjson.loads(each)) for each in row[10:13])
        return Case(
            id=row[0], place=row[1], key=row[2], ticket_id=row[3], tenant=row[4], kind=Kind(row[5]), state=state,
            at_ms=at_ms, expires_ms=expires_ms, sha256=row[7], stage=row[8], policy=row[9], rules=rules,
            labels=labels, reasons=reasons, says=row[13], settlement=row[14],
        )  # fmt: skip

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with writing(self._db):
            self._check()
            yield

    def _check(self) -> None:
        """That it still is the view that was opened. Raises `ViewReplaced`."""
        found = self._db.execute("SELECT value FROM about WHERE name = ?", [MADE]).fetchone()
        if found is None or found[0] != self._made:
            raise ViewReplaced("another process has made the view anew")


def tags_of(row: Reviewed | Case) -> list[str]:
    """What a row that waits is found by."""
    named = [("stage", row.stage), ("policy", row.policy), ("tenant", row.tenant)]
    named += [("rule", each) for each in row.rules] + [("label", each) for each in row.labels]
    return [kind_tag(row.kind), *dict.fromkeys(tag_of(row.kind, *each) for each in named)]


def kind_tag(kind: str) -> str:
    """What all of a kind are found by that wait."""
    return f"kind:{kind}"


def tag_of(kind: str, name: str, value: str) -> str:
    """What those of a kind are found by that have something: a rule, a label, a stage, a policy, a tenant. Of the kind
    alone, so that the number of each is kept."""
    return f"{kind} {name}:{value}"


def _json(values: Sequence[str]) -> str:
    return orjson.dumps(list(values)).decode()
