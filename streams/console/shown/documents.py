"""A record that nobody settles here, as its reader sees it: its fields, texts as they are.

Promise: pure; what is no JSON is told, and nothing raises.
"""

from __future__ import annotations

from ticketgate.codecs.records.ticket import read_ticket
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.strict import decode
from ticketgate.streams.console.shown.ticket_page import TicketText, text_of_parts, text_of_ticket

# Fields that the page shows in words beside.
_APART = ("schema", "ticket")


def document_parts(value: bytes, *, is_whole: bool) -> tuple[str, TicketText, TicketText | None]:
    """What kind of record it is, its fields, and the ticket in it, if there is one."""
    document = decode(value, max_bytes=max(len(value), 1))
    if not isinstance(document, dict):
        return "", text_of_parts([("", value.decode("utf-8", "replace"))], {}, is_whole=is_whole), None
    ticket = document.get("ticket")
    read = read_ticket(ticket) if isinstance(ticket, dict) else None
    fields = [(name, each) for name, each in document.items() if name not in _APART]
    return (
        str(document.get("schema", "")),
        text_of_parts(fields, {}, is_whole=is_whole),
        None if read is None or isinstance(read, Malformed) else text_of_ticket(read, is_whole=is_whole),
    )
