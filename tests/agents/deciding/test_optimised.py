"""The product depends on no `assert`: its tests pass under `python -O`, which drops them.

pytest rewrites the asserts of test modules into plain raises, so under -O those still test; a canary shows it.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PRODUCT = ("agents", "codecs", "store", "streams")


def run_optimised(*tests: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestConfigWarning"]
    command = [sys.executable, "-O", "-m", "pytest", *options, *map(str, tests)]
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )


def test_the_seeds_tests_pass_without_asserts() -> None:
    done = run_optimised(HERE / "test_seed.py", HERE.parent / "policy" / "test_rules.py", folder=ROOT)

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_a_failing_test_fails_under_the_same_command(tmp_path: Path) -> None:
    canary = tmp_path / "test_canary.py"
    canary.write_text("def test_canary():\n    assert __debug__\n")

    done = run_optimised(canary, folder=tmp_path)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout


@pytest.mark.parametrize("package", PRODUCT)
def test_no_module_of_the_product_asserts(package: str) -> None:
    asserting = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]

    assert asserting == []
