"""The faults of a chaos run: seeded, each caused for real on a process, each healed again."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ticketgate.streams.lane.transaction import REQUEST_TIMEOUT_MS
from ticketgate.streams.parts.kafka import Kafka, KafkaCluster
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Worker
from ..support.many_processes import family, kill, processes
from .network import Network

# Longer than the session of the workers, so that the group gives a frozen worker's partitions away.
FREEZE_SESSIONS = 1.6
MOST_WORKERS = 3
# A supervisor that has just been started has no process yet.
CHILD_TIMEOUT_S = 30.0


@dataclass
class Scene:
    """What faults happen to."""

    gate: Deployment
    brokers: Kafka | KafkaCluster
    valkey: Valkey
    session_s: float
    rng: random.Random
    start_worker: Callable[[], Worker]
    done: Counter[str] = field(default_factory=Counter)
    is_scaling_up: bool = True
    retired: list[Worker] = field(default_factory=list)
    """Workers that a fault ended. Any other one that ended did so by itself."""
    crashes: int = 0
    processes: int = 1
    """Of each worker that is started."""
    seen: set[int] = field(default_factory=set)
    """Ids of all processes of workers that were killed."""
    network: Network | None = None
    """What lies between the workers and broker and Redis, in a run where that fails too."""

    @property
    def running(self) -> list[Worker]:
        """The workers that live."""
        return [worker for worker in self.gate.workers if worker.process.poll() is None]

    def replace_crashed(self) -> None:
        """What a supervisor does: each worker that ended by itself gets a successor, and is counted."""
        for worker in [*self.gate.workers]:
            if worker.process.poll() is not None and worker not in self.retired:
                self.retired.append(worker)
                self.crashes += 1
                self.start_worker()


def kill_worker(scene: Scene) -> None:
    """kill -9 of a worker, and a new one in its place."""
    worker = scene.rng.choice(scene.running)
    scene.retired.append(worker)
    scene.seen |= family(worker.process.pid)
    worker.kill()
    scene.start_worker()


def kill_child(scene: Scene) -> None:
    """kill -9 of one process of several, which its supervisor replaces."""
    if (pid := _a_child(scene)) is not None:
        kill(pid)


def freeze_child(scene: Scene) -> None:
    """SIGSTOP of one process of several for longer than the session, then SIGCONT."""
    if (pid := _a_child(scene)) is None:
        return
    os.kill(pid, signal.SIGSTOP)
    time.sleep(scene.session_s * FREEZE_SESSIONS)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _a_child(scene: Scene) -> int | None:
    """A process of a worker that runs, once one does."""
    deadline = time.monotonic() + CHILD_TIMEOUT_S
    while time.monotonic() < deadline:
        if found := [pid for worker in scene.running for pid in processes(worker).values()]:
            return scene.rng.choice(found)
        time.sleep(0.1)
    return None


def freeze_worker(scene: Scene) -> None:
    """SIGSTOP for longer than the session, then SIGCONT: the zombie."""
    worker = scene.rng.choice(scene.running)
    worker.process.send_signal(signal.SIGSTOP)
    if len(scene.running) == 1:
        scene.start_worker()
    time.sleep(scene.session_s * FREEZE_SESSIONS)
    worker.process.send_signal(signal.SIGCONT)


def scale(scene: Scene) -> None:
    """1 to 3 workers, or back to 1 by SIGTERM, in turns."""
    if scene.is_scaling_up:
        while len(scene.running) < MOST_WORKERS:
            scene.start_worker()
    else:
        for worker in scene.running[1:]:
            scene.retired.append(worker)
            worker.process.terminate()
    scene.is_scaling_up = not scene.is_scaling_up


def kill_broker(scene: Scene) -> None:
    """kill -9 of a broker, and its restart on its data."""
    broker = scene.brokers if isinstance(scene.brokers, Kafka) else scene.rng.choice(scene.brokers.nodes)
    broker.kill()
    time.sleep(scene.rng.uniform(0, 2))
    broker.start()


def kill_redis(scene: Scene) -> None:
    """kill -9 of Redis, and its restart with its log."""
    scene.valkey.kill()
    time.sleep(scene.rng.uniform(0, 2))
    scene.valkey.start()


def pause_redis(scene: Scene) -> None:
    """SIGSTOP of Redis for longer than its clients wait, then SIGCONT."""
    scene.valkey.pause()
    time.sleep(scene.rng.uniform(0.5, 4))
    scene.valkey.resume()


def freeze_broker(scene: Scene) -> None:
    """SIGSTOP of a broker for longer than a request of the workers waits for it, then SIGCONT."""
    broker = scene.brokers if isinstance(scene.brokers, Kafka) else scene.rng.choice(scene.brokers.nodes)
    broker.pause()
    time.sleep(scene.rng.uniform(1.05, 1.3) * REQUEST_TIMEOUT_MS / 1000)
    broker.resume()


def silence_network(scene: Scene) -> None:
    """Nothing passes, and nobody is told."""
    _away(scene, Network.silence)


def refuse_network(scene: Scene) -> None:
    """All connections are cut, and none let in."""
    _away(scene, Network.refuse)


def _away(scene: Scene, goes: Callable[[Network], None]) -> None:
    if scene.network is None:
        raise RuntimeError("a storm without a network")
    goes(scene.network)
    time.sleep(scene.rng.uniform(1, 6))
    scene.network.heal()


PROCESSES_FAULTS: Sequence[tuple[Callable[[Scene], None], int]] = (
    (kill_worker, 4),
    (kill_child, 6),
    (freeze_worker, 2),
    (freeze_child, 5),
    (scale, 4),
    (kill_broker, 4),
    (kill_redis, 4),
    (pause_redis, 4),
)
"""Those of a run whose workers are several processes each: `kill_worker` is kill -9 of a supervisor."""

FAULTS: Sequence[tuple[Callable[[Scene], None], int]] = (
    (kill_worker, 8),
    (freeze_worker, 6),
    (scale, 5),
    (kill_broker, 4),
    (kill_redis, 4),
    (pause_redis, 5),
)
"""Each fault with how often it happens in a run; their order is the seed's."""

NETWORK_FAULTS: Sequence[tuple[Callable[[Scene], None], int]] = (
    *((fault, (times + 1) // 2) for fault, times in FAULTS),
    (freeze_broker, 3),
    (silence_network, 6),
    (refuse_network, 6),
)
"""Those of a run with a network, beside what becomes of single requests."""


def schedule(scene: Scene) -> list[Callable[[Scene], None]]:
    """All faults of a run, in a random order."""
    chosen = FAULTS if scene.network is None else NETWORK_FAULTS
    if scene.processes > 1:
        chosen = PROCESSES_FAULTS
    rng = scene.rng
    faults = [fault for fault, times in chosen for _ in range(times)]
    rng.shuffle(faults)
    return faults
