"""A ledger entry as the fields of a Redis hash, and back.

order     JSON     tool, arguments, provider, subject, source, proposal, and confirmations if there are any
content   text     `Command.content`
state     text     `EffectState`
known     JSON     provider_id, observed, status, verdict, settled_by, judged_again
sequence, sends, reads                      integers
at, sent                                    ms of the last transition, of the last sending
told, restored                              0 or 1
confirmation                                the digest of the one that it used up, if any
spent                                       where there is none left, the key of an effect that one allowed
undone                                      1 where it is known that nothing came of it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.receipt import EffectState, EffectStatus, JudgedAgain, SettledBy, verdict_json
from ticketgate.codecs.values.strict import JsonValue, encode, reread
from ticketgate.codecs.values.times import from_epoch_ms, parse_rfc3339
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.ledger.entries import Command, Entry, Order, Settlement


class EntryUnreadable(Exception):
    """An entry that this version cannot read, such as a newer one's. Nothing is done about its effect; others go on."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(
            f"effect {key} is not of this version's ledger ({why}); it is left as it is: run the version that wrote it"
        )
        self.key, self.why = key, why


def write_order(order: Order) -> bytes:
    """The field `order`. Raises ValueError for what is not JSON."""
    fields: dict[str, JsonValue] = {
        "tool": order.command.tool,
        "arguments": dict(order.command.arguments),
        "provider": order.provider,
        "subject": order.subject,
        "source": None if order.source is None else str(order.source),
        "proposal": None if order.proposal is None else dict(order.proposal),
    }
    # Only if there are any: an order is known again by these bytes, and older ones have none.
    return encode(fields | ({"confirmations": [*order.confirmations]} if order.confirmations else {}))


def write_known(settlement: Settlement) -> bytes:
    """The field `known`. Raises ValueError for what is not JSON."""
    judged_again = settlement.judged_again
    return encode(
        {
            "provider_id": settlement.provider_id,
            "observed": None if settlement.observed is None else dict(settlement.observed),
            "status": None if settlement.status is None else str(settlement.status),
            "verdict": verdict_json(settlement.verdict),
            "settled_by": None if settlement.settled_by is None else settlement.settled_by.to_json(),
            "judged_again": None if judged_again is None else judged_again.to_json(),
        }
    )


def read_entry(key: str, now_ms: int, fields: Mapping[str, bytes]) -> Entry:
    """The entry that a hash's fields are. They are ours: what they hold is not judged again."""
    # Not by the strict reader: it was checked when it was written.
    order = cast("dict[str, Any]", reread(fields["order"]))
    known = cast("dict[str, Any]", reread(fields.get("known", b"{}")))
    sent_ms = int(fields.get("sent", b"0"))
    verdict, settled_by, status = known.get("verdict"), known.get("settled_by"), known.get("status")
    judged_again = known.get("judged_again")
    return Entry(
        order=Order(
            command=Command(order["tool"], order["arguments"], key),
            provider=order["provider"],
            subject=order["subject"],
            source=None if order["source"] is None else Coordinate.parse(order["source"]),
            proposal=order["proposal"],
            confirmations=tuple(order.get("confirmations", ())),
        ),
        state=EffectState(fields["state"].decode()),
        sequence=int(fields["sequence"]),
        sends=int(fields["sends"]),
        age_s=max(0, now_ms - sent_ms) / 1000 if sent_ms else 0.0,
        at=from_epoch_ms(int(fields["at"])),
        provider_id=known.get("provider_id"),
        observed=known.get("observed"),
        status=None if status is None else EffectStatus(status),
        verdict=None
        if verdict is None
        else Verdict(
            Status(verdict["status"]),
            Stage(verdict["stage"]),
            tuple(verdict["reasons"]),
            verdict["next_step"],
        ),
        settled_by=None if settled_by is None else SettledBy(**settled_by),
        judged_again=None
        if judged_again is None
        else JudgedAgain(judged_again["evidence"], parse_rfc3339(judged_again["at"])),
        is_told=fields["told"] == b"1",
        is_restored=fields.get("restored", b"0") == b"1",
        confirmation=_text(fields, "confirmation"),
        spent_by=_text(fields, "spent"),
    )


def _text(fields: Mapping[str, bytes], name: str) -> str | None:
    return fields[name].decode() if name in fields else None


def read_reply(key: str, reply: Sequence[bytes]) -> Entry | None:
    """The entry that a script returned as the time in ms and then the hash, flat; None where there is no hash. Raises
    EntryUnreadable."""
    now_ms, *flat = reply
    if not flat:
        return None
    fields = {name.decode(): value for name, value in zip(flat[::2], flat[1::2], strict=True)}
    try:
        return read_entry(key, int(now_ms), fields)
    except (ValueError, KeyError, TypeError) as err:
        raise EntryUnreadable(key, f"{type(err).__name__}: {err}") from err
