"""A deployment of ticketgate for one test: topics, namespace and group of its own, workers in processes of their own.

What is read back is read by plain aiokafka, with none of ticketgate's code.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from ticketgate.streams.parts.ports import free_port

COMMAND = Path(sys.executable).with_name("ticketgate")
Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class Sent:
    """One record for the input topic."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[Header] = ()


def ticket(ticket_id: str, state: object = "My card was charged twice.", **fields: object) -> Sent:
    """A ticket under its id as key."""
    return Sent(json.dumps({"id": ticket_id, "state": state, **fields}).encode(), key=ticket_id.encode())


class Worker:
    """One worker process, its log and its web port."""

    def __init__(
        self,
        environment: Mapping[str, str],
        log_file: Path,
        command: Sequence[str | Path],
        *,
        port: int | None = None,
    ) -> None:
        self.port = port or free_port()
        self.log_file = log_file
        with log_file.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, "worker"],
                env={**environment, "TICKETGATE_WEB_PORT": str(self.port)},
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def get(self, path: str) -> tuple[int, str]:
        """A page of the web port; status 0 while nothing answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as err:
            return err.code, err.read().decode()
        except OSError:
            return 0, ""

    def ready(self) -> dict[str, Any]:
        """/readyz as an object; empty while nothing answers."""
        _, body = self.get("/readyz")
        found: dict[str, Any] = json.loads(body or "{}")
        return found

    def wait_ready(self, timeout_s: float = 60) -> dict[str, Any]:
        """Wait until the worker is ready; fails with its log."""
        return self.wait_for(lambda state: state.get("ready") is True, timeout_s)

    def wait_for(self, condition: Any, timeout_s: float = 60) -> dict[str, Any]:
        """Wait until /readyz fulfils a condition; fails with what was seen and the log."""
        deadline = time.monotonic() + timeout_s
        while not condition(seen := self.ready()):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise AssertionError(f"worker: {seen}, exit {self.process.poll()}\n{self.log()}")
            time.sleep(0.05)
        return seen

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over the labels that are not given."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        lines = (line.rsplit(" ", 1) for line in self.get("/metrics")[1].splitlines())
        return sum(
            float(value)
            for left, value in lines
            if left.split("{")[0] == name and all(label in left for label in wanted)
        )

    def wait_for_metric(self, wanted: float, name: str, **labels: str) -> None:
        """Wait until `metric` is so: a batch is counted after what it wrote can be read."""
        self.wait_for(lambda _: self.metric(name, **labels) == wanted)

    def log(self) -> str:
        """What the worker logged."""
        return self.log_file.read_text()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self, timeout_s: float = 40) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        return self.process.wait(timeout_s)


# Where tickets end.
OUTPUTS = ("dispatch", "review", "dead-letter")
# A version that does not know a topic refuses its name as an unknown setting.
BEFORE_SETTLEMENTS = (*OUTPUTS, "proposals", "repairs", "receipts")
TOPICS = (*BEFORE_SETTLEMENTS, "settlements", "settled", "policies")


@dataclass
class Deployment:
    """One namespace on a given broker and Redis. `settings` go over the defaults, without the prefix. `topics`, beside
    tickets, have names of their own here."""

    bootstrap: str
    redis_url: str
    folder: Path
    settings: Mapping[str, str]
    name: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")
    workers: list[Worker] = field(default_factory=list)
    topics: Sequence[str] = TOPICS

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a worker or a command."""
        names = {f"TOPIC_{topic.upper().replace('-', '_')}": self.topic(topic) for topic in self.topics}
        settings = {
            "KAFKA": self.bootstrap,
            "REDIS": self.redis_url,
            "NAMESPACE": self.name,
            "GROUP": self.name,
            "TOPIC_TICKETS": self.topic("tickets"),
            **names,
            **self.settings,
        }
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TICKETGATE_")}
        return {**clean, **{f"TICKETGATE_{name}": value for name, value in settings.items()}}

    def topic(self, name: str) -> str:
        """A topic's name in this deployment."""
        return f"{self.name}-{name}"

    def run(self, *arguments: str, timeout_s: float = 60) -> subprocess.CompletedProcess[str]:
        """A command of ticketgate in this deployment."""
        return subprocess.run(
            [COMMAND, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def create_topics(self) -> None:
        """As a user would."""
        done = self.run("topics", "create")
        assert done.returncode == 0, done.stderr

    def start_worker(
        self, *, program: str | None = None, installed: str = str(COMMAND), **settings: str
    ) -> Worker:
        """Start a worker, another checkout's by its `installed` command, or another `program` in its place; it is ended
        with the deployment."""
        command = [installed] if program is None else [sys.executable, program]
        environment = {
            **self.environment,
            **{f"TICKETGATE_{name}": value for name, value in settings.items()},
        }
        worker = Worker(environment, self.folder / f"worker-{len(self.workers)}.log", command)
        self.workers.append(worker)
        return worker

    def send(self, records: Iterable[Sent], *, topic: str = "tickets") -> list[tuple[int, int]]:
        """Produce records in order; the partition and offset of each."""
        return asyncio.run(_send(self.bootstrap, self.topic(topic), list(records)))

    def committed(self, *topics: str) -> list[ConsumerRecord[bytes, bytes]]:
        """What a read_committed reader sees in the topics now, partition by partition."""
        return asyncio.run(_read(self.bootstrap, [self.topic(topic) for topic in topics]))

    def lag(self, topic: str = "tickets", *, group: str | None = None) -> int:
        """How many records of an input lie between its group's committed offsets and the topic's end."""
        group = group or self.settings.get("GROUP", self.name)
        return asyncio.run(_lag(self.bootstrap, self.topic(topic), group))

    def wait_for_records(
        self, count: int, *topics: str, timeout_s: float = 90
    ) -> list[ConsumerRecord[bytes, bytes]]:
        """Wait until the topics hold `count` committed records; more of them fail the caller's own check."""
        deadline = time.monotonic() + timeout_s
        while len(records := self.committed(*topics)) < count:
            if time.monotonic() > deadline:
                logs = "\n".join(worker.log()[-3000:] for worker in self.workers)
                raise AssertionError(f"{len(records)} of {count} records in {topics}\n{logs}")
            time.sleep(0.2)
        return records

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.create_topics()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers:
            worker.kill()


async def _send(bootstrap: str, topic: str, records: Sequence[Sent]) -> list[tuple[int, int]]:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", linger_ms=5) as producer:
        # One after the other into the producer's queue: order within a partition is the order of the list.
        sent = [
            await producer.send(topic, record.value, key=record.key, headers=list(record.headers))
            for record in records
        ]
        return [(place.partition, place.offset) for place in await asyncio.gather(*sent)]


async def _read(bootstrap: str, topics: Sequence[str]) -> list[ConsumerRecord[bytes, bytes]]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level="read_committed", enable_auto_commit=False
    )
    async with consumer:
        found: list[ConsumerRecord[bytes, bytes]] = []
        partitions = [
            TopicPartition(topic, partition)
            for topic in topics
            for partition in sorted(await partitions_of(consumer, topic))
        ]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        for partition in partitions:
            consumer.seek(partition, 0)
        for partition in partitions:
            while await consumer.position(partition) < ends[partition]:
                found += (await consumer.getmany(partition, timeout_ms=1_000)).get(partition, [])
        return found


async def _lag(bootstrap: str, topic: str, group: str) -> int:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    async with consumer:
        partitions = [TopicPartition(topic, partition) for partition in await partitions_of(consumer, topic)]
        # Assigned, not subscribed: this reader must not join the workers' group.
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        behind = 0
        for partition, end in ends.items():
            committed = await consumer.committed(partition) or 0
            consumer.seek(partition, committed)
            # Records, and not offsets: behind the last record of a transaction lies its marker, which is no record.
            while await consumer.position(partition) < end:
                found = await consumer.getmany(partition, timeout_ms=200)
                behind += sum(len(records) for records in found.values())
        return behind


async def partitions_of(consumer: AIOKafkaConsumer, topic: str) -> set[int]:
    """A topic's partitions, once the consumer knows them."""
    while not (found := consumer.partitions_for_topic(topic)):
        await consumer._client.force_metadata_update()
        await consumer._client._wait_on_metadata(topic)
    return set(found)
