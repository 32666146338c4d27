"""A rival: a Quix Streams application with its exactly-once guarantee."""

import json
import os
from typing import Any

# Installed in the rivals' own environment alone.
from quixstreams import (  # pyright: ignore[reportMissingImports]
    Application,
    message_context,
)

session_ms = int(os.environ["RIVAL_SESSION_MS"])
app = Application(
    broker_address=os.environ["RIVAL_KAFKA"],
    consumer_group=os.environ["RIVAL_GROUP"],
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    consumer_extra_config={"session.timeout.ms": session_ms, "heartbeat.interval.ms": session_ms // 5},
    # As long as ticketgate's in this harness: what a killed worker left open holds readers up for so long.
    producer_extra_config={"transaction.timeout.ms": int(os.environ["RIVAL_TRANSACTION_MS"])},
    state_dir=os.environ["RIVAL_FOLDER"],
    auto_create_topics=False,
)
tickets = app.topic(os.environ["RIVAL_TICKETS"], key_deserializer="bytes", value_deserializer="bytes")
dispatch = app.topic(os.environ["RIVAL_DISPATCH"], key_serializer="bytes", value_serializer="bytes")


def output(value: bytes) -> bytes:
    """The input's id and coordinate."""
    source: Any = message_context()
    place = {"topic": source.topic, "partition": source.partition, "offset": source.offset}
    return json.dumps({"id": json.loads(value)["id"], "coordinate": place}).encode()


app.dataframe(tickets).apply(output).to_topic(dispatch)

if __name__ == "__main__":
    app.run()
