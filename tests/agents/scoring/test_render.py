"""How structured states become text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.scoring.render import render
from ticketgate.codecs.values.strict import canonical, decode

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as it is\n ", "as it is\n "),
        ({"subject": "Hi", "body": "Help"}, "body: Help\nsubject: Hi"),
        (["one", {"b": 2, "a": [True, None]}], "one\na: true\na: null\nb: 2"),
        ({"from": {"name": "Ann", "tries": 3.0}}, "from.name: Ann\nfrom.tries: 3"),
        ({}, ""),
        ([], ""),
        ({"a": -0.0, "b": 0.25, "c": 1e300}, f"a: 0\nb: 0.25\nc: {int(1e300)}"),
    ],
)
def test_rendering(value: Any, text: str) -> None:
    assert render(value) == text


@given(VALUES)
def test_what_has_the_same_fingerprint_reads_the_same(value: Any) -> None:
    other = decode(canonical(value), max_bytes=10**7)

    assert render(other) == render(value)  # type: ignore[arg-type]  # a value, since canonical wrote it


def test_deep_nesting_does_not_recurse() -> None:
    value: Any = "end"
    for _ in range(100_000):
        value = [value]

    assert render(value) == "end"
