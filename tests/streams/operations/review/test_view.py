"""The view: what waits as a naive list of rows says it, kept through crashes, made anew where it is not ours."""

from __future__ import annotations

import random
import sqlite3
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.streams.operations.review import view as view_module
from ticketgate.streams.operations.review.rows import Kind, Reviewed, Sent, State, Told, Wanted
from ticketgate.streams.operations.review.view import View

TTL_MS = 10_000
NOW = 1_000_000


def reviewed(n: int = 0, **changes: Any) -> Reviewed:
    fields: dict[str, Any] = {
        "place": f"review:0:{n}",
        "key": f"k{n}",
        "ticket_id": f"T-{n}",
        "tenant": "",
        "kind": Kind.DECISION,
        "at_ms": NOW - 5_000 + n,
        "sha256": "ab",
        "stage": "policy",
        "policy": "support",
        "rules": ("urgent-review",),
        "labels": ("billing", "urgent"),
        "reasons": ("urgent requires review",),
        "text": f"My card was charged {n} times.",
    }
    return Reviewed(**(fields | changes))


def told(of: Reviewed, outcome: str = "accepted", n: int = 0) -> Told:
    return Told(
        coordinate=f"settlements:0:{n}", id=f"s{n}", key=of.key, review=of.place, action="accept", by="p-1",
        at_ms=NOW, outcome=outcome, code="" if outcome != "void" else "expired", reasons=(), labels=("billing",),
    )  # fmt: skip


def opened(folder: Path, **about: str) -> View:
    return View(folder / "view.sqlite3", about={"namespace": "n"} | about, claim_ttl_ms=TTL_MS)


def keys(view: View, now: int = NOW, **wanted: Any) -> list[str]:
    return [each.key for each in view.page(Wanted(**wanted), now_ms=now)]


def test_what_waits_is_listed_the_oldest_first_and_page_by_page(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        view.add([reviewed(n) for n in (3, 1, 2)], {("review", 0): 4})

        first = view.page(Wanted(), now_ms=NOW, most=2)
        rest = view.page(Wanted(), now_ms=NOW, most=2, after=first[-1].id)

        assert [each.key for each in first + rest] == ["k1", "k2", "k3"]
        assert first[0].says.startswith("My card")
        assert view.offsets() == {("review", 0): 4}


def test_what_hardly_ever_holds_together_is_looked_for_a_page_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_module, "MOST_LOOKED_AT", 10)
    monkeypatch.setattr(view_module, "MOST_COUNTED", 10)
    both = {7, 31, 32}
    rows = [
        reviewed(
            n, rules=("r1", "r2") if n in both else (f"r{n % 2 + 1}",), text="refund" if n in both else "x"
        )
        for n in range(40)
    ]
    with opened(tmp_path) as view:
        view.add(rows, {})
        for wanted in (
            Wanted(rules=["r1", "r2"]),
            Wanted(rules=["r1"], labels=["billing", "urgent"], words="refund"),
        ):
            found, after, pages = list[str](), 0, 0
            while True:
                page = view.page_from(wanted, now_ms=NOW, after=after)
                found += [each.key for each in page.rows]
                pages += 1
                if page.next_after is None:
                    break
                assert not page.is_full
                assert page.next_after > after
                after = page.next_after
            assert page.is_full
            assert found == ["k7", "k31", "k32"]
            assert pages == (1 if wanted.words else 3)
        count = view.count(Wanted(rules=["r1", "r2"]), now_ms=NOW)
        assert (count.rows, count.is_whole) == (1, False)
        full = view.page_from(Wanted(rules=["r1"]), now_ms=NOW, most=5)
        assert (len(full.rows), full.next_after, full.is_full) == (5, full.rows[-1].id, True)


def test_what_is_settled_waits_no_more_and_its_text_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        row = reviewed(text="unheard-of words")
        view.add([row, reviewed(1)], {})
        view.add([told(row)], {})

        assert keys(view) == ["k1"]
        assert keys(view, words="unheard-of") == []
        (case,) = view.page(Wanted(state=State.ACCEPTED), now_ms=NOW)
        assert (case.key, case.settlement, case.says) == ("k0", "s0", "")
    assert b"unheard-of" not in (tmp_path / "view.sqlite3").read_bytes() or _vacuumed(tmp_path)


def _vacuumed(folder: Path) -> bool:
    """Deleted rows lie in free pages until they are used again: SQLite's own erasing says that they are gone."""
    with sqlite3.connect(folder / "view.sqlite3") as db:
        return not db.execute("SELECT 1 FROM bodies WHERE text LIKE '%unheard-of%'").fetchall()


@pytest.mark.parametrize("outcome", ["void", "already_settled"])
def test_what_was_not_taken_waits_as_before(tmp_path: Path, outcome: str) -> None:
    with opened(tmp_path) as view:
        row = reviewed()
        view.add([row, replace_told(told(row, "void"), outcome)], {})

        assert keys(view) == ["k0"]
        assert view.settlements(key="k0")[0]["outcome"] == outcome


def replace_told(row: Told, outcome: str) -> Told:
    return replace(row, outcome=outcome, code=outcome)


