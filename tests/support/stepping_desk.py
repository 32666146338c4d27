"""`ticketgate review …` that strikes itself at a step of settling, when the test arms it; as stepping_worker.py says.

SENT_FILE, if given, gets the bytes of what is about to be sent: what a network held and delivers late.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from ticketgate.streams.cli import main
from ticketgate.streams.operations.review import desk, said_before
from ticketgate.streams.operations.review.view import View

try:
    from .stepping_worker import Armed, stepping
except ImportError:  # run as a program
    from stepping_worker import Armed, stepping  # type: ignore[no-redef,import-not-found]


def noting(call: Callable[..., Any], file: Path) -> Callable[..., Any]:
    """The call, once what it sends stands in a file."""

    async def noted(self: AIOKafkaProducer, topic: str, value: bytes, **named: Any) -> Any:
        await asyncio.to_thread(file.write_bytes, value)
        return await call(self, topic, value, **named)

    return noted


def arm(armed: Armed) -> None:
    """Put the steps where the command finds what it calls."""
    desk.__dict__["look"] = stepping(armed, "look", desk.look)
    desk.__dict__["send"] = stepping(armed, "send", desk.send)
    said_before.__dict__["under_way"] = stepping(armed, "under_way", said_before.under_way)
    producer: Any = AIOKafkaProducer
    # Behind it the broker has the record, and the command does not know yet.
    producer.send_and_wait = stepping(armed, "kafka.send", producer.send_and_wait)
    if "SENT_FILE" in os.environ:
        producer.send_and_wait = noting(producer.send_and_wait, Path(os.environ["SENT_FILE"]))
    view: Any = View
    close = view.close

    def closed(self: View) -> None:
        close(self)
        # Once before it is sent, then at each look for what became of it.
        armed.reach("looked")

    view.close = closed


if __name__ == "__main__":
    arm(Armed(Path(os.environ["STEP_FILE"])))
    main()
