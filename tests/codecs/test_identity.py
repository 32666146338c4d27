"""Keys and fingerprints: known values that must never change, and what must not be confused."""

from __future__ import annotations

import hashlib
import itertools

import pytest
from hypothesis import given
from ticketgate.codecs import (
    Coordinate,
    Fingerprint,
    IdempotencyKey,
    Ticket,
    collision_key,
    effect_key,
    fingerprint,
    proposal_key,
    settlement_key,
    ticket_key,
)

from ..support import examples


def test_keys_are_those_of_every_earlier_version() -> None:
    ticket = Ticket(
        "T-1001", "My card was charged twice.", tenant="north", attributes={"vip": True, "n": 1.0}
    )
    key = ticket_key("demo", ticket)

    assert key == "c81f6f08c61b76f39c480934c42293b47505f941e00df9aa7fe847668d4d965c"
    assert (
        ticket_key("demo", Ticket("T-1001", "", idempotency_key="order-77"))
        == "74a99a97be865521a50574e5d51e827e0c0a21732d589383d9b75da242b0f295"
    )
    assert (
        proposal_key("demo", "north", "C-7", 2)
        == "eab02130aead8fcf3192ed454e1ef80e776c166b717f2769e24b3b068320e251"
    )
    assert effect_key(key, 0) == "fea5b9a0c6ec060feec96f7f40f19d8f5bfe46ca78fdaad1447108bbac89a4f5"
    assert fingerprint(ticket) == "c289c3adf834e49432b28c27c3e1e0fc8bc96fb5a25b0e69084e7b64e1decfbe"


def test_a_key_is_the_hash_of_length_prefixed_parts() -> None:
    parts = [b"ticketgate key 1", b"demo", b"ticket", b"", b"id", "é".encode()]
    layout = b"".join(len(part).to_bytes(8, "big") + part for part in parts)

    assert ticket_key("demo", Ticket("é", "")) == hashlib.sha256(layout).hexdigest()


def test_neighbouring_parts_do_not_run_into_each_other() -> None:
    tickets = [
        Ticket("ab", ""),
        Ticket("b", "", tenant="a"),
        Ticket("", "", tenant="ab"),
        Ticket("a", "", tenant="b"),
        Ticket("other", "", idempotency_key="ab"),
        Ticket("id", "", tenant="ab"),
    ]
    keys = [ticket_key("n", ticket) for ticket in tickets]
    keys += [ticket_key("na", ticket) for ticket in tickets]
    keys += [proposal_key("n", "", "ab", 1), proposal_key("n", "", "a", 11), proposal_key("n", "", "ab", 11)]
    keys += [IdempotencyKey(effect_key(keys[0], place)) for place in range(12)]

    assert len(set(keys)) == len(keys)


def test_a_given_key_replaces_the_id_and_is_not_taken_for_one() -> None:
    given_key = "order-77"

    assert ticket_key("n", Ticket("a", "", idempotency_key=given_key)) == ticket_key(
        "n", Ticket("b", "", idempotency_key=given_key)
    )
    assert ticket_key("n", Ticket("a", "", idempotency_key=given_key)) != ticket_key(
        "n", Ticket(given_key, "")
    )


def test_a_fingerprint_covers_state_and_attributes_alone() -> None:
    first = Ticket("a", {"x": 1, "y": 2}, received_at="2026-11-29T10:00:00Z", attributes={"b": 1, "a": 0})
    retry = Ticket(
        "a", {"y": 2, "x": 1}, received_at="2026-11-29T10:05:00Z", attributes={"a": -0.0, "b": 1.0}
    )
    prints = [
        fingerprint(Ticket("a", "x")),
        fingerprint(Ticket("a", ["x"])),
        fingerprint(Ticket("a", "x", attributes={"x": None})),
        fingerprint(Ticket("a", "x", attributes={"x": True})),
        fingerprint(Ticket("a", "x", attributes={"x": 1})),
        fingerprint(Ticket("a", "x", attributes={"x": "1"})),
    ]

    assert fingerprint(first) == fingerprint(retry)
    assert all(one != other for one, other in itertools.combinations(prints, 2))


def test_derived_keys_name_the_key_they_come_from() -> None:
    key = IdempotencyKey("ab12")

    assert collision_key(key, Fingerprint("cd34")) == "ab12:cd34"
    assert settlement_key(key) == "ab12:settlement"


@examples.some
@given(examples.text, examples.text, examples.text, examples.text)
def test_different_identities_have_different_keys(tenant: str, name: str, tenant2: str, name2: str) -> None:
    one, other = Ticket(name, "", tenant=tenant), Ticket(name2, "", tenant=tenant2)

    assert (ticket_key("n", one) == ticket_key("n", other)) is ((tenant, name) == (tenant2, name2))


def test_a_coordinate_is_read_as_it_is_written() -> None:
    coordinate = Coordinate("support.tickets-1_a", 5, 9_223_372_036_854_775_807)

    assert str(coordinate) == "support.tickets-1_a:5:9223372036854775807"
    assert Coordinate.parse(str(coordinate)) == coordinate


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tickets",
        "tickets:0",
        "tickets:0:",
        ":0:1",
        "tickets:-1:0",
        "tickets:00:1",
        "t:0:1:2",
        "t:٣:1",
        "t:0:1\n",
    ],
)
def test_what_is_no_coordinate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="topic:partition:offset"):
        Coordinate.parse(text)
