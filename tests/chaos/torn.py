"""Transactions that the broker itself tore apart, as its log tells.

Apache Kafka 4.3.0 to 4.4.0 takes a partition that has no leader for one that was deleted (KAFKA-20734, apache/kafka
pull request 22680), and leaves the marker of a decided transaction out there. Where every replica of a partition dies
at once, as on a single broker that is killed, the records of such a transaction, its offset, or both stay open: they
come to light with that producer's next transaction, or never. No client can see it. 4.0 to 4.2 wait for the leader.
"""

from __future__ import annotations

from pathlib import Path

SKIPPED = "while trying to send transaction markers for"


def torn_transactions(broker_log: Path) -> int:
    """How many transactions a broker left without some of their markers."""
    with broker_log.open(encoding="utf-8", errors="replace") as lines:
        return sum(SKIPPED in line and "can be skipped" in line for line in lines)
