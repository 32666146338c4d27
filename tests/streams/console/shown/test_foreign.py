"""Text from outside: whatever it is, its pieces say what stands there and do nothing."""

from __future__ import annotations

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st
from ticketgate.codecs.values.printable import printable
from ticketgate.streams.console.shown.foreign import MOST_SHOWN, foreign

ACTIVE = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}


@given(st.text())
@example("\u202eevil\u202c")
@example("p\u0430ypal.com")
@example("a\x1b[31m\x00b")
@example("\ud800")
def test_pieces_make_up_the_text_as_it_can_be_printed(text: str) -> None:
    shown = foreign(text, most=None)

    joined = "".join(piece.text for piece in shown.pieces)
    assert joined == printable(text)
    assert not [char for char in joined if unicodedata.category(char) in ACTIVE and char not in "\n\t"]
    assert (shown.left_out, shown.chars) == (0, len(text))


def test_what_does_not_show_and_what_looks_like_something_else_are_marked() -> None:
    shown = foreign("pay \u202ep\u0430ypal\u202c now")

    marked = [(piece.kind, piece.text) for piece in shown.pieces if piece.kind != "plain"]
    assert marked == [("hidden", "\\u202e"), ("alike", "p\u0430ypal"), ("hidden", "\\u202c")]
    assert "cyrillic" in shown.pieces[2].told.lower()
    assert "right-to-left override" in shown.pieces[1].told


def test_words_of_one_alphabet_are_not_suspected() -> None:
    for text in ("Привет, мир", "naïve café", "Ωμέγα", "日本語 text", "مرحبا"):
        assert [piece.kind for piece in foreign(text).pieces] == ["plain"]


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    shown = foreign("x" * 200_000)

    assert (sum(len(piece.text) for piece in shown.pieces), shown.left_out) == (MOST_SHOWN, 196_000)


def test_a_text_of_nothing_but_traps_is_shown_plain_and_still_escaped() -> None:
    shown = foreign("\u202e" * 4_000)

    assert len(shown.pieces) == 1
    assert "\u202e" not in shown.pieces[0].text
