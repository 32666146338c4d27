"""The house's rules that no import contract can say: sizes, texts that point somewhere, tests beside their rooms."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("streams", "agents", "store", "codecs")
MOST_LINES = 300
MOST_MODULES = 20
# What a reader of this repository alone cannot look up.
ELSEWHERE = re.compile(
    r"\bDESIGN\b|\b[Ii]ssues? \d|\bthe seeds?(?='|\b)|protocol notes|design notes|\.\./shared|/work/"
)
# Measuring a model and a data set: what they read lies outside, and they say so.
MAY_NAME_DATA = ("deploy/model/", "tests/bench/")
MAP = "ARCHITECTURE.md"
PAGES = (MAP, "CONTRIBUTING.md")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for path in listed.stdout.splitlines() if (ROOT / path).is_file()]


FILES = tracked()
PYTHON = [path for path in FILES if path.endswith(".py") and path.split("/")[0] in PRODUCT]
# What a reader copies and runs: scripts, and no room.
EXAMPLES = "streams/examples"
PACKAGES = sorted({str(Path(path).parent) for path in PYTHON} - {EXAMPLES})


def test_a_file_of_the_product_can_be_read_in_one_go() -> None:
    lengths = {path: len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in PYTHON}

    assert not {path: length for path, length in lengths.items() if length > MOST_LINES}


@pytest.mark.parametrize("folder", PACKAGES)
def test_a_room_holds_what_one_can_keep_in_mind(folder: str) -> None:
    modules = [
        path for path in PYTHON if str(Path(path).parent) == folder and not path.endswith("__init__.py")
    ]

    assert len(modules) <= MOST_MODULES


@pytest.mark.parametrize("folder", PACKAGES)
def test_a_room_says_what_lives_there_and_what_does_not(folder: str) -> None:
    said = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text(encoding="utf-8")))

    assert said
    assert len(said.splitlines()) <= 10
    if folder not in PRODUCT and not folder.startswith("agents/workbench"):
        assert re.search(r"[Nn]ot here:|beside|after, in", said), said


def loose(path: str) -> list[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if ELSEWHERE.search(line)]


def test_nothing_points_out_of_the_repository() -> None:
    texts = [
        path
        for path in FILES
        if path.endswith((".py", ".md", ".toml", ".json", "Makefile"))
        and path.split("/")[0] in (*PRODUCT, "deploy", "README.md", *PAGES, "Makefile", "pyproject.toml")
        and not path.startswith(MAY_NAME_DATA)
    ]

    assert not {path: found for path in texts if (found := loose(path))}


def missing(path: str, names: set[str]) -> list[str]:
    """What a file names and is not there, by file name or by path."""
    text = (ROOT / path).read_text(encoding="utf-8")
    paths = re.findall(r"(?<![\w/.-])((?:streams|agents|store|codecs|tests|deploy)/[\w./-]*\w)", text)
    found = [name for name in re.findall(r"(?<![\w/.*<-])(\w+\.py)\b", text) if name not in names]
    return found + [named for named in paths if not (ROOT / named).exists()]


def test_a_file_that_a_text_names_is_there() -> None:
    names = {Path(each).name for each in FILES}

    assert not {path: found for path in PYTHON if (found := missing(path, names))}


def anchors(page: str) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_in_the_map_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]

    wrong = []
    for link in links:
        path, _, anchor = link.partition("#")
        if path and not (ROOT / path).exists():
            wrong.append(link)
        if anchor and anchor not in anchors(path or page):
            wrong.append(link)
    # Files and folders in code marks are links for a reader with a tree before them.
    wrong += [
        named
        for named in re.findall(r"`((?:streams|agents|store|codecs|tests|deploy)/[\w./-]+)`", text)
        if not (ROOT / named).exists()
    ]

    assert links
    assert not wrong


def test_pointers_into_the_map_lead_somewhere() -> None:
    pointers = {
        (path, anchor)
        for path in FILES
        if path.endswith((".py", ".md"))
        for anchor in re.findall(r"ARCHITECTURE\.md#([\w-]+\w)", (ROOT / path).read_text(encoding="utf-8"))
    }

    assert not {(path, anchor) for path, anchor in pointers if anchor not in anchors(MAP)}


def test_the_walk_of_a_ticket_opens_few_files_and_each_once() -> None:
    text = (ROOT / MAP).read_text(encoding="utf-8")
    walk = text[text.index("## A ticket") : text.index("## A proposal")]

    files = re.findall(r"(?:\]\(|`)((?:streams|agents|store|codecs)/[\w/]+\.py)[)`]", walk)

    assert len(files) <= 25
    assert len(files) == len(set(files)), sorted({file for file in files if files.count(file) > 1})


@pytest.mark.parametrize(
    "folder",
    sorted(
        {
            str(Path(path).parent)
            for path in FILES
            if path.startswith(tuple(f"tests/{top}/" for top in PRODUCT)) and Path(path).match("test_*.py")
        }
    ),
)
def test_tests_stand_beside_the_rooms_they_try(folder: str) -> None:
    room = folder.removeprefix("tests/")

    # The interleaving models try the rooms that they stand in.
    assert room in PACKAGES or room.removesuffix("/model") in PACKAGES
