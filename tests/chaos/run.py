"""One chaos run: tickets stream in while faults happen, then everything heals, and the books are closed.

`python -m tests.chaos.run --seed 1 --tickets 20000 --brokers 1 --network` prints a report and exits 1 if a ticket is
missing or was emitted twice, by `ticketgate audit` and by a reader of its own that uses none of ticketgate's code. With
`--settle 0.1` people settle a tenth of what lies in review meanwhile (settlers.py), each of which must have one effect.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Thread

from aiokafka import AIOKafkaProducer, ConsumerRecord
from ticketgate.streams.parts.kafka import Kafka, KafkaCluster
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Sent
from ..support.many_processes import family, wait_gone
from ..support.policies import SEED_POLICY
from . import network as networks
from .faults import Scene, schedule
from .settlers import Settlers, SettlingReport
from .settlers import books as settling_books
from .workload import Workload, content_of, workload

SESSION_S = 3.0
CHUNK = 100
# The sending lasts about as long as the faults.
SENDING_S = 90.0
# After the last fault everything heals within seconds; a partition that is stuck does not.
SETTLE_TIMEOUT_S = 180.0
# Of a network that goes on failing until all is decided, some of its requests wait for their time-out.
NETWORK_SETTLE_TIMEOUT_S = 900.0

# What review and dead-letter say of a record on which workers ended or hung.
BLAME = (b"this record alone ended", b"the scorer hung on this ticket", b"ends_worker")


@dataclass(frozen=True)
class Report:
    """What one run came to."""

    seed: int
    brokers: int
    faults: dict[str, int]
    requests: dict[str, int]
    """What the network did to how many requests."""
    records_in: int
    dispatched: int
    review: int
    dead_letter: int
    replayed: int
    duplicates: int
    missing: int
    duplicates_by_audit: int
    missing_by_audit: int
    restarts: int
    """Processes that the supervisors of the last workers started again."""
    blamed: int
    """Records that were given up because workers ended on them; no fault of a run is a record's."""
    settling: SettlingReport | None
    """What came of the settlements, in a run that has such."""
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether nothing was emitted twice and nothing is missing, by both readers, and no record was blamed."""
        return not (
            self.duplicates
            or self.missing
            or self.duplicates_by_audit
            or self.missing_by_audit
            or self.blamed
            or (self.settling is not None and not self.settling.is_clean)
        )


def run(
    *,
    seed: int,
    tickets: int,
    brokers: int,
    has_network: bool = False,
    settled_share: float = 0.0,
    processes: int = 1,
) -> Report:
    """One run, through a network that fails if it has one, of workers of so many processes each, and with people who
    settle that share of what lies in review. Raises AssertionError if it does not settle, or a killed worker leaves a
    process behind."""
    rng = random.Random(seed)
    load = workload(seed, tickets)
    started = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-chaos-")))
        answers = folder / "answers.json"
        answers.write_text(json.dumps(load.answers))
        kafka = (
            Kafka(data=folder / "kafka")
            if brokers == 1
            else KafkaCluster(nodes=brokers, data=folder / "kafka")
        )
        valkey = stack.enter_context(Valkey(data=folder / "valkey"))
        network = networks.before(stack, kafka, valkey) if has_network else None
        stack.enter_context(kafka)
        settings = worker_settings(answers, brokers=brokers) | (network.settings if network else {})
        if settled_share:
            settings |= Settlers.settings(folder)
        if processes > 1:
            settings["PROCESSES"] = str(processes)
        gate = stack.enter_context(Deployment(kafka.bootstrap, valkey.url, folder / "workers", settings))
        scene = Scene(
            gate, kafka, valkey, SESSION_S, rng, gate.start_worker, processes=processes, network=network
        )
        gate.start_worker().wait_ready(120)
        people = (
            Settlers(gate, folder, settled_share, random.Random(f"{seed} people")) if settled_share else None
        )
        if people is not None:
            people.begin()
        # A worker that starts while the broker is away ends with one line, and its supervisor starts it again.
        with failing(scene):
            storm(scene, load, is_supervised=True)
            settle(scene)
            if people is not None:
                people.end()
                settle(scene, topic="settlements", group=f"{gate.name}.settle")
        report = books(scene, load, people, seed=seed, brokers=brokers, seconds=time.monotonic() - started)
        if not report.is_clean:
            # What is only late is there by then; what is lost is named.
            time.sleep(20)
            print(gate.run("audit", "--json", timeout_s=180).stdout, file=sys.stderr)
            keep = Path(tempfile.mkdtemp(prefix=f"ticketgate-chaos-seed-{seed}-"))
            for worker in gate.workers:
                (keep / worker.log_file.name).write_bytes(worker.log_file.read_bytes())
            print(f"logs kept in {keep}")
        leave_nothing(scene)
        return report


def leave_nothing(scene: Scene) -> None:
    """Kill what still runs; raises AssertionError unless all that killed workers had started ends by itself."""
    for worker in scene.running:
        scene.seen |= family(worker.process.pid)
        worker.kill()
    wait_gone(scene.seen)


def worker_settings(answers: Path, *, brokers: int) -> dict[str, str]:
    """The settings of a run's workers over the defaults: time-outs that fit its faults, and whole output records."""
    return {
        "POLICY": str(SEED_POLICY),
        "SCORER": f"fixed:{answers}",
        "SESSION_TIMEOUT": f"{SESSION_S}s",
        "REDIS_TIMEOUT": "2s",
        "BATCH_SIZE": "16",
        "REPLICATION": str(brokers),
        "DISPATCH_WITH_TICKET": "true",
        "COMMIT_TIMEOUT": "10s",
        "TRANSACTION_TIMEOUT": "20s",
    }


