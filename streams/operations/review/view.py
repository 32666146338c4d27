"""What waits for a person, as tables in a file of this machine: SQLite, fed from the topics.

Promise: a process that dies is nothing to a view; a file of another deployment, another version or that is broken is
made anew. The file is its owner's alone. A page and a count look at a bounded number of rows, whatever is asked for,
and say if they ended there: they stay quick with a million rows (tests/bench/review_view.py). Nothing is decided by it:
what a settlement may do, the lanes look at themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import orjson
from ticketgate.streams.operations.review.rows import Case, Count, Kind, Page, State, Wanted
from ticketgate.streams.operations.review.tables import open_file
from ticketgate.streams.operations.review.view_writer import PER_MS, ViewWriter, kind_tag, tag_of

# Where several filters hold together, counting and looking for a page end after so many rows looked at, so that no page
# waits for what is hardly ever found.
MOST_COUNTED = 10_000
MOST_LOOKED_AT = 20_000

MOST_ID = 2**62


class View(ViewWriter):
    """One view. `claim_ttl_ms`: how long after it was written a record in review can be settled."""

    def __init__(
        self, path: Path, *, about: Mapping[str, str], claim_ttl_ms: int, anew: bool = False
    ) -> None:
        """Open it, or make it anew where it is not this deployment's, or where asked. was_made: whether it was."""
        db, self.was_made, made = open_file(path, about, anew=anew)
        super().__init__(db, made=made, claim_ttl_ms=claim_ttl_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()

    def page(self, wanted: Wanted, *, now_ms: int, after: int = 0, most: int = 50) -> list[Case]:
        """The rows of `page_from`."""
        return list(self.page_from(wanted, now_ms=now_ms, after=after, most=most).rows)

    def page_from(self, wanted: Wanted, *, now_ms: int, after: int = 0, most: int = 50) -> Page:
        """The oldest rows behind the id `after`, and where to go on. What waits longest is over first, so the oldest
        are the most pressing; the order of two rows never changes."""
        self._check()
        lead = self._lead(wanted, now_ms, after)
        stop = self._stop(lead)
        # The conditions are on primary keys, so that a page is read in order and ends with its last row.
        inner = f"SELECT id FROM ({lead.sql}) AS found WHERE {_all_hold(lead.others)} ORDER BY id LIMIT ?"  # noqa: S608
        outer = f"SELECT cases.* FROM ({inner}) JOIN cases USING(id) ORDER BY id"  # noqa: S608 - names of tables alone
        rows = self._db.execute(outer, [*lead.values(stop), *lead.others, most])
        found = [self._case(row, now_ms) for row in rows]
        if len(found) == most:
            return Page(found, found[-1].id, is_full=True)
        return Page(found, stop, is_full=stop is None)

    def count(self, wanted: Wanted, *, now_ms: int) -> Count:
        """How many rows there are. Without a moment and with at most one filter, the number is kept; else they are
        counted, among the first MOST_COUNTED that the rarest filter finds."""
        self._check()
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
        self._check()
        rows = self._db.execute(
            "SELECT * FROM cases WHERE key = ? UNION SELECT * FROM cases WHERE ticket_id = ? ORDER BY id DESC",
            [name, name],
        )
        return [self._case(row, now_ms) for row in rows]

    def newest_id(self) -> int:
        """Of the row that came last; 0 where there is none."""
        self._check()
        (found,) = self._db.execute("SELECT max(id) FROM cases").fetchone()
        return int(found or 0)

    def at(self, places: Sequence[str], *, now_ms: int) -> list[Case]:
        """The rows that lie at some places, the oldest first."""
        self._check()
        marks = ", ".join("?" * len(places))
        rows = self._db.execute(
            f"SELECT * FROM cases WHERE place IN ({marks}) ORDER BY id",  # noqa: S608 - marks alone
            list(places),
        )
        return [self._case(row, now_ms) for row in rows]

    def gone(self, places: Sequence[str]) -> list[str]:
        """Those of some places whose rows wait no longer."""
        self._check()
        marks = ", ".join("?" * len(places))
        rows = self._db.execute(
            f"SELECT place FROM cases WHERE place IN ({marks}) AND state != 'waiting'",  # noqa: S608 - marks alone
            list(places),
        )
        return [place for (place,) in rows]

    def derived(self, key: str) -> list[Case]:
        """The rows of keys that are derived from a ticket's, such as collisions with it, the oldest first."""
        self._check()
        rows = self._db.execute(
            "SELECT * FROM cases WHERE key > ? AND key < ? ORDER BY id", [f"{key}:", f"{key};"]
        )
        return [self._case(row, 0) for row in rows]

    def newest(self, kind: Kind, name: str, value: str, *, now_ms: int, most: int) -> list[Case]:
        """The newest that wait of a kind and have something, such as a tenant."""
        self._check()
        rows = self._db.execute(
            "SELECT cases.* FROM tags JOIN cases USING(id) WHERE tag = ? ORDER BY tags.id DESC LIMIT ?",
            [tag_of(kind, name, value), most],
        )
        return [self._case(row, now_ms) for row in rows]

    def commonest(self, kind: Kind, name: str, *, most: int) -> list[tuple[str, int]]:
        """What most of a kind have that wait, and how many: its rules, labels or stages, of which there are few."""
        self._check()
        first = tag_of(kind, name, "")
        rows = self._db.execute(
            "SELECT tag, rows FROM counts WHERE tag >= ? AND tag < ? AND rows > 0 ORDER BY rows DESC, tag LIMIT ?",
            [first, f"{first[:-1]};", most],
        )
        return [(tag[len(first) :], count) for tag, count in rows]

    def settlements(self, *, key: str | None = None, id: str | None = None) -> list[dict[str, Any]]:  # noqa: A002
        """The settlements of a ticket, or the one with an id; `outcome` None: sent, and not taken yet."""
        self._check()
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

    def _lead(self, wanted: Wanted, now_ms: int, after: int = 0) -> _Lead:
        """The rarest filter leads, or the words where there are any; the others must hold besides."""
        tags = sorted(self._tags_wanted(wanted), key=self._kept)
        least, most = after + 1, MOST_ID
        over = (now_ms - self._ttl_ms) * PER_MS
        if wanted.state is State.WAITING and (wanted.kind or Kind.DECISION) == Kind.DECISION:
            least = max(least, over)
        if wanted.state is State.EXPIRED:
            most = over - 1
        if wanted.older_than_ms is not None:
            most = min(most, wanted.older_than_ms * PER_MS - 1)
        if wanted.words is None:
            return _Lead(
                "SELECT id FROM tags WHERE tag = ? AND id BETWEEN ? AND ?", tags[0], tags[1:], least, most
            )
        words = "SELECT rowid AS id FROM texts WHERE texts MATCH ? AND rowid BETWEEN ? AND ?"
        return _Lead(words, _match(wanted.words), tags, least, most)

    def _stop(self, lead: _Lead) -> int | None:
        """At which id looking ends; None if it comes to the end."""
        if not lead.others:
            return None
        found = self._db.execute(
            f"SELECT id FROM ({lead.sql} ORDER BY 1 LIMIT 1 OFFSET ?)",  # noqa: S608 - names of tables alone
            [*lead.values(None), MOST_LOOKED_AT - 1],
        ).fetchone()
        return None if found is None else int(found[0])

    def _counted(self, wanted: Wanted, now_ms: int) -> Count:
        lead = self._lead(wanted, now_ms)
        looked_at, rows = self._db.execute(
            f"SELECT count(*), coalesce(sum({_all_hold(lead.others)}), 0) FROM ({lead.sql} LIMIT ?) AS found",  # noqa: S608
            [*lead.others, *lead.values(None), MOST_COUNTED + 1],
        ).fetchone()
        return Count(rows, is_whole=looked_at <= MOST_COUNTED)

    def _kept(self, tag: str) -> int:
        found = self._db.execute("SELECT rows FROM counts WHERE tag = ?", [tag]).fetchone()
        return 0 if found is None else int(found[0])


@dataclass(frozen=True, slots=True)
class _Lead:
    """What is gone through in the order of ids: sql with its first value, between two ids; `others` are the tags that a
    row must have besides."""

    sql: str
    first: str
    others: Sequence[str]
    least: int
    most: int

    def values(self, stop: int | None) -> list[Any]:
        """The values of `sql`, up to an id if there is one."""
        return [self.first, self.least, self.most if stop is None else stop]


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
