"""A rival: a Faust agent, at least once or exactly once as RIVAL_GUARANTEE says.

It awaits each delivery before it takes the next record, which is more than Faust's own examples do: without it, what
waits in the producer's buffer is lost with the process.
"""

import json
import os
import sys

import faust

session_s = int(os.environ["RIVAL_SESSION_MS"]) / 1000
app = faust.App(
    os.environ["RIVAL_GROUP"],
    broker=f"kafka://{os.environ['RIVAL_KAFKA']}",
    processing_guarantee=os.environ["RIVAL_GUARANTEE"],
    broker_session_timeout=session_s,
    broker_heartbeat_interval=session_s / 5,
    consumer_auto_offset_reset="earliest",
    topic_disable_leader=True,
    datadir=os.environ["RIVAL_FOLDER"],
)
tickets = app.topic(os.environ["RIVAL_TICKETS"], key_serializer="raw", value_serializer="raw")
dispatch = app.topic(os.environ["RIVAL_DISPATCH"], key_serializer="raw", value_serializer="raw")


@app.agent(tickets)
async def carry(stream) -> None:
    async for event in stream.events():
        source = event.message
        place = {"topic": source.topic, "partition": source.partition, "offset": source.offset}
        value = json.dumps({"id": json.loads(event.value)["id"], "coordinate": place}).encode()
        delivery = await dispatch.send(key=source.key, value=value)
        await delivery


if __name__ == "__main__":
    # Only the command line's own option keeps several workers off one web port.
    sys.argv.append("--without-web")
    app.main()
