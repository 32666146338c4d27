"""A Faust agent that takes batches and awaits their deliveries: at least once."""

import asyncio
import os

from faust_parts import new_app, run  # pyright: ignore[reportMissingImports]

app, tickets, dispatch = new_app(
    broker_request_timeout=int(os.environ["RIVAL_SESSION_MS"]) / 1000 + 30, broker_commit_interval=0.5
)


@app.agent(tickets)
async def carry(stream) -> None:
    async for events in stream.take_events(int(os.environ["RIVAL_BATCH"]), within=0.2):
        sent = [await dispatch.send(key=each.key, value=each.value, headers=each.headers) for each in events]
        await asyncio.gather(*sent)


if __name__ == "__main__":
    run(app)
