"""What a rival in a storm writes for each record: its id, and where it lay, so that it can be judged by that."""

import json


def output(source) -> bytes:
    """Of anything that has topic, partition, offset and value."""
    return of(source, source.value)


def of(source, value: bytes) -> bytes:
    """Of a value that stands apart from what has its coordinate."""
    place = {"topic": source.topic, "partition": source.partition, "offset": source.offset}
    return json.dumps({"id": json.loads(value)["id"], "coordinate": place}).encode()
