"""Strict decoding by example: what is taken, what is refused, and in which words."""

from __future__ import annotations

import math
import time

import pytest
from ticketgate.codecs import DEFAULT_MAX_BYTES, Malformed, canonical, decode, encode

LIMIT = DEFAULT_MAX_BYTES


def refusal(data: bytes) -> Malformed:
    result = decode(data)
    assert isinstance(result, Malformed), f"taken as {result!r}"
    return result


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"id": "T-1", "state": ["a", null]}\r\n', {"id": "T-1", "state": ["a", None]}),
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"1e-999", 0.0),
        (b'"\\ud83d\\ude00 \\u0000"', "😀 \x00"),
        (b"[" * 64 + b"]" * 64, None),
        (b'"1e999 NaN 99999999999999999999999"', "1e999 NaN 99999999999999999999999"),
    ],
)
def test_json_within_the_limits_is_taken(data: bytes, value: object) -> None:
    result = decode(data)

    assert not isinstance(result, Malformed)
    assert value is None or result == value


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (b"", "empty_value", "empty value: zero bytes, where a JSON value must stand"),
        (b" \n", "empty_value", "empty value: only white space, where a JSON value must stand"),
        (b"\xef\xbb\xbf{}", "bom", "byte order mark before the JSON value: send UTF-8 without one"),
        (b'{"a":"caf\xe9"}', "not_utf8", "not UTF-8: byte 0xe9 at offset 9"),
        (b'"\xed\xa0\x80"', "not_utf8", "not UTF-8: byte 0xed at offset 1"),
        (b"please help", "not_json", 'not JSON: "please" where a value must stand, at line 1, column 1'),
        (b'{"a":1,}', "not_json", "not JSON: a comma with nothing after it at line 1, column 8"),
        (
            b"{'a':1}",
            "not_json",
            'not JSON: "\'" where a key in double quotes must stand, at line 1, column 2',
        ),
        (b'{"a" 1}', "not_json", 'not JSON: "1" where a colon after the key must stand, at line 1, column 6'),
        (b"[1\n 2]", "not_json", 'not JSON: "2" where a comma or ] must stand, at line 2, column 2'),
        (b'{"a":', "not_json", "not JSON: the end where a value must stand, at line 1, column 6"),
        (b'{"a":"x', "not_json", "not JSON: a string without an end begins at line 1, column 6"),
        (b'"a\x01"', "not_json", "not JSON: control character U+0001 in a string at line 1, column 3"),
        (
            b'"\\x41"',
            "not_json",
            'not JSON: no such escape as at the start of "\\\\x41\\"" at line 1, column 2',
        ),
        (b"01", "not_json", "not JSON: no such number as begins with 0 at line 1, column 1"),
        (b'{"a":NaN}', "nan", "NaN is not JSON at line 1, column 6"),
        (b"[-Infinity]", "infinity", "-Infinity is not JSON at line 1, column 2"),
        (b'{"a":1e999}', "number_out_of_range", "number out of range: 1e999"),
        (b"[-1e999]", "number_out_of_range", "number out of range: -1e999"),
        (b"18446744073709551616", "integer_out_of_range", "integer beyond 64 bits: 18446744073709551616"),
        (b"-9223372036854775809", "integer_out_of_range", "integer beyond 64 bits: -9223372036854775809"),
        (b'{"id":"a","id":"b"}', "duplicate_key", 'duplicate key "id" at $'),
        (b'{"id":"a","\\u0069d":"b"}', "duplicate_key", 'duplicate key "id" at $'),
        (b'{"attributes":{"id":1,"id":2}}', "duplicate_key", 'duplicate key "id" at $.attributes'),
        (b'{"a":[0,{"two words":{"":1,"":2}}]}', "duplicate_key", 'duplicate key "" at $.a[1]["two words"]'),
        (
            b'["ok","\\ud83d"]',
            "lone_surrogate",
            "lone surrogate in the string that begins at line 1, column 7",
        ),
        (b'{"\\ude00":1}', "lone_surrogate", "lone surrogate in the string that begins at line 1, column 2"),
        (b"[" * 65 + b"]" * 65, "too_deep", "nested more than 64 levels deep at line 1, column 65"),
        (b"{} x", "trailing_content", "trailing content after the JSON value at line 1, column 4"),
        (b'{"a":1}{"a":1}', "trailing_content", "trailing content after the JSON value at line 1, column 8"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_a_precise_reason(
    data: bytes, code: str, reason: str
) -> None:
    assert (refusal(data).code, refusal(data).reason) == (code, reason)


def test_a_value_of_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    exact = b'"' + b"x" * (LIMIT - 2) + b'"'

    assert not isinstance(decode(exact), Malformed)
    assert refusal(exact + b" ").code == "too_large"
    assert decode(b"[1, 2]", max_bytes=3) == Malformed(
        refusal(b"").stage, "too_large", "too large: 6 bytes, more than the 3 that are taken"
    )


HOSTILE = {
    "200,000 deep": b"[" * 200_000,
    "200,000 deep and closed": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 50_000,
    "a 5,000-digit integer": b"9" * 5_000,
    "an integer of the limit's size": b"-" + b"9" * (LIMIT - 1),
    "a number of the limit's size": b"1" * (LIMIT - 10) + b"e-262134",
    "an exponent of the limit's size": b"1e" + b"9" * (LIMIT - 2),
    "a fraction of the limit's size": b"0." + b"1" * (LIMIT - 2),
    "a 256 KiB key": b'{"' + b"k" * (LIMIT - 6) + b'":1}',
    "a 128 KiB key, twice": b'{"' + b"k" * 131_000 + b'":1,"' + b"k" * 131_000 + b'":1}',
    "40,000 keys, the first again": b"{" + b",".join(b'"%x":1' % n for n in range(30_000)) + b',"0":1}',
    "a string without an end": b'"' + b"a" * (LIMIT - 1),
    "escapes without an end": b'"' + b"\\\\" * (LIMIT // 2 - 1),
    "escaped pairs, then half of one": b'"' + b"\\ud83d\\ude00" * 21_000 + b'\\ud83d"',
    "white space": b"[" + b" " * (LIMIT - 1),
    "a broken end": b"[" + b"1," * (LIMIT // 2 - 1) + b"]",
    "line ends": b"[" + b"\n" * (LIMIT - 2) + b"x",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_document_costs_no_more_than_its_size(data: bytes) -> None:
    began = time.perf_counter()
    result = decode(data)
    took = time.perf_counter() - began

    # The slowest takes a quarter of a second on an idle machine; quadratic work would take minutes.
    assert took < 20
    assert not isinstance(result, Malformed) or len(result.reason) < 1_000


def test_a_reason_quotes_the_beginning_of_what_is_long_and_its_length() -> None:
    number, key = b"7" * 5_000, b"k" * 5_000

    assert refusal(number).reason == f"integer beyond 64 bits: {'7' * 64}… (5000 characters)"
    assert (
        refusal(b'{"%b":1,"%b":2}' % (key, key)).reason
        == f'duplicate key "{"k" * 64}…" (5000 characters) at $'
    )


def test_a_reason_cannot_be_made_to_write_a_second_log_line() -> None:
    assert refusal(b'{"a\\nforged":1,"a\\nforged":2}').reason == 'duplicate key "a\\nforged" at $'


@pytest.mark.parametrize(
    "value",
    [math.nan, [math.inf], {"a": {"b": (-math.inf,)}}, 2**64, {1: 2}, "\ud83d", object(), {"a": {1, 2}}],
)
def test_what_json_cannot_carry_is_not_written(value: object) -> None:
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        encode(value)
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        canonical(value)


def test_the_canonical_form_sorts_keys_and_writes_equal_numbers_alike() -> None:
    value = {"b": [1.0, -0.0, 0.1, 1e300, 1e16], "a": {"z": None, "é": True}}

    assert canonical(value) == '{"a":{"z":null,"é":true},"b":[1,0,0.1,1e+300,10000000000000000]}'.encode()
    assert value["b"] == [1.0, -0.0, 0.1, 1e300, 1e16], "the value given was changed"
