"""A rival: a Faust agent, at least once or exactly once as RIVAL_GUARANTEE says.

It awaits each delivery before it takes the next record, which is more than Faust's own examples do: without it, what
waits in the producer's buffer is lost with the process.
"""

import os

from coordinates import of  # pyright: ignore[reportMissingImports]
from faust_parts import new_app, run  # pyright: ignore[reportMissingImports]

app, tickets, dispatch = new_app(processing_guarantee=os.environ["RIVAL_GUARANTEE"])


@app.agent(tickets)
async def carry(stream) -> None:
    async for event in stream.events():
        delivery = await dispatch.send(key=event.message.key, value=of(event.message, event.value))
        await delivery


if __name__ == "__main__":
    run(app)
