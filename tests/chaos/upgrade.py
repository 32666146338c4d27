"""One rolling upgrade under load, forward, back and forward again: workers of two versions in one group.

`python -m tests.chaos.upgrade --seed 1` prints a report and exits 1 if a ticket is missing or was emitted twice. The
version before is taken out of the repository's history; a clone without it cannot run this.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import BEFORE_SETTLEMENTS, Deployment, Worker
from .faults import Scene
from .run import CHUNK, SESSION_S, Report, books, send_all, settle, worker_settings
from .workload import workload

# The last version whose workers are members by their lanes, and keep neither topics' ids nor who is under way in Redis.
BEFORE = "56bc511c35c20889823a9215a9bef671587b866a"
FOLDERS = ("codecs", "store", "agents", "streams")
ROOT = Path(__file__).parents[2]
WORKERS = 3
PARTITIONS = "6"

PROGRAM = """\
from ticketgate.streams.cli import main

main()
"""


class HistoryMissing(Exception):
    """The version before is not in this clone."""


@dataclass(frozen=True)
class Version:
    """A program that runs `ticketgate`, and the folder that stands before all others on its path, if any."""

    name: str
    program: Path
    path: Path | None

    def start(self, gate: Deployment) -> Worker:
        """One more worker of this version."""
        with _python_path(self.path):
            return gate.start_worker(program=str(self.program))


@contextmanager
def _python_path(path: Path | None) -> Iterator[None]:
    before = os.environ.get("PYTHONPATH")
    try:
        if path is not None:
            os.environ["PYTHONPATH"] = str(path)
        yield
    finally:
        if path is not None:
            del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before


def version_before(folder: Path) -> Version:
    """The version before, laid out as the package `ticketgate` below `folder`. Raises `HistoryMissing`."""
    git = shutil.which("git")
    if git is None:
        raise HistoryMissing("no git here")
    package = folder / "before" / "ticketgate"
    package.mkdir(parents=True)
    archive = folder / "before.tar"
    done = subprocess.run(
        [git, "-C", ROOT, "archive", "--output", archive, BEFORE, *FOLDERS],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise HistoryMissing(f"this clone has no commit {BEFORE[:7]} ({done.stderr.strip()})")
    shutil.unpack_archive(archive, package, filter="data")
    # A package of its own: as a part of a namespace it would be mixed with the one that is installed.
    (package / "__init__.py").touch()
    return Version("before", _program(folder / "before"), package.parent)


def version_here(folder: Path) -> Version:
    """The version in the working tree, as it is installed."""
    (folder / "here").mkdir()
    return Version("here", _program(folder / "here"), None)


def _program(folder: Path) -> Path:
    program = folder / "run_worker.py"
    program.write_text(PROGRAM)
    return program


class Fleet:
    """Workers at work, replaced one after the other: by SIGTERM, or by a kill in the middle of their work."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._running: list[Worker] = []

    def fill(self, version: Version) -> None:
        """Start all."""
        self._running = [version.start(self._scene.gate) for _ in range(WORKERS)]
        self._wait()

    def replace_all(self, version: Version) -> None:
        """Replace one after the other; both versions work side by side in between."""
        scene = self._scene
        for place, old in enumerate(self._running):
            self._running[place] = version.start(scene.gate)
            is_killed = scene.rng.random() < 0.5
            if is_killed:
                time.sleep(scene.rng.uniform(0.2, 1.5))
                old.kill()
            self._wait()
            if not is_killed:
                code = old.stop()
                assert code == 0, f"exit {code}\n{old.log()[-3000:]}"
                self._wait()
            what = f"{'kill' if is_killed else 'stop'} for {version.name}"
            scene.done[what] += 1
            print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)

    def _wait(self) -> None:
        for each in self._running:
            each.wait_for(lambda state: state.get("ready") is True and state["lanes"], 120)


def run(*, seed: int, tickets: int) -> Report:
    """One run. Raises `HistoryMissing`, and AssertionError if it does not settle."""
    rng = random.Random(seed)
    load = workload(seed, tickets)
    started = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-upgrade-")))
        before, here = version_before(folder), version_here(folder)
        answers = folder / "answers.json"
        answers.write_text(json.dumps(load.answers))
        kafka = stack.enter_context(Kafka(data=folder / "kafka"))
        valkey = stack.enter_context(Valkey(data=folder / "valkey"))
        settings = {**worker_settings(answers, brokers=1), "PARTITIONS": PARTITIONS}
        gate = stack.enter_context(
            Deployment(kafka.bootstrap, valkey.url, folder / "workers", settings, topics=BEFORE_SETTLEMENTS)
        )
        scene = Scene(gate, kafka, valkey, SESSION_S, rng, lambda: here.start(gate))
        fleet = Fleet(scene)
        fleet.fill(before)
        pool = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="send"))
        chunks = list(load.chunks(CHUNK))
        sending = pool.submit(lambda: asyncio.run(send_all(scene, chunks, gate.topic("tickets"))))
        for version in (here, before, here):
            fleet.replace_all(version)
        sending.result(timeout=300)
        settle(scene)
        return books(scene, load, None, seed=seed, brokers=1, seconds=time.monotonic() - started)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tickets", type=int, default=10_000)
    options = parser.parse_args()
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    report = run(seed=options.seed, tickets=options.tickets)
    print(json.dumps(asdict(report)))
    sys.exit(0 if report.is_clean else 1)


if __name__ == "__main__":
    main()
