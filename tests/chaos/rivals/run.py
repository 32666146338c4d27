"""One contender under the storm: the chaos run's tickets, broker, faults and order of faults, judged by coordinates.

Promise: it ends by itself. What has not come within the settle time is counted as undecided, not waited for.
A worker that ends by itself is replaced, as a supervisor would, and counted.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from aiokafka.errors import KafkaError
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from .. import network as networks
from ..faults import Scene
from ..run import SESSION_S, failing, storm, worker_settings
from ..torn import torn_transactions
from ..workload import workload
from .books import Books, judge
from .contenders import Contender, RivalDeployment
from .observer import Observer, Progress

START_TIMEOUT_S = 120.0
SETTLE_TIMEOUT_S = 240.0
# Longer than the longest time-out in play (60 s: a transaction of aiokafka's, Faust's): where nothing has moved for
# so long, nothing will.
STILL_S = 90.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One contender's books. `restarts`: workers that ended by themselves and were replaced. `held_back`: offsets that
    an open transaction still hid from readers at the end. `torn`: transactions that the broker tore (see torn.py).
    """

    contender: str
    books: Books
    faults: dict[str, int]
    restarts: int
    held_back: int
    torn: int
    settle_s: float
    logs: str


def run(
    contender: Contender,
    *,
    seed: int,
    tickets: int,
    logs: Path,
    is_calm: bool = False,
    has_network: bool = False,
) -> Outcome:
    """One run; the logs of workers and broker are kept in `logs`. Calm, no fault happens: the control. With a network,
    that fails too, until nothing moves any more."""
    load = workload(seed, tickets)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-rivals-")))
        answers = folder / "answers.json"
        answers.write_text(json.dumps(load.answers))
        kafka = Kafka(data=folder / "kafka")
        # A rival has no Redis: that one's faults fall on a server that it does not use, and only time passes.
        valkey = stack.enter_context(Valkey(data=folder / "valkey"))
        network = networks.before(stack, kafka, valkey) if has_network else None
        stack.enter_context(kafka)
        gate = stack.enter_context(
            RivalDeployment(
                kafka.bootstrap,
                valkey.url,
                folder / "workers",
                worker_settings(answers, brokers=1) | (network.settings if network else {}),
                contender=contender,
            )
        )
        observer = Observer(
            kafka.bootstrap, gate.name, gate.topic("tickets"), [gate.topic("dispatch"), gate.topic("review")]
        )
        scene = Scene(gate, kafka, valkey, SESSION_S, random.Random(seed), gate.start_worker, network=network)
        scene.start_worker()
        _wait_for(observer.is_group_stable, START_TIMEOUT_S, what=f"{contender.name} in its group")
        with ExitStack() as faults:
            if is_calm:
                gate.send(load.records)
            else:
                faults.enter_context(failing(scene))
                storm(scene, load, is_supervised=True)
            began = time.monotonic()
            progress = _settle(scene, observer)
            settle_s = time.monotonic() - began
        books = judge(
            observer.inputs(),
            observer.emitted(),
            progress.committed,
            suppresses_repeats=contender.script is None,
        )
        shutil.copytree(gate.folder, logs / contender.name, ignore=shutil.ignore_patterns("state-*"))
        shutil.copy(kafka.log_file, logs / contender.name)
        torn = torn_transactions(kafka.log_file)
    return Outcome(
        contender=contender.name,
        books=books,
        faults=dict(scene.done),
        restarts=scene.crashes,
        held_back=progress.written - progress.visible,
        torn=torn,
        settle_s=round(settle_s, 1),
        logs=str(logs / contender.name),
    )


def _settle(scene: Scene, observer: Observer) -> Progress:
    """Wait until everything is committed and readable, nothing moves any more, or the time is up."""
    deadline = time.monotonic() + SETTLE_TIMEOUT_S
    seen: Progress | None = None
    still_since = time.monotonic()
    while True:
        scene.replace_crashed()
        if not scene.running:
            scene.start_worker()
        progress = observer.progress()
        if progress != seen:
            seen, still_since = progress, time.monotonic()
        if progress.is_settled:
            return progress
        if time.monotonic() > min(deadline, still_since + STILL_S):
            print(f"not settled: {progress}", file=sys.stderr, flush=True)
            return progress
        time.sleep(1)


def _wait_for(condition: Callable[[], bool], timeout_s: float, *, what: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not _holds(condition):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(0.5)


def _holds(condition: Callable[[], bool]) -> bool:
    try:
        return condition()
    except KafkaError:
        return False  # the coordinator is not there yet
