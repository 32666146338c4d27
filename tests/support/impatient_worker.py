"""`ticketgate worker` whose client gives its place in the group up after seconds without a poll, where real ones take
minutes; POLL_INTERVAL_S says after how many. Its scorer is faulty_worker.py's."""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaConsumer
from ticketgate.streams.lane import consuming

from tests.support.faulty_worker import main

POLL_INTERVAL_S = 4.0


class ImpatientConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka has no types
    """A consumer with a short max_poll_interval_ms."""

    def __init__(self, *topics: str, **options: Any) -> None:
        super().__init__(*topics, **{**options, "max_poll_interval_ms": round(POLL_INTERVAL_S * 1000)})


# Where the worker looks it up.
consuming.__dict__["AIOKafkaConsumer"] = ImpatientConsumer

if __name__ == "__main__":
    main()
