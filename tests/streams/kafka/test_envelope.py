"""Records as lines of JSON: the same bytes come back, whatever they are."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ticketgate.streams.kafka.envelope import Headers, LineError, Record, read_line, write_line


@dataclass(frozen=True)
class Lying:
    """A record as it lies in a topic."""

    key: bytes | None = b"T-1"
    value: bytes | None = b'{"id":"T-1","state":"x"}'
    headers: Headers = ()
    topic: str = "tickets"
    partition: int = 2
    offset: int = 17
    timestamp: int = 1_796_000_000_123


def written(value: bytes | None) -> dict[str, object]:
    """The fields of value in the line of a record with this value."""
    line = json.loads(write_line(Lying(value=value)))
    return {name: each for name, each in line.items() if name.startswith("value")}


some_bytes = st.none() | st.binary(max_size=40) | st.text(max_size=20).map(str.encode)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
# As they are read: what is not UTF-8 comes as surrogate escapes.
header_names = st.text(max_size=8) | st.binary(max_size=8).map(
    lambda name: name.decode("utf-8", "surrogateescape")
)
spellings = st.sampled_from(({}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}))
json_bytes = st.builds(
    lambda value, spelling: json.dumps(value, **spelling).encode("utf-8", "surrogatepass"),
    json_values,
    spellings,
)


@given(
    key=some_bytes,
    value=some_bytes | json_bytes,
    headers=st.lists(st.tuples(header_names, some_bytes), max_size=3).map(tuple),
)
@example(key=None, value=None, headers=())
@example(key=b"", value=b"", headers=(("", b""), ("", None)))
@example(key=b"\xff", value=b"\xff\x00\n", headers=(("trace", b"\xfe"), ("trace", b"again")))
@example(key=b"k", value=b"{}", headers=((r"\xff", b"text"), ("\\xff\udcff", b"bytes"), ("\\\udcff", None)))
@example(key=b"k", value=b"null", headers=())
@example(key=b"k", value=b"\xef\xbb\xbf{}", headers=())
@example(key=b"k", value=b"[" * 64 + b"]" * 64, headers=())
@example(key=b"k", value=b'{"a":1,"a":2}', headers=())
@example(key=b"k", value=b'{"value":1}', headers=())
@example(key=b"k", value=b"1e400", headers=())
def test_a_record_comes_back_byte_for_byte(key: bytes | None, value: bytes | None, headers: Headers) -> None:
    line = write_line(Lying(key=key, value=value, headers=headers))

    record = read_line(line)

    assert (record.key, record.value, record.headers) == (key, value, headers)
    assert b"\n" not in line


def test_a_record_keeps_its_place_and_time() -> None:
    record = read_line(write_line(Lying(partition=2, timestamp=1_796_000_000_123)))

    assert (record.partition, record.timestamp_ms) == (2, 1_796_000_000_123)


def test_a_record_without_a_time_is_sent_with_the_clocks() -> None:
    assert read_line(write_line(Lying(timestamp=-1))).timestamp_ms is None


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (b'{"id":"T-1"}', {"value": {"id": "T-1"}}),
        (b'{"id": "T-1"}', {"value": {"id": "T-1"}, "value_text": '{"id": "T-1"}'}),
        (None, {"value": None}),
        (b"null", {"value": None, "value_text": "null"}),
        (b"", {"value_text": ""}),
        (b"{not json", {"value_text": "{not json"}),
        (b"\xff\xfe", {"value_base64": "//4="}),
    ],
)
def test_the_value_stands_as_json_wherever_it_is_json(value: bytes | None, fields: dict[str, object]) -> None:
    assert written(value) == fields


def test_a_bare_ticket_is_sent_as_it_stands_under_its_id() -> None:
    line = b' {"id": "T-\xc3\xa9", "state": "x"}\r'

    assert read_line(line) == Record(key="T-é".encode(), value=line.strip())


def test_a_bare_proposal_is_sent_under_its_cases_id() -> None:
    line = b'{"case_id": "C-1", "attempt": 1, "id": "another"}'

    assert read_line(line, key_field="case_id") == Record(key=b"C-1", value=line)


@pytest.mark.parametrize("line", [b'{"id":7,"state":"x"}', b'{"state":"x"}', b"{}"])
def test_a_ticket_without_a_usable_id_is_sent_without_a_key_for_the_gate_to_judge(line: bytes) -> None:
    assert read_line(line) == Record(key=None, value=line)


def test_a_value_that_another_tool_wrote_anew_is_the_same_value() -> None:
    line = json.loads(write_line(Lying(value=b'{"p": 1.0}')))
    line["value"] = {"p": 1}

    assert read_line(json.dumps(line).encode()).value == b'{"p": 1.0}'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{not json", "--raw sends lines as they are"),
        (b'"text"', "neither a ticket nor an envelope"),
        (b'{"id":"a","id":"b","state":""}', 'duplicate key "id"'),
        (b'{"key":"a","headers":[]}', "without value"),
        (b'{"value":1,"id":"T-1"}', 'unknown field "id"'),
        (b'{"value":{"a":1},"value_text":"{\\"a\\": 2}"}', "value and value_text differ; drop value_text"),
        (b'{"value_text":"x","value_base64":"eA=="}', "both stand"),
        (b'{"key":"x","key_base64":"eA==","value":1}', "both stand"),
        (b'{"value_base64":"e"}', "value_base64 is not base64"),
        (b'{"value_text":null}', "must be text, not null"),
        (b'{"value":1,"key":7}', "key must be text or null, not the number 7"),
        (b'{"value":1,"headers":{"a":"b"}}', "headers must be an array"),
        (b'{"value":1,"headers":[["a"]]}', "headers[0] must be [name, text]"),
        (b'{"value":1,"headers":[["a","b"],["a",{"base64":"eA==","x":1}]]}', "headers[1] must be"),
        (b'{"value":1,"headers":[[{"escaped":"a","x":1},"b"]]}', "headers[0] must be"),
        (b'{"value":1,"headers":[[{"escaped":"\\\\n"},"b"]]}', "headers[0]: a backslash stands for itself"),
        (b'{"value":1,"partition":-1}', "partition must be a whole number"),
        (b'{"value":1,"partition":true}', "partition must be a whole number"),
        (b'{"value":1,"timestamp_ms":1.5}', "timestamp_ms must be a whole number"),
    ],
)
def test_a_line_that_cannot_be_sent_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(LineError) as caught:
        read_line(line)

    assert reason in str(caught.value)
