"""Where keys stand in a document, held against documents whose lines are known."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from ticketgate.codecs.files.positions import Path, line_of, locate

DOCUMENT = '''# a comment with [brackets] and = signs
name = "a # no comment" # [a comment]
text = """
[not.a.header]
key = 1 \\""" still text
"""
raw = \'\'\'
[nor.this]\'\'\'

[ questions . "a b" ]
type = "noul"

[[rules]]
implies = [ "a", # first
  "b]",
  [ "c",
    "d" ],
]
at_least = { count = 2, of = ["x",
  "y"] }
[[rules]]
a.b.c = 1
[[rules.sub]]
z = 1
[[rules.sub]]
z = 2
[rules.table]
w = 2026-01-01T00:00:00Z
'''


def test_every_key_of_a_toml_document_has_its_line() -> None:
    lines = locate(DOCUMENT)

    assert {path: lines[path] for path in lines} == {
        ("name",): 2,
        ("text",): 3,
        ("raw",): 7,
        ("questions", "a b"): 10,
        ("questions", "a b", "type"): 11,
        ("rules",): 13,
        ("rules", 0): 13,
        ("rules", 0, "implies"): 14,
        ("rules", 0, "implies", 0): 14,
        ("rules", 0, "implies", 1): 15,
        ("rules", 0, "implies", 2): 16,
        ("rules", 0, "implies", 2, 0): 16,
        ("rules", 0, "implies", 2, 1): 17,
        ("rules", 0, "at_least"): 19,
        ("rules", 0, "at_least", "count"): 19,
        ("rules", 0, "at_least", "of"): 19,
        ("rules", 0, "at_least", "of", 0): 19,
        ("rules", 0, "at_least", "of", 1): 20,
        ("rules", 1): 21,
        ("rules", 1, "a"): 22,
        ("rules", 1, "a", "b"): 22,
        ("rules", 1, "a", "b", "c"): 22,
        ("rules", 1, "sub"): 23,
        ("rules", 1, "sub", 0): 23,
        ("rules", 1, "sub", 0, "z"): 24,
        ("rules", 1, "sub", 1): 25,
        ("rules", 1, "sub", 1, "z"): 26,
        ("rules", 1, "table"): 27,
        ("rules", 1, "table", "w"): 28,
    }


def test_what_has_no_line_has_that_of_what_is_around_it() -> None:
    lines = locate(DOCUMENT)

    assert line_of(lines, ("rules", 0, "implies", 7, "x")) == 14
    assert line_of(lines, ("nowhere",)) is None


def paths(value: Any, path: Path = ()) -> list[Path]:
    """Every key and element of a value, in the order of a document that is written depth first."""
    found: list[Path] = []
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, each in members:
        found += [(*path, key), *paths(each, (*path, key))]
    return found


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values, max_size=5), st.booleans())
@example({'"': {"\\": ["}", "]"]}}, True)
def test_json_written_one_part_a_line_gives_each_part_its_line(
    document: dict[str, Any], ascii_only: bool
) -> None:
    text = json.dumps(document, indent=1, ensure_ascii=ascii_only)

    lines = locate(text)

    assert set(lines) == set(paths(document))
    # One part a line, and lines that close brackets between: the order of parts is the order of lines.
    in_order = [lines[path] for path in paths(document)]
    assert in_order == sorted(set(in_order))
    written = text.split("\n")
    for path, line in lines.items():
        if isinstance(path[-1], str):
            assert written[line - 1].lstrip().startswith(json.dumps(path[-1], ensure_ascii=ascii_only))


@given(st.text() | st.text(alphabet="[]{}=\"'\n.,#a1 \\:"))
def test_any_text_gives_positions_and_never_an_exception(text: str) -> None:
    lines = locate(text)

    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


@given(st.text(alphabet="[]{}=\"'\n.,#ab1 \\"))
def test_whatever_toml_accepts_has_all_its_positions(text: str) -> None:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return

    assert set(locate(text)) >= {path for path in paths(document) if isinstance(path[0], str)} - unnoted(
        document
    )


def unnoted(document: dict[str, Any]) -> set[Path]:
    """Tables that only exist because a header names something within them: they have no line of their own."""
    return {path for path in paths(document) if isinstance(at(document, path), dict)}


def at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value
