"""The wheel, built as a release is: it has the pages, examples and facts that its commands and errors lead to."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import BytesParser
from pathlib import Path

import pytest
from ticketgate.streams.cli.running.examples import example_files
from ticketgate.streams.cli.running.manual import PAGES

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("streams", "agents", "store", "codecs")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """Built from a copy, for setuptools leaves a `build` folder where it works."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in listed.decode().split("\0"):
        if name and (ROOT / name).exists() and not name.startswith(("tests/", "deploy/model")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    build = [
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(out),
        str(source),
    ]
    built = subprocess.run([sys.executable, *build], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (path,) = out.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def test_each_page_of_the_manual_and_each_example_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())

    pages = {f"{package.replace('.', '/')}/{name}" for package, name in PAGES.values()}
    examples = {f"ticketgate/{path.resolve().relative_to(ROOT)}" for _, path in example_files()}
    assert not pages - names
    assert len(examples - names) == 0


def test_the_wheel_says_what_it_is_and_brings_the_readme(wheel: zipfile.ZipFile) -> None:
    (name,) = [each for each in wheel.namelist() if each.endswith("/METADATA")]
    told = BytesParser().parsebytes(wheel.read(name))

    assert str(told.get_payload()).startswith("# ticketgate")
    assert "Programming Language :: Python :: 3.11" in (told.get_all("Classifier") or [])
    assert told["Keywords"]


def test_no_error_and_no_help_leads_to_a_page_that_is_not_installed() -> None:
    texts = [
        (path.relative_to(ROOT), line)
        for folder in PRODUCT
        for path in (ROOT / folder).rglob("*.py")
        for line in path.read_text().splitlines()
        # Inside quotation marks, and not a docstring's or a comment's.
        if re.search(r"""["'][^"']*(?:README|RUNBOOK|ARCHITECTURE)\.md[^"']*["']""", line)
    ]

    allowed = {"streams/cli/running/manual.py", "streams/cli/running/examples.py"}
    assert not [each for each in texts if str(each[0]) not in allowed]


def test_each_page_is_printed_by_the_manual() -> None:
    for page in ("readme", *PAGES):
        ran = subprocess.run(
            [Path(sys.executable).with_name("ticketgate"), "manual", page],
            capture_output=True,
            text=True,
            check=False,
        )

        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.startswith("# ")
