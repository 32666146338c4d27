"""The proxies themselves: what passes, what is kept back, and what comes late."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
import redis.exceptions
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, RequestTimedOutError
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from .faults import Fault, delayed, dropped, each, held, lost, nth, repeated, reply_lost
from .kafka_proxy import KafkaProxy
from .redis_proxy import RedisProxy
from .topics import new_topic

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


async def _values(broker: Kafka, topic: str) -> list[bytes]:
    async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, enable_auto_commit=False) as consumer:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        end, found = (await consumer.end_offsets([place]))[place], []
        while await consumer.position(place) < end:
            found += [each.value for each in (await consumer.getmany(place, timeout_ms=500)).get(place, [])]
        return found


def _producer(proxy: KafkaProxy, **options: object) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=proxy.bootstrap, acks="all", **{"request_timeout_ms": 2_000, **options}
    )


async def test_without_a_rule_all_passes(behind: tuple[Kafka, KafkaProxy]) -> None:
    broker, proxy = behind
    topic = await new_topic(broker)

    async with _producer(proxy) as producer:
        for n in range(20):
            await producer.send_and_wait(topic, b"%d" % n * 1000)

    assert await _values(broker, topic) == [b"%d" % n * 1000 for n in range(20)]
    assert proxy.seen.count("Produce") >= 20


async def test_a_held_request_comes_when_it_is_delivered_and_the_clients_repetition_before_it(
    behind: tuple[Kafka, KafkaProxy],
) -> None:
    broker, proxy = behind
    topic = await new_topic(broker)
    proxy.rule = nth("Produce", 1, held(cut_after_s=0))
    proxy.held.clear()

    async with _producer(proxy) as producer:
        await producer.send_and_wait(topic, b"a")
    assert await _values(broker, topic) == [b"a"]
    (late,) = proxy.wait_for_held(1)
    answer = await asyncio.to_thread(late.deliver)

    assert late.request.name == "Produce"
    assert answer[4:8] == late.request.data[8:12]
    assert await _values(broker, topic) == [b"a", b"a"]


@pytest.mark.parametrize(
    ("fault", "copies"),
    [(lost(), 1), (dropped(), 1), (delayed(0.3), 1), (reply_lost(), 2), (repeated(late_s=0), 2)],
    ids=["lost", "dropped", "delayed", "reply lost", "repeated"],
)
async def test_a_plain_producer_behind_each_fault(
    behind: tuple[Kafka, KafkaProxy], fault: Fault, copies: int
) -> None:
    broker, proxy = behind
    topic = await new_topic(broker)
    proxy.rule = nth("Produce", 1, fault)

    async with _producer(proxy) as producer:
        try:
            await producer.send_and_wait(topic, b"a")
        except RequestTimedOutError:
            # A plain producer gives a record up after its time-out, so that its owner sends it again.
            await producer.send_and_wait(topic, b"a")

    found = await _values(broker, topic)
    for _ in range(600):
        if len(found) >= copies:
            break
        await asyncio.sleep(0.02)
        found = await _values(broker, topic)
    assert found == [b"a"] * copies


async def test_a_network_that_is_away_lets_nothing_through_until_it_heals(
    behind: tuple[Kafka, KafkaProxy],
) -> None:
    broker, proxy = behind
    topic = await new_topic(broker)

    for goes in (proxy.silence, proxy.refuse):
        async with _producer(proxy, request_timeout_ms=1_000) as producer:
            await producer.send_and_wait(topic, b"before")
            before = len(await _values(broker, topic))
            goes()
            with pytest.raises(KafkaError):
                await producer.send_and_wait(topic, b"meanwhile")
            assert len(await _values(broker, topic)) == before
            proxy.heal()
            await producer.send_and_wait(topic, b"after")


@pytest.fixture
def before_redis(valkey: Valkey) -> Iterator[RedisProxy]:
    with RedisProxy(valkey.port) as proxy:
        yield proxy


def _redis(proxy: RedisProxy) -> Redis:
    return Redis(port=proxy.port, socket_timeout=2, retry=Retry(NoBackoff(), 0))


def test_redis_without_a_rule_passes_pipelines_scripts_and_large_values(before_redis: RedisProxy) -> None:
    with _redis(before_redis) as client:
        assert client.set("a", b"x" * 300_000)
        assert client.get("a") == b"x" * 300_000
        assert client.get("none") is None
        for is_transaction in (True, False):
            pipeline = client.pipeline(transaction=is_transaction)
            pipeline.set("b", 1)
            pipeline.incr("b")
            pipeline.hset("h", "f", "v")
            pipeline.hgetall("h")
            pipeline.lrange("l", 0, -1)
            assert pipeline.execute()[3:] == [{b"f": b"v"}, []]
        assert client.eval("return {1, {redis.call('get', KEYS[1])}, false}", 1, "b") == [1, [b"2"], None]

    assert "MULTI" in before_redis.seen


def _increment_twice(client: Redis) -> None:
    pipeline = client.pipeline(transaction=True)
    pipeline.incr("a")
    pipeline.incr("a")
    pipeline.execute()


def test_a_held_command_of_redis_comes_when_it_is_delivered(before_redis: RedisProxy, valkey: Valkey) -> None:
    before_redis.rule = nth("MULTI", 1, held(cut_after_s=0))

    with _redis(before_redis) as client, Redis(port=valkey.port) as beside:
        client.select(1)
        with pytest.raises(redis.exceptions.ConnectionError):
            _increment_twice(client)
        (late,) = before_redis.wait_for_held(1)
        beside.select(1)
        assert beside.get("a") is None

        assert late.deliver() == b"*2\r\n:1\r\n:2\r\n"

        assert beside.get("a") == b"2"


def test_a_reply_of_redis_that_is_lost_leaves_what_was_done(before_redis: RedisProxy) -> None:
    before_redis.rule = nth("INCRBY", 1, reply_lost())

    with _redis(before_redis) as client:
        with pytest.raises(redis.exceptions.ConnectionError):
            client.incr("a")

        assert client.get("a") == b"1"


def test_a_redis_that_is_silent_lets_its_client_wait(before_redis: RedisProxy) -> None:
    before_redis.rule = each(("GET",), dropped())

    with _redis(before_redis) as client:
        assert client.set("a", 1)
        with pytest.raises(redis.exceptions.TimeoutError):
            client.get("a")
        before_redis.refuse()
        with pytest.raises(redis.exceptions.ConnectionError):
            client.incr("a")
        before_redis.heal()
        assert client.incr("a") == 2
