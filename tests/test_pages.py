"""Every block of every page is typed or read by a test, or listed with the reason why not.

README's own: tests/test_readme.py. Those of the other pages: tests/test_pages_live.py, which is long.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess

import click
import pytest
from ticketgate.streams.cli import cli

from tests.support.pages import (
    HELD,
    LISTED,
    LISTED_KINDS,
    ROOT,
    TYPED_ELSEWHERE,
    WITH_WORKERS,
    WITHOUT_WORKERS,
    Block,
    blocks,
    reason_of,
    typed,
)

BLOCKS = blocks()
LIVE = {each.line for each in (*WITH_WORKERS, *WITHOUT_WORKERS)}


def held_by(block: Block) -> str | None:
    table = TYPED_ELSEWHERE if block.is_typed else HELD
    return next(
        (
            by
            for (page, begins), by in table.items()
            if page == block.page and block.begins.startswith(begins)
        ),
        None,
    )


LINES = [
    (block.page, line) for block in BLOCKS if block.is_typed and not held_by(block) for line in typed(block)
]


def test_every_line_that_a_page_types_is_typed_or_listed() -> None:
    assert len(LINES) > 50
    assert not [(page, line) for page, line in LINES if line not in LIVE and reason_of(line) is None]
    assert not [(page, line) for page, line in LINES if line in LIVE and line in LISTED]


def test_every_other_block_is_read_by_a_test_or_named() -> None:
    assert not [(each.page, each.begins) for each in BLOCKS if not each.is_typed and held_by(each) is None]


def test_the_tables_name_nothing_that_is_no_longer_there() -> None:
    shown = {line for _, line in LINES}
    places = {(block.page, block.begins) for block in BLOCKS}

    assert not LIVE - shown - {"ticketgate consume dispatch > dispatched.jsonl"}
    assert not LISTED.keys() - shown
    assert not [each for each in LISTED_KINDS if not any(line.startswith(each) for line in shown)]
    for page, begins in (*HELD, *TYPED_ELSEWHERE):
        assert any(page == each and first.startswith(begins) for each, first in places), (page, begins)


def test_the_tests_that_the_tables_name_are_there() -> None:
    for why in (*LISTED.values(), *LISTED_KINDS.values(), *HELD.values(), *TYPED_ELSEWHERE.values()):
        for path, name in re.findall(r"(tests/[\w/]+(?:\.py)?)(?:::(\w*))?", why):
            assert (ROOT / path).exists(), why
            assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), why


@pytest.mark.parametrize(("page", "line"), [each for each in LINES if each[1] not in LIVE])
def test_what_is_listed_could_be_typed(page: str, line: str) -> None:
    parsed = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True, check=False)

    assert parsed.returncode == 0, parsed.stderr
    words = shlex.split(line.split("&&")[-1])
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), line
    elif words[0] == "ticketgate":
        knows(words[1:])
    elif "-m" in words and words[words.index("-m") + 1].startswith("tests."):
        module = importlib.util.find_spec(words[words.index("-m") + 1])
        assert module is not None, line
        for option in (word for word in words if word.startswith("--")):
            source = ROOT / words[words.index("-m") + 1].replace(".", "/")
            files = [source.with_suffix(".py"), *source.glob("*.py")]
            assert any(f'"{option}"' in each.read_text() for each in files if each.exists()), (page, option)
    for path in (word for word in words if re.match(r"(tests|deploy|streams)/[\w/.-]+\.\w+$", word)):
        assert (ROOT / path).exists() or path == "deploy/model/metrics.json", path


def knows(words: list[str]) -> None:
    """The command is there, and has each option that is given to it."""
    command: click.Command = cli
    context = click.Context(cli, info_name="ticketgate")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
    parser = command.make_parser(click.Context(command, info_name=command.name))
    parser.parse_args(list(words))
