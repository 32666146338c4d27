"""A worker of the next version, for as long as there is none: the present one, which reads `ticket/2` as well.

With this folder on PYTHONPATH, Python runs it before the worker. `ticket/2` stands for any next version: it has one
field more, `channel`, which this reader puts among the attributes.
"""

from __future__ import annotations

from ticketgate.codecs.records import ticket
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.versions import Versions
from ticketgate.codecs.verdict import Stage


def read_version_2(record: dict[str, JsonValue]) -> Ticket | Malformed:
    """As version 1, with the field `channel`."""
    fields = {name: value for name, value in record.items() if name not in ("schema", "channel")}
    attributes = fields.get("attributes", {})
    if not isinstance(record.get("channel", ""), str) or not isinstance(attributes, dict):
        return Malformed(Stage.SCHEMA, "wrong_type", "channel must be text")
    if "channel" in record:
        fields["attributes"] = {**attributes, "channel": record["channel"]}
    return ticket._read_version_1(fields)


ticket._VERSIONS = Versions("ticket", {1: ticket._read_version_1, 2: read_version_2})
