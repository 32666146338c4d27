"""What both arms on Quix Streams share: the application and its topics."""

import os

# Installed in the rivals' own environment alone.
from quixstreams import Application  # pyright: ignore[reportMissingImports]

_session_ms = int(os.environ["RIVAL_SESSION_MS"])
app = Application(
    broker_address=os.environ["RIVAL_KAFKA"],
    consumer_group=os.environ["RIVAL_GROUP"],
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    # A transaction takes so many records, of all partitions together.
    commit_every=int(os.environ["RIVAL_BATCH"]),
    commit_interval=0.5,
    consumer_extra_config={"session.timeout.ms": _session_ms, "max.poll.interval.ms": _session_ms * 2},
    state_dir=os.environ["RIVAL_FOLDER"],
    auto_create_topics=False,
    loglevel="WARNING",
)


def _bytes(name: str):
    return app.topic(
        os.environ[name],
        key_deserializer="bytes",
        value_deserializer="bytes",
        key_serializer="bytes",
        value_serializer="bytes",
    )


tickets, dispatch, review = _bytes("RIVAL_TICKETS"), _bytes("RIVAL_DISPATCH"), _bytes("RIVAL_REVIEW")
