"""What a start loads is not looked through again, and what is made afterwards is still let go of."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey
from ticketgate.streams.process.collector import THRESHOLD, set_up_collector

from tests.support.deployment import Deployment
from tests.support.policies import SEED_POLICY

SET_UP = "the collector is set up"
WATCHED = f"""
import gc, sys, threading, time

from ticketgate.streams.cli import main


def watch():
    while gc.get_threshold()[0] != {THRESHOLD} or not gc.get_freeze_count():
        time.sleep(0.1)
    print("{SET_UP}", file=sys.stderr, flush=True)


threading.Thread(target=watch, daemon=True).start()
main()
"""


class Knot:
    """Refers to itself, so that only the collector lets go of it."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_what_was_loaded_is_left_alone_and_what_comes_later_is_let_go_of() -> None:
    stays = Knot()

    set_up_collector()

    later = weakref.ref(Knot())
    assert gc.get_freeze_count() > 10_000
    assert not any(each is stays for each in gc.get_objects())
    gc.collect()
    assert later() is None


def test_what_is_garbage_at_the_start_is_let_go_of() -> None:
    garbage = weakref.ref(Knot())

    set_up_collector()

    assert garbage() is None


def test_garbage_is_let_go_of_without_being_asked() -> None:
    set_up_collector()
    garbage = weakref.ref(Knot())

    kept = [[number] for number in range(2 * THRESHOLD)]

    assert garbage() is None
    assert len(kept) == 2 * THRESHOLD


@pytest.mark.kafka
@pytest.mark.redis
def test_a_worker_sets_its_collector_up(kafka: Kafka, valkey: Valkey, tmp_path: Path) -> None:
    program = tmp_path / "watched.py"
    program.write_text(WATCHED)
    with Deployment(kafka.bootstrap, valkey.url, tmp_path / "gate", {"POLICY": str(SEED_POLICY)}) as gate:
        worker = gate.start_worker(program=str(program))
        worker.wait_ready()
        worker.wait_for(lambda _: SET_UP in worker.log())
