"""Numbers that no float holds are kept as they were sent, wherever a record goes, and told apart by what they say."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, cast

import jiter
import orjson
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from ticketgate.codecs.records.decision import read_decision
from ticketgate.codecs.records.identity import fingerprint
from ticketgate.codecs.records.ticket import Ticket, decode_ticket
from ticketgate.codecs.values.printable import json_text
from ticketgate.codecs.values.strict import canonical, decode, encode
from ticketgate.store.ledger.entry_fields import read_entry, write_order
from ticketgate.streams.cli.output import print_json

from tests.inputs.test_round_trips import decided
from tests.support.effects import order
from tests.support.examples import some

LONG = "0.1234567890123456789012345"
numbers = st.from_regex(
    r"-?(0|[1-9][0-9]{0,30})\.[0-9]{1,40}([eE][+-]?[0-9]{1,2})?|-?[1-9][0-9]{0,3}[eE]-[0-9]{1,3}",
    fullmatch=True,
)


def meant(text: str) -> Decimal:
    """The number that a text writes; a float that is written with 17 digits is the one in its shortest form."""
    said, number = Decimal(text), float(text)
    return Decimal(repr(number)) if Decimal(f"{number:.17g}") == said else said


def is_large_float(value: object) -> bool:
    """Whether canonical JSON writes it as the integer that the float is, and not as its shortest form."""
    return type(value) is float and 2**53 <= abs(value) < 2**64


def same(one: bytes, other: str) -> bool:
    return Decimal(one.decode()) == meant(other)


@some
@given(numbers, numbers)
@example(LONG, LONG + "0")
@example("9007199254740993.0", "9007199254740993")
@example("1e-400", "0.0")
@example("0.10000000000000001", "0.1")
@example("12.340000000000000000000000", "12.34")
def test_a_number_is_written_as_it_was_read_and_is_itself_alone(one: str, other: str) -> None:
    read, another = decode(one.encode()), decode(other.encode())

    assume(not is_large_float(read) and not is_large_float(another))
    assert same(encode(read), one)
    assert decode(encode(read)) == read
    assert same(canonical(read), one)
    assert (canonical(read) == canonical(another)) == (meant(one) == meant(other))
    assert canonical(decode(canonical(read))) == canonical(read)
    assert json.loads(json_text([read]), parse_float=Decimal) == [meant(one)]


def test_many_of_them_stand_each_in_its_place() -> None:
    """As many as a record may have; one look for each would be the square of that."""
    sent = [f"0.12345678901234567{number:05}" for number in range(10_000)]
    read = decode(f"[{','.join(sent)}]".encode())

    assert json_text(read) == f"[{', '.join(sent)}]"
    assert json_text({"a": read, "b": "x"}, indent=1).count("0.1234567890123456709999") == 1


def test_a_ticket_keeps_it_on_its_way_through_decision_and_record() -> None:
    sent = f'{{"id":"T","state":{{"n":{LONG}}},"attributes":{{"vip":true,"deep":[{LONG}]}}}}'.encode()
    ticket, rounded = decode_ticket(sent), decode_ticket(sent.replace(LONG.encode(), b"0.12345678901234568"))
    assert isinstance(ticket, Ticket)
    assert isinstance(rounded, Ticket)

    data = decided(ticket, 0.9).encode()

    # The ticket's state and attribute, and the effect's argument.
    assert data.count(LONG.encode()) == 3
    assert fingerprint(ticket) != fingerprint(rounded)
    again: Any = read_decision(cast("Any", decode(data, max_bytes=len(data), is_our_own=True)))
    assert again.encode() == data


def test_an_effect_keeps_it_in_the_ledger() -> None:
    asked = order(amount=decode(LONG.encode()))
    fields = {
        "order": write_order(asked),
        "state": b"prepared",
        "sequence": b"1",
        "sends": b"0",
        "at": b"0",
        "told": b"0",
    }

    kept = read_entry("k1", 0, fields)

    assert LONG.encode() in fields["order"]
    assert kept.order.command.content == asked.command.content
    assert encode(kept.order.command.arguments["amount"]) == LONG.encode()


def test_a_command_prints_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    value = decode(f'{{"n":[{LONG}],"é":"0"}}'.encode())

    print_json(value)

    assert LONG in capsys.readouterr().out


@pytest.mark.parametrize("said", ['"7f3e21"', LONG, "12.5", "1e5"])
def test_a_record_is_read_once(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits before an e, as most ids have, look like a number that is rounded."""
    reads, read = list[bytes](), jiter.from_json

    def counted(data: bytes, **arguments: Any) -> object:
        reads.append(data)
        return read(data, **arguments)

    monkeypatch.setattr(jiter, "from_json", counted)
    data = f'{{"id":"7f3e","n":{said}}}'.encode()

    value = decode(data)

    assert isinstance(value, dict)
    assert reads == [data]


def test_plain_numbers_are_plain_floats() -> None:
    for text in ("0.1", "12.50", "1.5e300", "0.30000000000000004", "0.10000000000000001", "1e2"):
        read = decode(text.encode())

        assert type(read) is float
        assert encode(read) == orjson.dumps(float(text))
    assert type(decode(LONG.encode())) is not float
