"""A long text is cut before it is tokenised, and its tokens are still those of the whole."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ticketgate.agents.scoring import default_model_path
from ticketgate.agents.scoring.folder import load_folder
from ticketgate.agents.scoring.tokens import MOST_CHARS_A_TOKEN, Tokenization


@pytest.fixture(scope="module")
def tokens() -> Tokenization:
    return Tokenization(load_folder(default_model_path()))


def whole(tokens: Tokenization, text: str) -> list[int]:
    """What the tokenizer makes of all of the text, cut to the window afterwards."""
    ids: list[int] = tokens._tokenizer.encode(text).ids
    return ids if len(ids) <= tokens.window else [*ids[: tokens.window - 1], ids[-1]]


WORDS = st.sampled_from(
    [
        "card",
        "a",
        "unbelievable",
        "  ",
        "\n\n",
        "x" * 300,
        "…",
        "ß",
        "荷物",
        "4711-B",
        "don't",
        "\u00a0",
        "👍🏽",
    ]
)


@settings(deadline=None, max_examples=60)
@given(
    parts=st.lists(WORDS, min_size=1, max_size=40),
    times=st.integers(1, 120),
    apart=st.sampled_from([" ", "", ", "]),
)
@example(parts=["word"], times=5000, apart=" ")
@example(parts=["x" * 99], times=700, apart=" ")
def test_the_tokens_are_those_of_the_whole_text(
    tokens: Tokenization, parts: list[str], times: int, apart: str
) -> None:
    text = apart.join(parts * times)

    read = tokens.read(text)

    expected = whole(tokens, text)
    if len(read.ids) == tokens.window or not read.is_truncated:
        assert list(read.ids) == expected
    else:  # unknown words, or so long that the rest is left unread
        assert list(read.ids) == expected or len(text) > MOST_CHARS_A_TOKEN * tokens.window


def test_words_behind_a_cut_are_as_many_as_the_window_can_use(tokens: Tokenization) -> None:
    read = tokens.read_words("late parcel " * 20_000)

    assert len(read.ids) >= tokens.window - 2
    assert read.ids[: tokens.window] == tuple(
        tokens._tokenizer.encode("late parcel " * 300, add_special_tokens=False).ids[: tokens.window]
    )
