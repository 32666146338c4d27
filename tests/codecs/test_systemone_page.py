"""Each example of the page on questions and answers runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "codecs" / "systemone" / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_there_is_an_example_of_each() -> None:
    for name in (
        "read_questions",
        "Prediction",
        "questions_from_json_schema",
        "shortlist_choice",
        "cached_embed_fn",
    ):
        assert any(name in block for block in BLOCKS), name


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_example_runs(block: str) -> None:
    exec(compile(block, "codecs/systemone/README.md", "exec"), {})  # noqa: S102 - our own page
