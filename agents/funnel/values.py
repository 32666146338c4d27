"""The values of a call by their kind: what they may look like, when two are the same, how reasons write them.

Promise: two spellings are equal here exactly if they mean the same thing: `600.0` and `600.00` do, `acct_1` and
`Acct_1` do not. What is not plainly a value of its kind is refused and never coerced. An amount has the minor units of
its currency by ISO 4217 (JPY none, KWD three), and two places where its unit is no currency.
"""

import re
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Final, Literal

from ticketgate.codecs.values.malformed import quote, shorten
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.texts import apart
from ticketgate.codecs.values.times import read_date

Kind = Literal["identifier", "text", "choice", "money", "date", "integer", "boolean"]
Value = str | int | bool | Decimal | date

# ASCII digits alone: Decimal itself would take NaN, exponents, spaces, underscores and full-width digits. Fifteen
# digits before the point are beyond any amount, and keep sums exact in Decimal's 28.
_MONEY = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.([0-9]{1,4}))?")
# Of what is no currency, and what most currencies have.
USUAL_PLACES: Final = 2
_COUNTED = {0: "no places", 1: "one place", 2: "two places"}


def is_of_type(kind: Kind, given: JsonValue) -> bool:
    """Whether JSON's type is the one that a kind is written in. True and false are no numbers."""
    if kind == "integer":
        return isinstance(given, int) and not isinstance(given, bool)
    if kind == "boolean":
        return isinstance(given, bool)
    return isinstance(given, str)


@cache
def minor_units(unit: str | None) -> int | None:
    """How many places an amount in the currency of that ISO 4217 code has; None for what is no such currency."""
    if unit is None:
        return None
    # Here, for it reads its table when it is loaded, and most commands need none.
    from iso4217 import Currency

    try:
        exponent: int | None = Currency(unit).exponent
    except ValueError:
        return None
    return exponent


def places_of(unit: str | None) -> int:
    """How many places an amount of that unit has."""
    found = minor_units(unit)
    return USUAL_PLACES if found is None else found


def smallest(unit: str | None) -> Decimal:
    """The smallest amount of that unit: 0.01, 0.001, 1."""
    return Decimal(1).scaleb(-places_of(unit))


def read_value(kind: Kind, given: JsonValue, *, unit: str | None = None) -> Value:
    """The value that `given` writes. unit: of money. Raises ValueError that says what is wrong with it."""
    if isinstance(given, str):
        if kind == "money":
            return read_money(given, unit)
        if kind == "date":
            return read_date(given)
        if kind in ("identifier", "text", "choice"):
            return given
    elif isinstance(given, int) and is_of_type(kind, given):
        return given
    raise ValueError(f"not of the kind {kind}")


def read_money(text: str, unit: str | None = None) -> Decimal:
    """An amount with exactly the places of its unit. Raises ValueError unless it is a plain decimal that can be of it.

    Zeros may stand for minor units that a currency has not: 600.00 JPY is 600 JPY.
    """
    places = places_of(unit)
    most = max(places, USUAL_PLACES)
    match = _MONEY.fullmatch(text)
    if match is None or len(match[1] or "") > most:
        told = _COUNTED.get(most, f"{most} places")
        raise ValueError(f"not a decimal amount with at most {told}: {quote(text)}")
    if (match[1] or "")[places:].strip("0"):
        raise ValueError(f"{unit} has {_minor(places)}: {quote(text)}")
    # Adding zero turns -0.00 into 0.00.
    return Decimal(text).quantize(smallest(unit)) + 0


def _minor(places: int) -> str:
    return "no minor units" if places == 0 else f"minor units of {_COUNTED.get(places, f'{places} places')}"


def show(value: Value | None) -> str:
    """A value as reasons and receipts write it; `none` where there is none."""
    if value is None:
        return "none"
    return plain(str(to_wire(value))) if not isinstance(value, bool) else str(value).lower()


def plain(text: str) -> str:
    """Text of a stranger's as reasons write it: cut, and quoted where it could forge a line of a log."""
    return shorten(text) if text.isprintable() else quote(text)


def told_apart(one: object, other: object) -> str:
    """`:the first difference is …`, for two texts that a reason shows and a reader would take for one; else nothing."""
    if not (isinstance(one, str) and isinstance(other, str)):
        return ""
    why = apart(one, other)
    return f":{why}" if why else ""


def to_wire(value: Value) -> str | int | bool:
    """A value as JSON carries it, one spelling for equal values."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat() if isinstance(value, date) else value
