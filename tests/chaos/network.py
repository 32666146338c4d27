"""The network of a chaos run: proxies before the brokers and Redis, and what they do to requests while the storm lasts.

Of the requests of transactions one in fifty is held and cut, repeated by its sender, delayed, dropped or left without
an answer; of all others, and of Redis' commands, one in some hundreds. What was held comes 0.05 to 12 s later, which
is beyond a session and a commit. Upstream and the readers of the books go past the proxies.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from ticketgate.streams.parts.kafka import Kafka, KafkaCluster
from ticketgate.streams.parts.valkey import Valkey

from ..network.faults import PASS, Fault, Request, Rule, delayed, dropped, held, lost, nothing, reply_lost
from ..network.kafka_proxy import TRANSACTIONAL, KafkaProxy
from ..network.redis_proxy import RedisProxy

OF_TRANSACTIONS = 0.02
OF_OTHERS = 0.002
OF_REDIS = 0.004
LATEST_S = 12.0


@dataclass
class Network:
    """The proxies, the brokers' first."""

    kafka: Sequence[KafkaProxy]
    redis: RedisProxy
    done: Counter[str] = field(default_factory=Counter)
    """What happened to how many requests, as "EndTxn held"."""

    @property
    def proxies(self) -> Sequence[KafkaProxy | RedisProxy]:
        """All of them."""
        return (*self.kafka, self.redis)

    @property
    def settings(self) -> dict[str, str]:
        """What leads workers and commands through it."""
        return {"KAFKA": ",".join(proxy.bootstrap for proxy in self.kafka), "REDIS": self.redis.url}

    def begin(self, seed: int) -> None:
        """From now on requests have faults."""
        for number, proxy in enumerate(self.kafka):
            proxy.rule = self._rule(random.Random(f"{seed} kafka {number}"), _of_kafka)
        self.redis.rule = self._rule(random.Random(f"{seed} redis"), lambda _: OF_REDIS)

    def end(self) -> None:
        """No request has a fault any more; what is on its way still comes."""
        for proxy in self.proxies:
            proxy.rule = nothing

    def silence(self) -> None:
        """Nothing passes, and nobody is told."""
        for proxy in self.proxies:
            proxy.silence()

    def refuse(self) -> None:
        """All connections are cut, and none let in."""
        for proxy in self.proxies:
            proxy.refuse()

    def heal(self) -> None:
        """After either."""
        for proxy in self.proxies:
            proxy.heal()

    def _rule(self, rng: random.Random, share: Callable[[str], float]) -> Rule:
        def rule(request: Request) -> Fault:
            if rng.random() >= share(request.name):
                return PASS
            kind, fault = _draw(rng)
            self.done[f"{request.name} {kind}"] += 1
            return fault

        return rule


def _of_kafka(name: str) -> float:
    return OF_TRANSACTIONS if name in TRANSACTIONAL else OF_OTHERS


def _draw(rng: random.Random) -> tuple[str, Fault]:
    late_s = 0.05 * (LATEST_S / 0.05) ** rng.random()
    kind = rng.choices(("held", "reply lost", "delayed", "lost", "dropped"), (10, 3, 3, 2, 1))[0]
    faults = {
        "held": held(cut_after_s=rng.uniform(0, 0.5), late_s=late_s),
        "reply lost": reply_lost(),
        "delayed": delayed(rng.uniform(0.05, 3)),
        "lost": lost(),
        "dropped": dropped(),
    }
    return kind, faults[kind]


def before(stack: ExitStack, brokers: Kafka | KafkaCluster, valkey: Valkey) -> Network:
    """Proxies before brokers that were not started yet, and before a Redis; they go with `stack`."""
    nodes = (brokers,) if isinstance(brokers, Kafka) else brokers.nodes
    kafka = [stack.enter_context(KafkaProxy(node)) for node in nodes]
    return Network(kafka, stack.enter_context(RedisProxy(valkey.port)))
