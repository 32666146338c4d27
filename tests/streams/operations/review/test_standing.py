"""How each record in review stands: as a plain reader says, and as the view does, in whatever order it came in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from ticketgate.streams.operations.review.rows import Kind, Reviewed, State, Told
from ticketgate.streams.operations.review.standing import ReviewBooks, Standing, count
from ticketgate.streams.operations.review.view import View

from .test_view import NOW, TTL_MS, reviewed, told


def books_of(*rows: Reviewed | Told) -> ReviewBooks:
    books = ReviewBooks(TTL_MS)
    books.add(rows)
    return books


def states(*rows: Reviewed | Told, now: int = NOW) -> dict[str, State]:
    return {each.place: each.state for each in books_of(*rows).standings(now_ms=now)}


def plain(rows: list[Reviewed | Told], now: int) -> dict[str, State]:
    """As somebody says it who reads all for each record anew."""
    found: dict[str, State] = {}
    lying = [row for row in rows if isinstance(row, Reviewed)]
    for row in lying:
        done = [
            each
            for each in rows
            if isinstance(each, Told)
            and (each.review, each.key) == (row.place, row.key)
            and each.outcome in ("accepted", "rejected", "returned")
        ]
        later = [
            each
            for each in lying
            if each.key == row.key and each.kind is Kind.DECISION and each.at_ms > row.at_ms
        ]
        if done:
            found[row.place] = State(done[0].outcome)
        elif row.kind is Kind.DECISION and later:
            found[row.place] = State.REPLACED
        elif row.kind is Kind.DECISION and row.at_ms + TTL_MS <= now:
            found[row.place] = State.EXPIRED
        else:
            found[row.place] = State.WAITING
    return found


@st.composite
def histories(draw: st.DrawFn) -> list[Reviewed | Told]:
    """Records of a few tickets in their order, each with a settlement that took effect or did not, at its place or
    anywhere after."""
    lying: list[Reviewed] = []
    for n in range(draw(st.integers(1, 8))):
        key = draw(st.sampled_from(["k1", "k2", "k3"]))
        kind = draw(st.sampled_from([Kind.DECISION, Kind.DECISION, Kind.COLLISION]))
        # Under a collision lies another key than the ticket's.
        lying.append(reviewed(n, key=key if kind is Kind.DECISION else f"{key}:c{n}", kind=kind))
    rows: list[Reviewed | Told] = list(lying)
    for n, row in enumerate(lying):
        if row.kind is not Kind.DECISION or not draw(st.booleans()):
            continue
        outcome = draw(st.sampled_from(["accepted", "rejected", "returned", "void", "already_settled"]))
        at = draw(st.integers(rows.index(row) + 1, len(rows)))
        # What was decided anew since is settled no more.
        is_last = not any(
            each.key == row.key for each in rows[rows.index(row) + 1 : at] if isinstance(each, Reviewed)
        )
        rows.insert(at, told(row, outcome if is_last else "void", n))
    return rows


@given(rows=histories(), later=st.integers(0, 2 * TTL_MS))
def test_it_stands_as_a_plain_reader_and_as_the_view_say(
    rows: list[Reviewed | Told], later: int, tmp_path_factory: object
) -> None:
    now = NOW - 5_000 + later
    path = Path(tmp_path_factory.mktemp("view")) / "view.sqlite3"  # type: ignore[attr-defined]
    with View(path, about={}, claim_ttl_ms=TTL_MS) as view:
        view.add(rows, {})
        seen = {
            each.place: each.state
            for name in {row.key for row in rows}
            for each in view.find(name, now_ms=now)
        }

    assert states(*rows, now=now) == plain(rows, now)
    assert states(*rows, now=now) == seen


def test_what_is_settled_twice_is_found() -> None:
    row = reviewed()
    once = books_of(row, told(row), told(row))
    twice = books_of(row, told(row), told(row, "rejected", 1))

    assert once.settled_twice == 0
    assert (twice.settled_twice, twice.settled_twice_first) == (1, [row.place])


def test_what_is_gone_from_review_is_counted_apart() -> None:
    assert books_of(reviewed(1), told(reviewed(2))).settlements_of_past == 1


def test_counts_are_of_what_can_be_settled() -> None:
    rows = [reviewed(1), reviewed(2, kind=Kind.CASE), reviewed(3)]

    found = count(books_of(*rows, told(rows[2])).standings(now_ms=NOW))

    assert (found["waiting"], found["accepted"], found["looked_into"]) == (1, 1, 1)


def test_a_record_that_waits_says_until_when() -> None:
    (waits,) = books_of(reviewed(at_ms=NOW)).standings(now_ms=NOW)
    (case,) = books_of(replace(reviewed(), kind=Kind.CASE)).standings(now_ms=NOW + 10 * TTL_MS)

    assert isinstance(waits, Standing)
    assert waits.to_json()["until"] == "1970-01-01T00:16:50.000Z"
    assert (case.state, case.to_json()["until"]) == (State.WAITING, None)
