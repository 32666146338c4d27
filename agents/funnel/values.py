"""The values of a call by their kind: what they may look like, when two are the same, how reasons write them.

Promise: two spellings are equal here exactly if they mean the same thing: `600.0` and `600.00` do, `acct_1` and
`Acct_1` do not. What is not plainly a value of its kind is refused and never coerced.
"""

import re
from datetime import date
from decimal import Decimal
from typing import Literal

from ticketgate.codecs.values.malformed import quote, shorten
from ticketgate.codecs.values.strict import JsonValue

Kind = Literal["identifier", "text", "choice", "money", "date", "integer", "boolean"]
Value = str | int | bool | Decimal | date

# ASCII digits alone: Decimal itself would take NaN, exponents, spaces, underscores and full-width digits. Fifteen
# digits before the point are beyond any amount, and keep sums exact in Decimal's 28.
_MONEY = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]{1,2})?")
# date.fromisoformat would take 20260904 and 2026-W36-5 as well.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CENT = Decimal("0.01")


def is_of_type(kind: Kind, given: JsonValue) -> bool:
    """Whether JSON's type is the one that a kind is written in. True and false are no numbers."""
    if kind == "integer":
        return isinstance(given, int) and not isinstance(given, bool)
    if kind == "boolean":
        return isinstance(given, bool)
    return isinstance(given, str)


def read_value(kind: Kind, given: JsonValue) -> Value:
    """The value that `given` writes. Raises ValueError that says what is wrong with it."""
    if isinstance(given, str):
        if kind == "money":
            return read_money(given)
        if kind == "date":
            return _read_date(given)
        if kind in ("identifier", "text", "choice"):
            return given
    elif isinstance(given, int) and is_of_type(kind, given):
        return given
    raise ValueError(f"not of the kind {kind}")


def read_money(text: str) -> Decimal:
    """An amount with exactly two places. Raises ValueError unless it is a plain decimal with at most two."""
    if _MONEY.fullmatch(text) is None:
        raise ValueError(f"not a decimal amount with at most two places: {quote(text)}")
    # Adding zero turns -0.00 into 0.00.
    return Decimal(text).quantize(_CENT) + 0


def show(value: Value | None) -> str:
    """A value as reasons and receipts write it; `none` where there is none."""
    if value is None:
        return "none"
    return plain(str(to_wire(value))) if not isinstance(value, bool) else str(value).lower()


def plain(text: str) -> str:
    """Text of a stranger's as reasons write it: cut, and quoted where it could forge a line of a log."""
    return shorten(text) if text.isprintable() else quote(text)


def to_wire(value: Value) -> str | int | bool:
    """A value as JSON carries it, one spelling for equal values."""
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    return value.isoformat() if isinstance(value, date) else value


def _read_date(text: str) -> date:
    try:
        if _DATE.fullmatch(text) is None:
            raise ValueError
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"not a date such as 2026-09-04: {quote(text)}") from None