def storm(scene: Scene, load: Workload, *, is_supervised: bool = False) -> None:
    """Send the tickets while the faults happen."""
    send_while(scene, list(load.chunks(CHUNK)), topic="tickets", is_supervised=is_supervised)


def send_while(
    scene: Scene, chunks: Sequence[Sequence[Sent]], *, topic: str, is_supervised: bool = False
) -> None:
    """Send in chunks while the faults happen, spread over the run; supervised, workers that crash are replaced."""
    sending: Future[None] = Future()
    # A daemon: where a fault fails for want of a broker, the run ends and does not wait for a producer that cannot.
    Thread(target=_send_all, args=(sending, scene, chunks, topic), name="send", daemon=True).start()
    for fault in schedule(scene):
        time.sleep(scene.rng.uniform(0.3, 1.5))
        if is_supervised:
            scene.replace_crashed()
        fault(scene)
        scene.done[fault.__name__] += 1
        print(f"{time.strftime('%H:%M:%S')} {fault.__name__}", file=sys.stderr, flush=True)
    sending.result(timeout=300)


def _send_all(sent: Future[None], scene: Scene, chunks: Sequence[Sequence[Sent]], topic: str) -> None:
    try:
        sent.set_result(asyncio.run(send_all(scene, chunks, scene.gate.topic(topic))))
    except BaseException as err:  # noqa: BLE001 - raised where the result is asked for
        sent.set_exception(err)


@contextmanager
def failing(scene: Scene) -> Iterator[None]:
    """Where there is a network, requests have faults."""
    if scene.network is not None:
        scene.network.begin(scene.rng.randrange(2**32))
    try:
        yield
    finally:
        if scene.network is not None:
            scene.network.end()


async def send_all(scene: Scene, chunks: Sequence[Sequence[Sent]], topic: str) -> None:
    """A producer that outlives the broker: what it cannot know to be sent it sends again, as upstreams do."""
    pause_s = SENDING_S / max(1, len(chunks))
    async with AIOKafkaProducer(bootstrap_servers=scene.gate.bootstrap, enable_idempotence=True) as producer:
        for chunk in chunks:
            while True:
                sent = [await producer.send(topic, each.value, key=each.key) for each in chunk]
                if not any(
                    isinstance(each, Exception)
                    for each in await asyncio.gather(*sent, return_exceptions=True)
                ):
                    break
            await asyncio.sleep(pause_s)


