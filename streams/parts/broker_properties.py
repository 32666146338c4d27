"""What brokers that are started here are told: quick and small, in one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ticketgate.streams.parts.ports import HOST

# C1 alone and the serial collector: a broker of tests starts sooner and leaves the cores to what is tested.
JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


# Defaults of all brokers started here, over Kafka's own; `properties` of the caller go over these.
QUICK = {
    "auto.create.topics.enable": "false",
    # Kafka waits 3 s for more members before the first rebalance of a group.
    "group.initial.rebalance.delay.ms": "0",
    # Kafka refuses sessions under 6 s; tests of a killed member need not wait as long.
    "group.min.session.timeout.ms": "500",
    # 50 partitions each by default: most of the time that a first consumer or transaction waits.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    "transaction.max.timeout.ms": "900000",
    # A transaction whose producer vanished is aborted at its time-out, looked at every 10 s by default.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    # A broker killed and started again is refused as a duplicate until its old session ends: 9 s by default.
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "3000",
    # The cleaner takes 128 MiB of the 256 MiB heap by default, and index files 10 MiB a segment.
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "1048576",
    "num.io.threads": "4",
    "num.network.threads": "2",
    "background.threads": "2",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where one broker listens, and its controller."""

    node: int
    port: int
    controller_port: int

    @property
    def voter(self) -> str:
        """How the controllers' quorum names it."""
        return f"{self.node}@{HOST}:{self.controller_port}"


def properties_of(address: Address, members: Sequence[Address], data: Path) -> dict[str, str]:
    """The configuration of one broker of a cluster, its data in `data`."""
    copies = min(3, len(members))
    in_sync = max(1, copies - 1)
    return QUICK | {
        "process.roles": "broker,controller",
        "node.id": str(address.node),
        "controller.quorum.voters": ",".join(member.voter for member in members),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{HOST}:{address.port},CONTROLLER://{HOST}:{address.controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{address.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data),
        "default.replication.factor": str(copies),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(copies),
        "transaction.state.log.replication.factor": str(copies),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(copies),
        "share.coordinator.state.topic.min.isr": str(in_sync),
    }
