"""The ways in which the toy model may write a field's value, each with its logit."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from .prompt import Prompt
from .request_set import FLOOR, Asked
from .slots import Written
from .weights import Weights

AMOUNT = "amount_gbp"


def value_choices(field: str, kind: str, asked: Asked, prompt: Prompt, weights: Weights) -> list[Written]:
    """What the model may write for a field, what it means first; none twice."""
    found = list(_all(field, kind, asked, prompt, weights))
    if anchor := prompt.anchors.get(field):
        found.insert(0, Written(f'"{anchor}"', weights.anchored))
    if kept := prompt.kept.get(field):
        found.insert(0, Written(f'"{kept}"', weights.kept))
    unique: dict[str, Written] = {}
    for each in found:
        unique.setdefault(each.text, each)
    return list(unique.values())


def _all(field: str, kind: str, asked: Asked, prompt: Prompt, w: Weights) -> Iterator[Written]:
    meant = asked.values.get(field)
    if field == "idempotency_key":
        yield Written('"key_100001"', 0.0)
    elif field == "currency":
        yield Written('"GBP"', 0.0)
    elif field == "note":
        yield Written('"other"', 0.0)
    elif meant is None:
        # The request does not say: the model makes something up, or says that there is none.
        yield Written("null", 0.0 + _care(field, prompt, w))
        yield Written('"0.00"', w.invented_floor)
        yield Written('"1000.00"', w.invented_floor)
    elif kind == "money":
        yield from _money(field, meant, asked, prompt, w)
    elif kind == "date":
        yield from _date(meant, asked, w)
    else:
        yield Written(f'"{meant}"', 0.0)
        if field == "payee_id":
            near = asked.near_payee or f"{meant}0"
            yield Written(f'"{near}"', w.near_payee + (w.near_payee_present if asked.near_payee else 0.0))
        if field == "account_id":
            yield Written('"acct_other"', w.other_account)


def _money(field: str, meant: str, asked: Asked, prompt: Prompt, w: Weights) -> Iterator[Written]:
    tempted = asked.tempting
    whole, _, pence = meant.partition(".")
    yield Written(f'"{meant}"', 0.0)
    bare = w.bare_number + (w.bare_number_tempted if tempted else 0.0) + _care(field, prompt, w)
    yield Written(meant, bare)
    yield Written(f'"£{meant}"', w.pound_sign + _care(field, prompt, w))
    if len(whole) > 3:
        comma = w.thousands_comma + (w.thousands_comma_tempted if tempted else 0.0) + _care(field, prompt, w)
        yield Written(f'"{whole[:-3]},{whole[-3:]}.{pence}"', comma)
    if pence == "00":
        yield Written(f'"{whole}.0"', w.fewer_places)
        yield Written(f'"{whole}"', w.fewer_places)
    for place in range(1, len(whole)):
        # 600 becomes 660: the digit before, once more.
        if whole[place] != whole[place - 1]:
            drifted = whole[:place] + whole[place - 1] + whole[place + 1 :]
            yield Written(f'"{drifted}.{pence}"', w.drifted_digit)
            swapped = whole[: place - 1] + whole[place] + whole[place - 1] + whole[place + 1 :]
            if not swapped.startswith("0"):
                yield Written(f'"{swapped}.{pence}"', w.swapped_digits)
    yield Written(f'"{whole}0.{pence}"', w.ten_times)
    other = asked.values.get(FLOOR if field == AMOUNT else AMOUNT)
    if other is not None:
        yield Written(f'"{other}"', w.other_amount)


def _date(meant: str, asked: Asked, w: Weights) -> Iterator[Written]:
    day = date.fromisoformat(meant)
    yield Written(f'"{meant}"', 0.0)
    yield Written(f'"{day + timedelta(days=1)}"', w.next_day)
    yield Written(f'"{day:%d/%m/%Y}"', w.day_first + (w.day_first_tempted if asked.tempting else 0.0))
    yield Written(f'"{day:%Y%m%d}"', w.compact_date)


def _care(field: str, prompt: Prompt, w: Weights) -> float:
    """Less of a slip of form where the errors name the field."""
    return w.asked_again_field if any(field in error.split(":") for error in prompt.errors) else 0.0
