"""`ticketgate doctor` on real parts: nothing is wrong, and then one thing at a time."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from redis import Redis
from ticketgate.agents.scoring import default_model_path
from ticketgate.streams.config.settings import Settings, load_settings
from ticketgate.streams.kafka.topics import topic_config
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.ports import HOST, free_port
from ticketgate.streams.parts.valkey import Valkey
from ticketgate.streams.process.doctor import local
from ticketgate.streams.process.doctor.examine import examine
from ticketgate.streams.process.doctor.finding import Finding
from ticketgate.streams.process.doctor.local import look_at_versions
from ticketgate.streams.process.doctor.remote import idle_processes, look_at_broker
from ticketgate.streams.process.supervising import cores

from tests.streams.cli.conftest import Run, broker, no_settings, ticketgate, tickets

__all__ = ["broker", "no_settings", "ticketgate", "tickets"]

FILES = Path(__file__).resolve().parents[3] / "support" / "files"
DEAD = "kafka-0.kafka.svc.invalid:9092"
DAY_MS = 86_400_000

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@dataclass(frozen=True)
class Scene:
    """A deployment that lacks nothing, and ways to take something from it."""

    kafka: Kafka
    valkey: Valkey
    folder: Path
    monkeypatch: pytest.MonkeyPatch

    def set(self, name: str, value: object) -> None:
        self.monkeypatch.setenv(f"TICKETGATE_{name}", str(value))

    def topic(self, role: str) -> str:
        return os.environ[f"TICKETGATE_TOPIC_{role}"]

    def redis(self) -> Redis:
        return Redis.from_url(self.valkey.url)

    def ask(self, work: Callable[[AIOKafkaAdminClient], Any]) -> None:
        async def run() -> None:
            client = AIOKafkaAdminClient(bootstrap_servers=self.kafka.bootstrap)
            await client.start()
            try:
                await work(client)
            finally:
                await client.close()

        asyncio.run(run())

    def configure(self, role: str, **values: object) -> None:
        config = {name.replace("_", "."): str(value) for name, value in values.items()}
        topic = self.topic(role)

        async def change(client: AIOKafkaAdminClient) -> None:
            resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=config)
            await client.alter_configs([resource])
            # The broker answers before it knows of it itself.
            while config.items() - (await topic_config(client, topic)).items():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

        self.ask(change)


@pytest.fixture
def scene(
    broker: Kafka, tickets: str, valkey: Valkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Scene:
    made = Scene(broker, valkey, tmp_path, monkeypatch)
    shutil.copy(FILES / "seed.toml", tmp_path / "policy.toml")
    made.set("POLICY", tmp_path / "policy.toml")
    made.set("SCORER", f"fixed:{FILES / 'answers.json'}")
    made.set("REDIS", valkey.url)
    made.set("NAMESPACE", tickets)
    made.set("WEB_PORT", free_port())
    return made


def test_a_deployment_that_lacks_nothing_is_found_sound(scene: Scene, ticketgate: Run) -> None:
    ran = ticketgate("doctor", "--json")

    assert {line["status"] for line in ran.lines} == {"ok"}, ran.lines
    assert [line["check"] for line in ran.lines] == [
        "versions", "policy", "model", "broker", "broker", "topics", "topics", "redis", "clock", "cores", "port",
    ]  # fmt: skip
    assert ran.code == 0
    # It has looked, and bound the namespace to nothing.
    assert scene.redis().keys("ticketgate:*") == []


def plant_a_setting_that_is_none(scene: Scene) -> None:
    scene.set("PARTITION", "3")


def plant_an_address_that_cannot_be(scene: Scene) -> None:
    scene.set("KAFKA", "127.0.0.1:abc")


def plant_no_broker(scene: Scene) -> None:
    scene.set("KAFKA", f"{HOST}:{free_port()}")


def plant_a_broker_that_no_resolver_knows(scene: Scene) -> None:
    scene.set("KAFKA", "kafka.invalid:9092")


def plant_another_protocol(scene: Scene) -> None:
    scene.set("KAFKA_SECURITY", "ssl")


def plant_no_topics(scene: Scene) -> None:
    scene.set("TOPIC_REVIEW", "review-that-is-not-there")


def plant_a_compacted_input(scene: Scene) -> None:
    scene.configure("TICKETS", cleanup_policy="compact")


def plant_an_input_kept_for_ever(scene: Scene) -> None:
    scene.configure("TICKETS", retention_ms=-1)


def plant_an_input_kept_too_long(scene: Scene) -> None:
    scene.configure("TICKETS", retention_ms=40 * DAY_MS)


def plant_an_output_kept_too_short(scene: Scene) -> None:
    scene.configure("DISPATCH", retention_ms=DAY_MS)


def plant_a_compacted_output(scene: Scene) -> None:
    scene.configure("REVIEW", cleanup_policy="compact")


def plant_an_output_bounded_by_bytes(scene: Scene) -> None:
    scene.configure("REVIEW", retention_bytes=1_000_000, retention_ms=30 * DAY_MS)


def plant_an_output_of_small_records(scene: Scene) -> None:
    scene.configure("DISPATCH", max_message_bytes=20_000, retention_ms=30 * DAY_MS)


def plant_a_transaction_longer_than_the_broker_allows(scene: Scene) -> None:
    scene.set("TRANSACTION_TIMEOUT", "2d")


def plant_no_redis(scene: Scene) -> None:
    scene.set("REDIS", f"redis://{HOST}:{free_port()}/0")


def plant_a_password_that_is_none(scene: Scene) -> None:
    scene.redis().config_set("requirepass", "another")


def plant_no_append_only_file(scene: Scene) -> None:
    scene.redis().config_set("appendonly", "no")


def plant_a_late_fsync(scene: Scene) -> None:
    scene.redis().config_set("appendfsync", "everysec")


def plant_eviction(scene: Scene) -> None:
    scene.redis().config_set("maxmemory-policy", "allkeys-lru")


def plant_no_memory(scene: Scene) -> None:
    scene.redis().config_set("maxmemory", "1")


def plant_a_replica(scene: Scene) -> None:
    scene.redis().execute_command("REPLICAOF", HOST, free_port())


def plant_too_few_replicas(scene: Scene) -> None:
    scene.set("REDIS_REPLICAS", 2)


def plant_the_namespace_of_another_group(scene: Scene) -> None:
    namespace = os.environ["TICKETGATE_NAMESPACE"]
    scene.redis().hset(f"ticketgate:{namespace}:identity", "group", "another-group")


def plant_evicted_claims(scene: Scene) -> None:
    namespace = os.environ["TICKETGATE_NAMESPACE"]
    scene.redis().hset(f"ticketgate:{namespace}:server", mapping={"id": "x/y", "claims": "evicted"})


def plant_no_policy(scene: Scene) -> None:
    scene.monkeypatch.delenv("TICKETGATE_POLICY")


def plant_a_policy_that_is_not_there(scene: Scene) -> None:
    (scene.folder / "policy.toml").unlink()


def plant_a_policy_half_written(scene: Scene) -> None:
    path = scene.folder / "policy.toml"
    path.write_text(path.read_text()[:-20] + '\n[[rules]]\nimplies = ["urgent", ')


def plant_a_rule_about_nothing(scene: Scene) -> None:
    path = scene.folder / "policy.toml"
    path.write_text(path.read_text() + '\n[[rules]]\nimplies = ["urgent", "nothing"]\n')


def plant_no_model(scene: Scene) -> None:
    scene.set("SCORER", "onnx")
    scene.set("MODEL", scene.folder / "no-model")


def plant_a_damaged_model(scene: Scene) -> None:
    folder = scene.folder / "model"
    shutil.copytree(default_model_path(), folder)
    largest = max((each for each in folder.iterdir() if each.is_file()), key=lambda each: each.stat().st_size)
    with largest.open("r+b") as file:
        file.seek(100)
        file.write(b"\0\1\2\3")
    scene.set("SCORER", "onnx")
    scene.set("MODEL", folder)


def plant_a_scorer_that_is_away(scene: Scene) -> None:
    scene.set("SCORER", f"remote:http://{HOST}:{free_port()}")


def plant_no_funnel_file(scene: Scene) -> None:
    scene.set("ROLES", "effects")
    scene.set("FUNNEL", scene.folder / "no-such.toml")


def plant_an_address_of_another_machine(scene: Scene) -> None:
    scene.set("WEB_BIND", "192.0.2.1")


PLANTED: list[tuple[Callable[[Scene], None], str, str, str]] = [
    (plant_a_setting_that_is_none, "settings", "TICKETGATE_PARTITION: unknown setting", "TICKETGATE_PARTITIONS"),
    (plant_an_address_that_cannot_be, "settings", "TICKETGATE_KAFKA: the port", "host:port"),
    (plant_no_broker, "broker", "TICKETGATE_KAFKA: no broker answers", "start it"),
    (plant_a_broker_that_no_resolver_knows, "broker", "kafka.invalid:9092", "set the address"),
    (plant_another_protocol, "broker", "TICKETGATE_KAFKA", "TICKETGATE_KAFKA_SECURITY"),
    (plant_no_topics, "topics", "no topic review-that-is-not-there", "ticketgate topics create"),
    (plant_a_compacted_input, "topics", "is compacted", "cleanup.policy to delete"),
    (plant_an_input_kept_for_ever, "topics", "for ever", "retention.ms"),
    (plant_an_input_kept_too_long, "topics", "claims live 30d", "TICKETGATE_CLAIM_TTL"),
    (plant_an_output_kept_too_short, "topics", "keeps records 1d", "retention.ms to at least"),
    (plant_a_compacted_output, "topics", "is compacted", "cleanup.policy to delete"),
    (plant_an_output_bounded_by_bytes, "topics", "retention.bytes", "to -1"),
    (plant_an_output_of_small_records, "topics", "TICKETGATE_MAX_RECORD_BYTES", "max.message.bytes"),
    (plant_a_transaction_longer_than_the_broker_allows, "broker", "TICKETGATE_TRANSACTION_TIMEOUT", "at most"),
    (plant_no_redis, "redis", "TICKETGATE_REDIS: no Redis answers", "start it"),
    (plant_a_password_that_is_none, "redis", "TICKETGATE_REDIS", "URL"),
    (plant_no_append_only_file, "redis", "append-only file", "--appendonly yes"),
    (plant_a_late_fsync, "redis", "appendfsync everysec", "appendfsync always"),
    (plant_eviction, "redis", "maxmemory-policy allkeys-lru", "noeviction"),
    (plant_no_memory, "redis", "of 1 bytes", "raise maxmemory"),
    (plant_a_replica, "redis", "is a replica", "primary"),
    (plant_too_few_replicas, "redis", "0 replicas connected, and 2", "TICKETGATE_REDIS_REPLICAS"),
    (plant_the_namespace_of_another_group, "redis", "another-group", "TICKETGATE_NAMESPACE"),
    (plant_evicted_claims, "redis", "evicted keys", "ticketgate claims rebuild"),
    (plant_no_policy, "policy", "TICKETGATE_POLICY: not set", "name the policy"),
    (plant_a_policy_that_is_not_there, "policy", "policy.toml", ""),
    (plant_a_policy_half_written, "policy", "policy.toml:", ""),
    (plant_a_rule_about_nothing, "policy", "nothing", ""),
    (plant_no_model, "model", "TICKETGATE_MODEL", "model folder"),
    (plant_a_damaged_model, "model", "TICKETGATE_MODEL", "restore the model folder"),
    (plant_a_scorer_that_is_away, "model", "TICKETGATE_SCORER", "start the server"),
    (plant_no_funnel_file, "funnel", "no-such.toml", ""),
    (plant_an_address_of_another_machine, "port", "TICKETGATE_WEB_BIND", "address of this machine"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("plant", "check", "what", "remedy"),
    PLANTED,
    ids=[each[0].__name__.removeprefix("plant_") for each in PLANTED],
)
def test_what_is_planted_is_named_with_its_remedy_and_nothing_else_is(
    scene: Scene, ticketgate: Run, plant: Callable[[Scene], None], check: str, what: str, remedy: str
) -> None:
    plant(scene)

    ran = ticketgate("doctor", "--json")

    (fault,) = [line for line in ran.lines if line["status"] == "fault"]
    assert (fault["check"], ran.code) == (check, 3)
    assert what in fault["what"]
    assert remedy in fault["remedy"]
    assert fault["remedy"]
    table = ticketgate("doctor").out.decode()
    assert f"FAULT {check:<9}{fault['what']}" in table
    assert fault["remedy"] in table


@pytest.mark.parametrize(
    ("ahead_s", "status"), [(20, "warning"), (-20, "warning"), (1_200, "fault"), (-1_200, "fault")]
)
async def test_a_clock_that_is_wrong_is_named(scene: Scene, ahead_s: int, status: str) -> None:
    settings = load_settings().settings

    found = await examine(settings, now_ms=lambda: round((time.time() + ahead_s) * 1000))

    (told,) = [each for each in found if each.status != "ok"]
    assert (told.check, told.status) == ("clock", status)
    assert ("behind" if ahead_s > 0 else "ahead of") in told.what
    assert "NTP" in told.remedy


@contextmanager
def listening(answer: bytes, status: int = 200) -> Iterator[int]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("answer", "status", "told", "remedy"),
    [
        (b"<html>a printer</html>", "fault", "not by a worker of ours", "set another port"),
        (json.dumps({"ready": True, "waiting": {}}).encode(), "ok", "is ready", ""),
        (
            json.dumps(
                {"ready": True, "waiting": {}, "processes": {"worker 1": {}, "worker 2": {}}}
            ).encode(),
            "ok",
            "with 2 processes listens there, and is ready",
            "",
        ),
        (
            json.dumps({"ready": False, "waiting": {"redis": "away"}}).encode(),
            "warning",
            "redis: away",
            "mend what it names",
        ),
    ],
)
def test_who_has_the_web_port_is_told(
    scene: Scene, ticketgate: Run, answer: bytes, status: str, told: str, remedy: str
) -> None:
    with listening(answer) as port:
        scene.set("WEB_PORT", port)

        ran = ticketgate("doctor", "--json")

    (port_line,) = [line for line in ran.lines if line["check"] == "port"]
    assert port_line["status"] == status
    assert told in port_line["what"]
    assert remedy in port_line["remedy"]


@pytest.mark.parametrize(
    ("processes", "threads", "status", "told"),
    [
        ("auto", 1, "ok", "4 workers of 1 thread on 4 cores"),
        ("auto", 2, "ok", "2 workers of 2 threads on 4 cores"),
        (1, 1, "ok", "1 worker of 1 thread on 4 cores"),
        (5, 1, "warning", "5 workers of 1 thread on 4 cores, which they share"),
        (2, 3, "warning", "TICKETGATE_PROCESSES: 2 workers of 3 threads"),
    ],
)
def test_what_a_machine_has_room_for_is_told(
    monkeypatch: pytest.MonkeyPatch, processes: object, threads: int, status: str, told: str
) -> None:
    for module in (local, cores):
        monkeypatch.setattr(module, "usable_cores", lambda: 4)
    settings = Settings.model_validate({"processes": processes, "scorer_threads": threads})

    (found,) = local.look_at_processes(settings)

    assert (found.check, found.status) == ("cores", status)
    assert told in found.what


@pytest.mark.parametrize(
    ("processes", "cores_here", "told"),
    [
        (3, 8, None),
        (
            4,
            8,
            "TICKETGATE_PROCESSES=4: of 4 workers 1 would be given nothing of tickets, which has 3 partitions",
        ),
        ("auto", 3, None),
        ("auto", 8, "TICKETGATE_PROCESSES=auto: of 8 workers 5 would be given nothing of tickets"),
    ],
)
def test_more_processes_than_partitions_are_told(
    monkeypatch: pytest.MonkeyPatch, processes: object, cores_here: int, told: str | None
) -> None:
    monkeypatch.setattr(cores, "usable_cores", lambda: cores_here)

    found = idle_processes("tickets", 3, Settings.model_validate({"processes": processes}))

    assert [(each.check, each.status) for each in found] == [("topics", "warning")] * (told is not None)
    for each in found:
        assert told is not None
        assert each.what.startswith(told)
        assert each.remedy == "set it to 3 or less, or give the topic more partitions"


def test_processes_are_held_against_the_partitions_that_the_broker_has(
    scene: Scene, ticketgate: Run, tickets: str
) -> None:
    scene.set("PROCESSES", 99)

    ran = ticketgate("doctor", "--json")

    warned = [line["what"] for line in ran.lines if line["status"] == "warning" and line["check"] == "topics"]
    assert len(warned) == 1, ran.lines
    assert "TICKETGATE_PROCESSES=99: of 99 workers" in warned[0]
    assert tickets in warned[0]
    assert ran.code == 0


async def test_a_broker_that_sends_its_clients_nowhere_is_named_with_where(tmp_path: Path) -> None:
    with Kafka(
        data=tmp_path / "kafka", properties={"advertised.listeners": f"PLAINTEXT://{DEAD}"}
    ) as misleading:
        settings = load_settings({"kafka": misleading.bootstrap}, environment={}).settings

        found, known = await look_at_broker(settings)

    assert known is None
    assert [(each.status, each.check) for each in found] == [("fault", "broker")]
    assert DEAD in found[0].what
    assert "advertised.listeners" in found[0].remedy


def test_a_bootstrap_server_that_is_away_beside_one_that_answers_is_no_fault(
    scene: Scene, ticketgate: Run
) -> None:
    scene.set("KAFKA", f"{HOST}:{free_port()},{scene.kafka.bootstrap}")

    ran = ticketgate("doctor", "--json")

    assert [line["check"] for line in ran.lines if line["status"] == "warning"] == ["broker"]
    assert ran.code == 0


def test_a_library_of_another_version_is_named() -> None:
    found = look_at_versions(version_of=lambda name: {"aiokafka": "0.15.0", "redis": "5.0"}.get(name, "9999"))

    named = {each.what.split()[0]: each for each in found}
    assert {"aiokafka", "redis", "click"} <= set(named)
    assert all(isinstance(each, Finding) and each.status == "fault" and each.remedy for each in found)
    assert "pip install 'aiokafka" in named["aiokafka"].remedy


def test_a_python_that_it_was_not_made_for_is_named() -> None:
    (told,) = look_at_versions(python=(3, 15, 0))

    assert (told.status, "3.15.0" in told.what) == ("fault", True)


def test_a_socket_in_a_broker_s_place_is_no_broker(scene: Scene, ticketgate: Run) -> None:
    with socket.create_server((HOST, 0)) as silent:
        scene.set("KAFKA", f"{HOST}:{silent.getsockname()[1]}")

        ran = ticketgate("doctor", "--json")

    (fault,) = [line for line in ran.lines if line["status"] == "fault"]
    assert fault["check"] == "broker"
    assert "no answer within" in fault["what"]


def test_a_topic_with_kafkas_own_defaults_is_sound(scene: Scene, ticketgate: Run) -> None:
    name = f"{scene.topic('TICKETS')}-plain"

    async def create(client: AIOKafkaAdminClient) -> None:
        await client.create_topics([NewTopic(name, 1, 1)])
        while name not in await client.list_topics():  # noqa: ASYNC110 - it answers before it knows of it itself
            await asyncio.sleep(0.05)

    scene.ask(create)
    scene.set("TOPIC_TICKETS", name)

    ran = ticketgate("doctor", "--json")

    assert ran.code == 0, ran.lines
