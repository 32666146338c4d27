"""No client of ours makes a topic by asking for it.

A broker with auto.create.topics.enable makes a topic that a client merely asks after, with the broker's own partitions
and retention, unless the request forbids it. aiokafka's requests allow it, and it has no setting for that.
Promise: once this is imported, whatever aiokafka asks for in this process creates nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiokafka import client
from aiokafka.admin import client as admin
from aiokafka.protocol.metadata import MetadataRequest


class AskingOnly(MetadataRequest):  # type: ignore[misc]  # aiokafka has no types
    """A question for topics, of which none is made."""

    def __init__(
        self, topics: Sequence[str] | None = None, allow_auto_topic_creation: bool | None = None
    ) -> None:
        """`allow_auto_topic_creation` is not heeded."""
        super().__init__(None if topics is None else list(topics), allow_auto_topic_creation=False)


for each in (client, admin):
    vars(each)["MetadataRequest"] = AskingOnly
