"""What both arms on Quix Streams share: the application, of whose transactions each takes a batch, and its topics."""

import os

from quix_parts import new_app, topic_of  # pyright: ignore[reportMissingImports]

app = new_app(
    # A transaction takes so many records, of all partitions together.
    commit_every=int(os.environ["RIVAL_BATCH"]),
    commit_interval=0.5,
    loglevel="WARNING",
)
tickets, dispatch, review = (
    topic_of(app, name) for name in ("RIVAL_TICKETS", "RIVAL_DISPATCH", "RIVAL_REVIEW")
)
