"""Reading topics from outside a group: to their end, a part of one, and what aiokafka cannot unpack.

Here: whole topics as of a moment, `--from` and `--until`, batches salvaged from their bytes.
Not here: how a lane reads its partition (`lane.taking.partition`), the records as JSON lines (`envelope`).
"""
