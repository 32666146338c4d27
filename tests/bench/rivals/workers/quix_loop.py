"""Tickets passed on by Quix Streams under its exactly-once guarantee."""

from quix_bench import app, dispatch, tickets  # pyright: ignore[reportMissingImports]

app.dataframe(tickets).to_topic(dispatch)
app.run()
