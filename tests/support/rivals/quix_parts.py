"""What every rival on Quix Streams has: the application under its exactly-once guarantee, and topics of bytes."""

import os

# Installed in the rivals' own environment alone.
from quixstreams import Application  # pyright: ignore[reportMissingImports]


def new_app(**more):
    """The application. more: settings of its own."""
    session_ms = int(os.environ["RIVAL_SESSION_MS"])
    return Application(
        broker_address=os.environ["RIVAL_KAFKA"],
        consumer_group=os.environ["RIVAL_GROUP"],
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        consumer_extra_config={
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": min(3_000, session_ms // 5),
            # No less than a session may be.
            "max.poll.interval.ms": max(300_000, 2 * session_ms),
        },
        state_dir=os.environ["RIVAL_FOLDER"],
        auto_create_topics=False,
        **more,
    )


def topic_of(app, name: str):
    """The topic that the variable names."""
    return app.topic(
        os.environ[name],
        key_deserializer="bytes",
        value_deserializer="bytes",
        key_serializer="bytes",
        value_serializer="bytes",
    )
