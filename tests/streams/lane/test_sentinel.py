"""Redis behind real Sentinels: found through them, and gone on with after a failover."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from ticketgate.store.sentinel import SentinelUrl
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.ports import HOST, free_port
from ticketgate.streams.parts.valkey import Valkey, _binary
from ticketgate.streams.process.preflight import require_redis

from ...support.deployment import ticket
from ...support.meddling import redis_call
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from .test_redis_identity import Deployment, decide, is_decided_once

SENTINELS = 3


@dataclass
class Watched:
    """A primary, its replica, and three Sentinels that agree by two."""

    primary: Valkey
    replica: Valkey
    url: str


def wait_for(port: int, *words: str) -> None:
    """Wait until a Sentinel on the port tells these words of its service."""
    deadline = time.monotonic() + 60
    while True:
        said = str(redis_call(f"redis://{HOST}:{port}", "SENTINEL", "MASTER", "claims"))
        if all(word in said for word in words):
            return
        assert time.monotonic() < deadline, said
        time.sleep(0.2)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with ExitStack() as stack:
        primary = stack.enter_context(Valkey(data=tmp_path / "primary"))
        replica = stack.enter_context(Valkey(data=tmp_path / "replica"))
        redis_call(replica.url, "REPLICAOF", HOST, str(primary.port))
        ports = [free_port() for _ in range(SENTINELS)]
        for port in ports:
            folder = tmp_path / f"sentinel-{port}"
            folder.mkdir()
            config = folder / "sentinel.conf"
            config.write_text(
                f"port {port}\nbind {HOST}\ndir {folder}\n"
                f"sentinel monitor claims {HOST} {primary.port} 2\n"
                "sentinel down-after-milliseconds claims 1500\n"
                "sentinel failover-timeout claims 10000\n"
            )
            with (folder / "log").open("wb") as log:
                process = subprocess.Popen(
                    [str(_binary()), str(config), "--sentinel"], stdout=log, stderr=subprocess.STDOUT
                )
            stack.callback(process.wait)
            stack.callback(process.kill)
        for port in ports:
            _wait_until_it_listens(port)
            wait_for(port, "num-slaves', '1'", "num-other-sentinels', '2'")
        yield Watched(
            primary, replica, "redis+sentinel://" + ",".join(f"{HOST}:{p}" for p in ports) + "/claims/0"
        )


def _wait_until_it_listens(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection((HOST, port), 1.0).close()
            return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.kafka
@pytest.mark.redis
def test_a_worker_follows_sentinels_through_a_failover(
    watched: Watched, kafka: Kafka, tmp_path: Path
) -> None:
    settings = {
        "POLICY": str(SEED_POLICY),
        "SCORER": f"fixed:{FIXED_ANSWERS}",
        "PARTITIONS": "2",
        "SESSION_TIMEOUT": "3s",
        "CONDITION_INTERVAL": "500ms",
        "REDIS_TIMEOUT": "2s",
    }
    with Deployment(kafka.bootstrap, watched.url, tmp_path / "deployment", settings) as gate:
        worker = gate.start_worker()
        decide(gate, worker, range(30))
        worker.wait_for(lambda _: "Sentinel may promote any of 1 replicas" in worker.log())

        watched.primary.kill()

        gate.send(ticket(f"T-{n}") for n in range(30, 60))
        gate.wait_for_records(60, "dispatch", "review", timeout_s=120)
        is_decided_once(gate, worker, range(60))
        shown = gate.run("claims", "show", "--ticket", "T-1")
        assert shown.returncode == 0, shown.stderr


@pytest.mark.redis
async def test_a_sentinels_own_address_is_refused_with_the_form_to_write(watched: Watched) -> None:
    address = watched.url.removeprefix("redis+sentinel://").partition(",")[0]
    settings = load_settings(environment={"TICKETGATE_REDIS": f"redis://{address}"}).settings

    with pytest.raises(SettingsError, match="it leads to a Sentinel and not to Redis"):
        await require_redis(settings)


@pytest.mark.parametrize(
    ("url", "service", "sentinels", "db"),
    [
        ("redis+sentinel://a:1,b:2/claims", "claims", (("a", 1), ("b", 2)), 0),
        (
            "redis+sentinel://u:p%40@a,[::1]:3/claims/7?sentinel_password=s",
            "claims",
            (("a", 26379), ("::1", 3)),
            7,
        ),
    ],
)
def test_a_sentinel_url_is_read(
    url: str, service: str, sentinels: tuple[tuple[str, int], ...], db: int
) -> None:
    found = SentinelUrl.parse(url)

    assert found is not None
    assert (found.service, found.sentinels, found.db) == (service, sentinels, db)
    assert (found.password, found.sentinel_password) in ((None, None), ("p@", "s"))


@pytest.mark.parametrize(
    "url",
    ["redis+sentinel://a:1", "redis+sentinel:///x", "redis+sentinel://a:b/x", "redis+sentinel://a/x?y=1"],
)
def test_what_is_no_sentinel_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="Sentinel"):
        SentinelUrl.parse(url)


def test_another_url_names_no_sentinels() -> None:
    assert SentinelUrl.parse("redis://127.0.0.1:6379/0") is None
