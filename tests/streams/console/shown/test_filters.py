"""Filters: what an address says, and back."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.shown.filters import Filter, read_filter
from ticketgate.streams.operations.review.rows import Kind, State

WORDS = st.text(alphabet=st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20).filter(
    str.strip
)
SOME = st.lists(WORDS, max_size=3, unique=True).map(tuple)


@given(
    st.builds(
        Filter,
        state=st.sampled_from([State.WAITING, State.EXPIRED]),
        kind=st.sampled_from(Kind),
        stage=st.none() | WORDS,
        policy=st.none() | WORDS,
        tenant=st.none() | WORDS,
        rule=SOME,
        label=SOME,
        words=st.none() | WORDS,
        older=st.none() | st.sampled_from(["2d", "12h"]),
    )
)
def test_a_filter_is_a_link_and_the_link_is_the_filter(wanted: Filter) -> None:
    assert read_filter(MultiDict(parse_qsl(wanted.query, keep_blank_values=True))) == wanted


def test_a_filter_is_added_and_taken_away() -> None:
    narrowed = Filter().with_("rule", "a").with_("rule", "b").with_("tenant", "north")

    assert narrowed.given == (("tenant", "north"), ("rule", "a"), ("rule", "b"))
    assert narrowed.without("rule", "a").without("tenant", "north") == Filter(rule=("b",))


@pytest.mark.parametrize("query", [{"state": "lost"}, {"kind": "x"}, {"older": "soon"}, {"words": "x" * 201}])
def test_what_nothing_can_have_is_refused_by_name(query: dict[str, str]) -> None:
    with pytest.raises(PageRefusal) as refused:
        read_filter(MultiDict(query))

    assert next(iter(query)) in refused.value.what
