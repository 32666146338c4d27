"""What every rival on Faust has: the application, its two topics, and how it is run."""

import os
import sys

import faust


def new_app(**more):
    """The application, `tickets` and `dispatch`. more: settings of its own."""
    session_s = int(os.environ["RIVAL_SESSION_MS"]) / 1000
    app = faust.App(
        os.environ["RIVAL_GROUP"],
        broker=f"kafka://{os.environ['RIVAL_KAFKA']}",
        broker_session_timeout=session_s,
        broker_heartbeat_interval=min(3.0, session_s / 5),
        consumer_auto_offset_reset="earliest",
        topic_disable_leader=True,
        datadir=os.environ["RIVAL_FOLDER"],
        **more,
    )
    tickets, dispatch = (
        app.topic(os.environ[name], key_serializer="raw", value_serializer="raw")
        for name in ("RIVAL_TICKETS", "RIVAL_DISPATCH")
    )
    return app, tickets, dispatch


def run(app) -> None:
    """As its command line does."""
    # Only the command line's own option keeps several workers off one web port.
    sys.argv.append("--without-web")
    app.main()
