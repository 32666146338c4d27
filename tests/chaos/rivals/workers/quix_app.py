"""A rival: a Quix Streams application with its exactly-once guarantee."""

import os

from coordinates import of  # pyright: ignore[reportMissingImports]
from quix_parts import new_app, topic_of  # pyright: ignore[reportMissingImports]

# Installed in the rivals' own environment alone.
from quixstreams import message_context  # pyright: ignore[reportMissingImports]

app = new_app(
    # As long as ticketgate's in this harness: what a killed worker left open holds readers up for so long.
    producer_extra_config={"transaction.timeout.ms": int(os.environ["RIVAL_TRANSACTION_MS"])},
)
tickets, dispatch = topic_of(app, "RIVAL_TICKETS"), topic_of(app, "RIVAL_DISPATCH")

app.dataframe(tickets).apply(lambda value: of(message_context(), value)).to_topic(dispatch)

if __name__ == "__main__":
    app.run()