def settle(scene: Scene, *, topic: str = "tickets", group: str | None = None) -> None:
    """Wait until every partition is committed to its end."""
    if not scene.running:
        scene.start_worker()
    # Since it last came nearer: on a machine that is busy with other things much takes long, and is not stuck.
    patience_s = SETTLE_TIMEOUT_S if scene.network is None else NETWORK_SETTLE_TIMEOUT_S
    least, deadline = sys.maxsize, time.monotonic() + patience_s
    while (lag := scene.gate.lag(topic, group=group)) != 0:
        if lag < least:
            print(f"{time.strftime('%H:%M:%S')} {lag} records left of {topic}", file=sys.stderr, flush=True)
            least, deadline = lag, time.monotonic() + patience_s
        if time.monotonic() > deadline:
            states = {worker.log_file.name: worker.ready() for worker in scene.running}
            raise AssertionError(
                f"{lag} records of {topic} are not taken: {states}\n{scene.running[0].log()[-4000:]}"
            )
        if scene.network is not None:
            scene.replace_crashed()
        time.sleep(0.5)


def books(
    scene: Scene, load: Workload, people: Settlers | None, *, seed: int, brokers: int, seconds: float
) -> Report:
    """What came of a run in which all is taken."""
    gate = scene.gate
    dead_letters = gate.committed("dead-letter")
    # A decision by a person is no second one of the ticket's: settling_books has those.
    outputs = [each for each in gate.committed("dispatch", "review") if not _is_by_a_person(each)]
    found = Counter(content_of(record.value or b"") for record in outputs)
    duplicates, missing = sum(count - 1 for count in found.values()), load.contents - found.keys()
    print(f"duplicates {duplicates}, missing {len(missing)}", file=sys.stderr, flush=True)
    audit = json.loads(gate.run("audit", "--json", timeout_s=180).stdout)
    return Report(
        seed=seed,
        brokers=brokers,
        faults=dict(scene.done),
        requests=dict(scene.network.done) if scene.network is not None else {},
        records_in=audit["records"],
        dispatched=len(gate.committed("dispatch")),
        review=len(gate.committed("review")),
        dead_letter=len(dead_letters),
        replayed=audit["replayed"],
        duplicates=duplicates,
        missing=len(missing),
        duplicates_by_audit=audit["duplicates"],
        missing_by_audit=audit["missing"],
        restarts=sum(int(worker.metric("ticketgate_process_restarts_total")) for worker in scene.running),
        blamed=sum(map(_is_blamed, (*outputs, *dead_letters))),
        settling=None if people is None else settling_books(people),
        seconds=round(seconds, 1),
    )


def _is_by_a_person(record: ConsumerRecord[bytes, bytes]) -> bool:
    return "settled" in json.loads(record.value or b"")


def _is_blamed(record: ConsumerRecord[bytes, bytes]) -> bool:
    told = (record.value or b"", *(value or b"" for _, value in record.headers))
    return any(word in each for word in BLAME for each in told)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tickets", type=int, default=20_000)
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--network", action="store_true", help="through a network that fails")
    parser.add_argument("--settle", type=float, default=0.0, help="the share of review that people settle")
    parser.add_argument("--processes", type=int, default=1, help="of each worker")
    options = parser.parse_args()
    # A producer that lives through a broker's death has much to say about it.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    report = run(
        seed=options.seed,
        tickets=options.tickets,
        brokers=options.brokers,
        has_network=options.network,
        settled_share=options.settle,
        processes=options.processes,
    )
    print(json.dumps(asdict(report)))
    sys.exit(0 if report.is_clean else 1)


if __name__ == "__main__":
    main()