def test_a_settlement_may_be_read_before_the_record_that_it_settles(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        row = reviewed()
        view.add([told(row, "rejected")], {})
        view.add([row], {})

        assert keys(view) == []
        assert keys(view, state=State.REJECTED) == ["k0"]


def test_what_was_sent_and_not_taken_is_known(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        row = reviewed()
        sent = Sent(
            coordinate="settlements:0:0",
            id="s0",
            key="k0",
            review=row.place,
            action="accept",
            by="p",
            at_ms=NOW,
        )
        view.add([row, sent], {})
        (before,) = view.settlements(id="s0")
        view.add([told(row)], {})
        (after,) = view.settlements(id="s0")
        view.add([sent], {})

        assert (before["outcome"], after["outcome"]) == (None, "accepted")
        assert view.settlements(id="s0")[0]["outcome"] == "accepted"


def test_what_is_older_than_a_claim_is_expired(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        view.add([reviewed(0, at_ms=NOW - TTL_MS - 1), reviewed(1)], {})

        assert keys(view) == ["k1"]
        assert keys(view, state=State.EXPIRED) == ["k0"]
        numbers = view.numbers(now_ms=NOW)
        assert (numbers["waiting"], numbers["expired"], numbers["oldest_ms"]) == (1, 1, NOW - 4_999)


def test_what_was_decided_anew_replaces_what_lay_there(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        view.add([reviewed(0), reviewed(1, key="k0")], {})

        assert [each.place for each in view.page(Wanted(), now_ms=NOW)] == ["review:0:1"]
        assert [each.state for each in view.find("k0", now_ms=NOW)] == [State.WAITING, State.REPLACED]


def test_many_in_one_millisecond_have_rows_of_their_own(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        view.add([reviewed(n, at_ms=NOW) for n in range(5_000)], {})

        assert view.count(Wanted(), now_ms=NOW).rows == 5_000


@pytest.mark.parametrize(
    "words", ['"', "a AND", "NEAR(", "*", "-x", "text:", "", "  ", "'; DROP TABLE cases; --"]
)
def test_words_are_words_whatever_they_look_like(tmp_path: Path, words: str) -> None:
    with opened(tmp_path) as view:
        view.add([reviewed()], {})

        assert keys(view, words=words) == []
        assert keys(view, words="card CHARGED") == ["k0"]


def test_a_process_that_dies_leaves_rows_and_offsets_together(tmp_path: Path) -> None:
    view = opened(tmp_path)
    with pytest.raises(TypeError):
        view.add([reviewed(), reviewed(1, labels=(object(),))], {("review", 0): 2})  # type: ignore[arg-type]
    view.close()

    with opened(tmp_path) as again:
        assert not again.was_made
        assert (keys(again), again.offsets()) == ([], {})


def test_a_file_of_another_or_a_broken_one_is_made_anew_and_is_its_owners_alone(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        view.add([reviewed()], {("review", 0): 1})
    with opened(tmp_path) as same:
        assert (same.was_made, keys(same)) == (False, ["k0"])
    with opened(tmp_path, namespace="other") as other:
        assert (other.was_made, keys(other), other.offsets()) == (True, [], {})
    (tmp_path / "view.sqlite3").write_bytes(b"no database at all, but long enough to be read as one" * 40)
    with opened(tmp_path) as mended:
        assert mended.was_made
        assert stat.S_IMODE((tmp_path / "view.sqlite3").stat().st_mode) == 0o600


def test_what_the_topics_forgot_is_forgotten(tmp_path: Path) -> None:
    with opened(tmp_path) as view:
        view.add([reviewed(0), reviewed(1)], {})

        view.forget_before(NOW - 4_999)

        assert keys(view) == ["k1"]
        assert view.count(Wanted(), now_ms=NOW).rows == 1


@given(st.integers(0, 2**32))
def test_filters_and_counts_agree_with_a_naive_list(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    chance = random.Random(seed)
    rows = [
        reviewed(
            n,
            at_ms=NOW - chance.randrange(2 * TTL_MS),
            stage=chance.choice(["policy", "abstention"]),
            tenant=chance.choice(["", "acme"]),
            rules=tuple(chance.sample(["r1", "r2"], chance.randrange(3))),
            labels=tuple(chance.sample(["a", "b", "c"], chance.randrange(4))),
            text=chance.choice(["refund please", "printer on fire"]),
        )
        for n in range(chance.randrange(20))
    ]
    settled = {row.place for row in rows if chance.random() < 0.3}
    fed: list[Any] = rows + [told(row, n=n) for n, row in enumerate(rows) if row.place in settled]
    chance.shuffle(fed)
    wanted = Wanted(
        stage=chance.choice([None, "policy"]),
        tenant=chance.choice([None, "acme"]),
        rules=chance.choice([(), ("r1",), ("r1", "r2")]),
        labels=chance.choice([(), ("a",), ("a", "b")]),
        words=chance.choice([None, "refund", "fire printer"]),
        older_than_ms=chance.choice([None, NOW - 1_000]),
    )

    with opened(tmp_path_factory.mktemp("view")) as view:
        view.add(fed[: len(fed) // 2], {})
        view.add(fed, {})  # some twice
        page, count = view.page(wanted, now_ms=NOW, most=100), view.count(wanted, now_ms=NOW)

    naive = [
        row
        for row in rows
        if row.place not in settled
        and row.at_ms >= NOW - TTL_MS
        and wanted.stage in (None, row.stage)
        and wanted.tenant in (None, row.tenant)
        and set(wanted.rules) <= set(row.rules)
        and set(wanted.labels) <= set(row.labels)
        and all(word in row.text for word in (wanted.words or "").split())
        and (wanted.older_than_ms is None or row.at_ms < wanted.older_than_ms)
    ]
    assert {each.place for each in page} == {row.place for row in naive}
    assert [each.at_ms for each in page] == sorted(each.at_ms for each in page)
    assert (count.rows, count.is_whole) == (len(naive), True)
