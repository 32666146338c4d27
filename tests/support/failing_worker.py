"""`ticketgate worker` that fails for what is in a ticket, in our own code and behind the scorer, and whose clock may be
wrong.

FAULT in a ticket's text raises while its record is written. The variable CLOCK_AHEAD_S sets time.time() wrong.
"""

from __future__ import annotations

import os
import time
from typing import Any

from aiokafka import AIOKafkaProducer
from ticketgate.streams.cli import main
from ticketgate.streams.lane.taking.records import RecordWriter

_decision = RecordWriter.decision


def failing(self: RecordWriter, arrival: Any, *arguments: Any, **more: Any) -> Any:
    """As the writer, but for the fault."""
    if "FAULT" in str(arrival.document.state):
        raise ZeroDivisionError(arrival.document.state)
    return _decision(self, arrival, *arguments, **more)


RecordWriter.decision = failing  # type: ignore[method-assign]

_time, ahead_s = time.time, float(os.environ.pop("CLOCK_AHEAD_S", "0"))
_send = AIOKafkaProducer.send


async def stamping(self: AIOKafkaProducer, topic: str, value: bytes, **more: Any) -> Any:
    """As the producer's, which reads the clock where Python's cannot be set."""
    if more.get("timestamp_ms") is None:
        more["timestamp_ms"] = round(time.time() * 1000)
    return await _send(self, topic, value, **more)


if ahead_s:
    time.time = lambda: _time() + ahead_s
    setattr(AIOKafkaProducer, "send", stamping)  # noqa: B010

if __name__ == "__main__":
    main()
