"""The same work on Quix Streams. It hands over one record at a time, so each is claimed by a script of its own."""

from typing import Any

from quix_bench import app, dispatch, review, tickets  # pyright: ignore[reportMissingImports]
from quixstreams import message_context  # pyright: ignore[reportMissingImports]
from same_work import Made, Record, Work  # pyright: ignore[reportMissingImports]

work = Work()


def take(value: bytes, key: bytes, timestamp: int, headers: list[tuple[str, bytes]] | None) -> list[Made]:
    """What is to be sent for one record: one, or none."""
    source: Any = message_context()
    return work.do([Record(source.topic, source.partition, source.offset, value, headers or [])])


made = app.dataframe(tickets).apply(take, metadata=True, expand=True)
for topic in (dispatch, review):
    branch = made.filter(lambda each, wanted=topic.name: each.topic == wanted)
    branch = branch.set_headers(lambda each, *_: each.headers)
    branch.apply(lambda each: each.value).to_topic(topic)
app.run()
