"""1. A ticket is read strictly. Who it is (its key) and what it says (its fingerprint) are two things."""

from __future__ import annotations

from ticketgate.codecs import Malformed, Ticket, decode_ticket, fingerprint, ticket_key


def read(text: str) -> Ticket:
    ticket = decode_ticket(text.encode())
    assert isinstance(ticket, Ticket), ticket
    return ticket


def test_bytes_become_a_ticket() -> None:
    ticket = read('{"id": "T-1", "state": "I paid twice."}')

    assert (ticket.id, ticket.state) == ("T-1", "I paid twice.")


def test_bytes_that_are_no_ticket_become_a_reason_that_quotes_them() -> None:
    found = decode_ticket(b'{"id": "T-1", "state": "I paid twice.", "id": "T-2"}')

    assert isinstance(found, Malformed)
    assert 'duplicate key "id"' in found.reason


def test_a_ticket_sent_again_later_is_the_same_ticket() -> None:
    first = read('{"id": "T-1", "state": "I paid twice.", "received_at": "2026-11-29T18:00:00Z"}')
    again = read('{"id": "T-1", "state": "I paid twice.", "received_at": "2026-11-30T09:00:00Z"}')

    assert ticket_key("shop", first) == ticket_key("shop", again)
    assert fingerprint(first) == fingerprint(again)


def test_another_text_under_a_used_id_has_the_same_key_and_says_something_else() -> None:
    first = read('{"id": "T-1", "state": "I paid twice."}')
    other = read('{"id": "T-1", "state": "Close my account."}')

    assert ticket_key("shop", first) == ticket_key("shop", other)
    assert fingerprint(first) != fingerprint(other)


def test_two_deployments_never_share_a_key() -> None:
    ticket = read('{"id": "T-1", "state": "I paid twice."}')

    assert ticket_key("shop", ticket) != ticket_key("bank", ticket)
