"""The workflow and the hooks before a commit: well formed, and the same checks as `make`."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github/workflows/test.yml"
HOOKS: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()


def check(file: Path, schema: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_workflow_is_valid_by_its_schema() -> None:
    checked = check(WORKFLOW, "vendor.github-workflows")

    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_workflow_with_a_fault_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test.yml").write_text(WORKFLOW.read_text().replace("runs-on:", "runs_on:"))

    assert check(tmp_path / "test.yml", "vendor.github-workflows").returncode == 1


def test_every_job_ends_in_time() -> None:
    assert check(WORKFLOW, "custom.github-workflows-require-timeout").returncode == 0


def test_the_workflow_runs_on_every_python_that_the_project_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    workflow = yaml.safe_load(WORKFLOW.read_text())

    assert project["requires-python"] == ">=3.11,<3.14"
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]


def test_hooks_come_from_the_environment_and_fetch_nothing() -> None:
    assert [repo["repo"] for repo in HOOKS["repos"]] == ["local"]
    assert {hook["language"] for hook in HOOKS["repos"][0]["hooks"]} == {"system"}
    assert all(hook["entry"].startswith(".venv/bin/") for hook in HOOKS["repos"][0]["hooks"])


def test_hooks_check_what_make_lint_checks() -> None:
    tools = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in HOOKS["repos"][0]["hooks"]}
    lint = MAKEFILE[MAKEFILE.index("\nlint:") : MAKEFILE.index("\ntypes:")]

    assert {
        line.split()[0].removeprefix("$(BIN)/") for line in lint.strip().splitlines()[1:] if "$(BIN)" in line
    } <= tools
