"""The embedded Redis keeps what it acknowledged, and goes when told."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from ticketgate.streams.parts.failures import PartFailed
from ticketgate.streams.parts.valkey import Valkey

pytestmark = pytest.mark.redis


@pytest.fixture(scope="module")
def valkey() -> Iterator[Valkey]:
    with Valkey() as running:
        yield running


@pytest.fixture
def client(valkey: Valkey) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey.url) as connected:
        yield connected


def test_an_acknowledged_write_survives_kill_9(valkey: Valkey, client: redis.Redis) -> None:
    client.set("claim", "tickets:0:17")

    valkey.kill()
    valkey.start()

    assert client.get("claim") == b"tickets:0:17"


def test_an_orderly_stop_keeps_data_and_port(valkey: Valkey, client: redis.Redis) -> None:
    client.set("claimed", "18")
    port = valkey.port

    valkey.stop()
    valkey.start()

    assert valkey.port == port
    assert client.get("claimed") == b"18"


def test_it_forgets_nothing_by_itself(client: redis.Redis) -> None:
    settings = client.config_get("appendfsync", "appendonly", "maxmemory-policy", "bind")

    assert settings == {
        "appendfsync": "always",
        "appendonly": "yes",
        "maxmemory-policy": "noeviction",
        "bind": "127.0.0.1",
    }


def test_claims_can_be_taken_as_the_lane_does(client: redis.Redis) -> None:
    first = client.set("claim:k", "tickets:0:1", nx=True, get=True, px=60_000)
    second = client.set("claim:k", "tickets:0:2", nx=True, get=True, px=60_000)

    assert first is None
    assert second == b"tickets:0:1"


def test_a_paused_server_answers_nothing_until_resumed(valkey: Valkey) -> None:
    valkey.pause()
    try:
        with (
            redis.Redis.from_url(valkey.url, socket_timeout=0.2, retry=None) as client,
            pytest.raises(redis.TimeoutError),
        ):
            client.ping()
    finally:
        valkey.resume()

    with redis.Redis.from_url(valkey.url) as client:
        assert client.ping()


def test_another_server_on_the_port_is_not_taken_for_this_one(valkey: Valkey, tmp_path: Path) -> None:
    second = Valkey(port=valkey.port, data=tmp_path)

    with pytest.raises(PartFailed, match=f"cannot listen on 127.0.0.1:{valkey.port}: the port is taken"):
        second.start()

    assert not second.is_running


def test_a_refused_option_is_told_with_the_end_of_the_log(tmp_path: Path) -> None:
    server = Valkey(data=tmp_path, options={"appendfsync": "sometimes"})

    with pytest.raises(PartFailed, match=r"ended with code 1 before it answered(.|\n)*appendfsync"):
        server.start()
