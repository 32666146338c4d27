"""A Faust agent that takes batches and awaits their deliveries: at least once."""

import asyncio
import os
import sys

import faust

_session_s = int(os.environ["RIVAL_SESSION_MS"]) / 1000
app = faust.App(
    os.environ["RIVAL_GROUP"],
    broker=f"kafka://{os.environ['RIVAL_KAFKA']}",
    broker_session_timeout=_session_s,
    broker_request_timeout=_session_s + 30,
    broker_commit_interval=0.5,
    consumer_auto_offset_reset="earliest",
    topic_disable_leader=True,
    datadir=os.environ["RIVAL_FOLDER"],
)
tickets = app.topic(os.environ["RIVAL_TICKETS"], key_serializer="raw", value_serializer="raw")
dispatch = app.topic(os.environ["RIVAL_DISPATCH"], key_serializer="raw", value_serializer="raw")


@app.agent(tickets)
async def carry(stream) -> None:
    async for events in stream.take_events(int(os.environ["RIVAL_BATCH"]), within=0.2):
        sent = [await dispatch.send(key=each.key, value=each.value, headers=each.headers) for each in events]
        await asyncio.gather(*sent)


if __name__ == "__main__":
    # Only the command line's own option keeps several workers off one web port.
    sys.argv.append("--without-web")
    app.main()
