"""What waits for a person, as tables in a file of this machine: SQLite, fed from the topics.

Promise: a process that dies is nothing to a view; a file of another deployment, another version or that is broken is
made anew. The file is its owner's alone. A first page, a filtered page and a count stay quick with a million rows
(tests/bench/review_view.py). Nothing is decided by it: what a settlement may do, the lanes look at themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import orjson
from ticketgate.streams.operations.review.rows import Case, Count, Kind, State, Wanted
from ticketgate.streams.operations.review.tables import open_file
from ticketgate.streams.operations.review.view_writer import PER_MS, ViewWriter, kind_tag, tag_of

# Where several filters hold together, counting ends after so many rows looked at, so that no page waits for it.
MOST_COUNTED = 10_000


class View(ViewWriter):
    """One view. `claim_ttl_ms`: how long after it was written a record in review can be settled."""

    def __init__(
        self, path: Path, *, about: Mapping[str, str], claim_ttl_ms: int, anew: bool = False
    ) -> None:
        """Open it, or make it anew where it is not this deployment's, or where asked. was_made: whether it was."""
        db, self.was_made = open_file(path, about, anew=anew)
        super().__init__(db, claim_ttl_ms=claim_ttl_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def page(self, wanted: Wanted, *, now_ms: int, after: int = 0, most: int = 50) -> list[Case]:
        """The oldest rows behind the id `after`."""
        lead, values, others = self._lead(wanted, now_ms, after)
        # The conditions are on primary keys, so that a page is read in order and ends with its last row.
        inner = f"SELECT id FROM ({lead}) AS found WHERE {_all_hold(others)} ORDER BY id LIMIT ?"  # noqa: S608
        outer = f"SELECT cases.* FROM ({inner}) JOIN cases USING(id) ORDER BY id"  # noqa: S608 - names of tables alone
        rows = self._db.execute(outer, [*values, *others, most])
        return [self._case(row, now_ms) for row in rows]

    def count(self, wanted: Wanted, *, now_ms: int) -> Count:
        """How many rows there are. Without a moment and with at most one filter, the number is kept; else they are
        counted, among the first MOST_COUNTED that the rarest filter finds."""
        tags = self._tags_wanted(wanted)
        is_kept = wanted.words is None and wanted.older_than_ms is None and len(tags) == 1
        if is_kept and wanted.state not in (State.WAITING, State.EXPIRED):
            return Count(self._kept(tags[0]), is_whole=True)
        if is_kept:
            expired = self._counted(Wanted(**{**_fields(wanted), "state": State.EXPIRED}), now_ms)
            if wanted.state is State.EXPIRED:
                return expired
            if expired.is_whole:
                return Count(self._kept(tags[0]) - expired.rows, is_whole=True)
        return self._counted(wanted, now_ms)

    def find(self, name: str, *, now_ms: int) -> list[Case]:
        """All rows of a ticket, by its key or its id, the newest first."""
        rows = self._db.execute(
            "SELECT * FROM cases WHERE key = ? UNION SELECT * FROM cases WHERE ticket_id = ? ORDER BY id DESC",
            [name, name],
        )
        return [self._case(row, now_ms) for row in rows]

    def newest_id(self) -> int:
        """Of the row that came last; 0 where there is none."""
        (found,) = self._db.execute("SELECT max(id) FROM cases").fetchone()
        return int(found or 0)

    def gone(self, places: Sequence[str]) -> list[str]:
        """Those of some places whose rows wait no longer."""
        marks = ", ".join("?" * len(places))
        rows = self._db.execute(
            f"SELECT place FROM cases WHERE place IN ({marks}) AND state != 'waiting'",  # noqa: S608 - marks alone
            list(places),
        )
        return [place for (place,) in rows]

    def derived(self, key: str) -> list[Case]:
        """The rows of keys that are derived from a ticket's, such as collisions with it, the oldest first."""
        rows = self._db.execute(
            "SELECT * FROM cases WHERE key > ? AND key < ? ORDER BY id", [f"{key}:", f"{key};"]
        )
        return [self._case(row, 0) for row in rows]

    def newest(self, kind: Kind, name: str, value: str, *, now_ms: int, most: int) -> list[Case]:
        """The newest that wait of a kind and have something, such as a tenant."""
        rows = self._db.execute(
            "SELECT cases.* FROM tags JOIN cases USING(id) WHERE tag = ? ORDER BY tags.id DESC LIMIT ?",
            [tag_of(kind, name, value), most],
        )
        return [self._case(row, now_ms) for row in rows]

    def commonest(self, kind: Kind, name: str, *, most: int) -> list[tuple[str, int]]:
        """What most of a kind have that wait, and how many: its rules, labels or stages, of which there are few."""
        first = tag_of(kind, name, "")
        rows = self._db.execute(
            "SELECT tag, rows FROM counts WHERE tag >= ? AND tag < ? AND rows > 0 ORDER BY rows DESC, tag LIMIT ?",
            [first, f"{first[:-1]};", most],
        )
        return [(tag[len(first) :], count) for tag, count in rows]

    def settlements(self, *, key: str | None = None, id: str | None = None) -> list[dict[str, Any]]:  # noqa: A002
        """The settlements of a ticket, or the one with an id; `outcome` None: sent, and not taken yet."""
        column, value = ("key", key) if key is not None else ("id", id)
        rows = self._db.execute(
            f"SELECT * FROM settlements WHERE {column} = ? ORDER BY at_ms",  # noqa: S608 - one of two names
            [value],
        )
        names = [each[0] for each in rows.description]
        found = [dict(zip(names, row, strict=True)) for row in rows]
        for each in found:
            for name in ("reasons", "labels"):
                each[name] = orjson.loads(each[name] or "[]")
        return found

    def numbers(self, *, now_ms: int) -> dict[str, int]:
        """How many decisions wait, are expired and are settled; `oldest_ms`: when the oldest came, 0 for none."""
        found = {
            str(state): self.count(Wanted(state=state), now_ms=now_ms).rows
            for state in State
            if state is not State.REPLACED
        }
        oldest = self.page(Wanted(), now_ms=now_ms, most=1)
        return found | {"oldest_ms": oldest[0].at_ms if oldest else 0}

    def _tags_wanted(self, wanted: Wanted) -> list[str]:
        if wanted.state not in (State.WAITING, State.EXPIRED):
            return [f"state:{wanted.state}"]
        kind = wanted.kind or Kind.DECISION
        given = [("stage", wanted.stage), ("policy", wanted.policy), ("tenant", wanted.tenant)]
        given += [("rule", each) for each in wanted.rules] + [("label", each) for each in wanted.labels]
        return [tag_of(kind, name, each) for name, each in given if each is not None] or [kind_tag(kind)]

    def _lead(self, wanted: Wanted, now_ms: int, after: int = 0) -> tuple[str, list[Any], list[str]]:
        """What is gone through, with its values, and the tags that must hold besides: the rarest leads, or the words
        where there are any."""
        tags = sorted(self._tags_wanted(wanted), key=self._kept)
        least, most = after + 1, 2**62
        over = (now_ms - self._ttl_ms) * PER_MS
        if wanted.state is State.WAITING and (wanted.kind or Kind.DECISION) == Kind.DECISION:
            least = max(least, over)
        if wanted.state is State.EXPIRED:
            most = over - 1
        if wanted.older_than_ms is not None:
            most = min(most, wanted.older_than_ms * PER_MS - 1)
        values: list[Any]
        if wanted.words is None:
            lead, values, others = "SELECT id FROM tags WHERE tag = ?", [tags[0]], tags[1:]
        else:
            lead, values, others = (
                "SELECT rowid AS id FROM texts WHERE texts MATCH ?",
                [_match(wanted.words)],
                tags,
            )
        column = "rowid" if wanted.words is not None else "id"
        lead += f" AND {column} BETWEEN ? AND ?"
        values += [least, most]
        return lead, values, others

    def _counted(self, wanted: Wanted, now_ms: int) -> Count:
        lead, values, others = self._lead(wanted, now_ms)
        looked_at, rows = self._db.execute(
            f"SELECT count(*), coalesce(sum({_all_hold(others)}), 0) FROM ({lead} LIMIT ?) AS found",  # noqa: S608
            [*others, *values, MOST_COUNTED + 1],
        ).fetchone()
        return Count(rows, is_whole=looked_at <= MOST_COUNTED)

    def _kept(self, tag: str) -> int:
        found = self._db.execute("SELECT rows FROM counts WHERE tag = ?", [tag]).fetchone()
        return 0 if found is None else int(found[0])


def _all_hold(tags: Sequence[str]) -> str:
    """That a row found has all of these tags, which are given as values."""
    return (
        " AND ".join("EXISTS(SELECT 1 FROM tags WHERE tag = ? AND tags.id = found.id)" for _ in tags) or "1"
    )


def _match(words: str) -> str:
    """All words, each as it is: nothing of FTS5's own language is read out of them."""
    return " ".join('"' + word.replace('"', '""') + '"' for word in words.split()) or '""'


def _fields(wanted: Wanted) -> dict[str, Any]:
    return {name: getattr(wanted, name) for name in Wanted.__slots__}
