"""Who a ticket is, what it says, where it lies: keys, fingerprints, coordinates.

A key is SHA-256 over parts, each preceded by its length, so that no two lists of parts give the same bytes:

    for each part: its length in bytes as 8 bytes, big-endian; then its UTF-8 bytes

    ticket     "ticketgate key 1" namespace "ticket"   tenant "id"              ticket id
          or   "ticketgate key 1" namespace "ticket"   tenant "idempotency_key" the given key
    proposal   "ticketgate key 1" namespace "proposal" tenant case id           attempt (decimal)
    effect     "ticketgate effect 1" ticket's or proposal's key, place (decimal)

The first part tells the uses apart and carries the layout's version, `id` and `idempotency_key` keep a given
key from being taken for an id. No part names a model or a policy: a redeploy must not dispatch again. Claims
rest on these bytes, so they must never change; tests/codecs/ holds known values.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from typing import Final, NewType

from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.values.frozen import dataclass
from ticketgate.codecs.values.strict import JsonValue, canonical

__all__ = [
    "SETTLEMENT_SUFFIX",
    "Coordinate",
    "Fingerprint",
    "IdempotencyKey",
    "collision_key",
    "effect_key",
    "fingerprint",
    "proposal_fingerprint",
    "proposal_key",
    "settlement_key",
    "ticket_key",
]

# 64 hexadecimal digits, or such a key with a suffix (collision_key, settlement_key).
IdempotencyKey = NewType("IdempotencyKey", str)

SETTLEMENT_SUFFIX: Final = ":settlement"

# 64 hexadecimal digits.
Fingerprint = NewType("Fingerprint", str)

_COORDINATE = re.compile(r"([A-Za-z0-9._-]{1,249}):(0|[1-9][0-9]{0,9}):(0|[1-9][0-9]{0,18})", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Coordinate:
    """Where a record lies: input topic, partition, offset. As text `topic:partition:offset`."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Coordinate:
        """The coordinate that `text` writes. Raises ValueError if it is none."""
        match = _COORDINATE.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:300]!r} is no coordinate; it is written topic:partition:offset")
        return cls(match[1], int(match[2]), int(match[3]))


def ticket_key(namespace: str, ticket: Ticket) -> IdempotencyKey:
    """The key that a ticket's one effect is claimed under: by its id, or by the idempotency key it gives."""
    kind, name = (
        ("id", ticket.id) if ticket.idempotency_key is None else ("idempotency_key", ticket.idempotency_key)
    )
    head = _head("ticketgate key 1", namespace, "ticket")
    parts = head + _framed(ticket.tenant) + _head(kind) + _framed(name)
    return IdempotencyKey(hashlib.sha256(parts).hexdigest())


def proposal_key(namespace: str, tenant: str, case_id: str, attempt: int) -> IdempotencyKey:
    """The key of one attempt of a proposed call: another attempt at the same case is another key."""
    return IdempotencyKey(_hash("ticketgate key 1", namespace, "proposal", tenant, case_id, str(attempt)))


def fingerprint(ticket: Ticket) -> Fingerprint:
    """What the ticket says: SHA-256 of the canonical JSON of `attributes` and `state` alone.

    An honest retry with a new `received_at` or header is the same ticket.
    """
    said: dict[str, JsonValue] = {"attributes": ticket.attributes, "state": ticket.state}
    return Fingerprint(hashlib.sha256(canonical(said)).hexdigest())


def proposal_fingerprint(proposal: Proposal) -> Fingerprint:
    """What a proposal says: SHA-256 of the canonical JSON of `call` and `request` alone, the request written in full.

    Who proposed it and what is signed beside it are not part of it: an honest retry may carry a newer token.
    """
    said: dict[str, JsonValue] = {"call": proposal.call, "request": proposal.request.to_json()}
    return Fingerprint(hashlib.sha256(canonical(said)).hexdigest())


def collision_key(key: IdempotencyKey, other: Fingerprint) -> IdempotencyKey:
    """The derived key of a record that tells of a second content `other` under a claimed key."""
    return IdempotencyKey(f"{key}:{other}")


def settlement_key(key: IdempotencyKey) -> IdempotencyKey:
    """The derived key of a person's decision on the record with this key."""
    return IdempotencyKey(f"{key}{SETTLEMENT_SUFFIX}")


def effect_key(key: IdempotencyKey, place: int) -> str:
    """The key of one effect of the ticket with this key: `place` counts the policy's effects from 0.

    A decision that is taken again before it was committed names the same effects by the same keys.
    """
    return hashlib.sha256(_head("ticketgate effect 1") + _framed(key) + _head(str(place))).hexdigest()


def confirmation_digest(actor_id: str, event_id: str) -> str:
    """The name of one act of confirming, under which the ledger keeps what it was used for.

    Without a tenant: whoever proposes names that, and one yes would do for as many as they think of.
    """
    return _hash("ticketgate confirmation 1", actor_id, event_id)


def _hash(*parts: str) -> str:
    return hashlib.sha256(_all_framed(*parts)).hexdigest()


def _framed(part: str) -> bytes:
    """A part behind its length."""
    encoded = part.encode("utf-8")
    return len(encoded).to_bytes(8, "big") + encoded


def _all_framed(*parts: str) -> bytes:
    """Each part behind its length."""
    return b"".join(map(_framed, parts))


# Parts that are the same for every ticket of a worker.
_head = cache(_all_framed)
