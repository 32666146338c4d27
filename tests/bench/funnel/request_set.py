"""The request set: what was said, what the application knows, how the world stands, what the provider does, the truth.

Promise: the set follows from the seed alone, has every kind of trouble equally often, and each request carries the
truth it is scored by, which no system sees. Synthetic throughout; the catalogue is the funnel's `payments`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Final

from ticketgate.agents.effects.adapters.memory import ExecuteFault, ReadBackFault
from ticketgate.agents.funnel.evidence import Authority, Confirmation, World
from ticketgate.codecs.records.proposal import Request

AT: Final = datetime(2026, 9, 1, 12, tzinfo=UTC)
ACTOR: Final = "user_demo"
FLOOR: Final = "minimum_remaining_balance_gbp"


class Kind(StrEnum):
    """The trouble that a request brings."""

    PLAIN = "plain"
    MALFORMED = "malformed-output opportunity"
    AMBIGUOUS = "ambiguous intent"
    RELATED = "closely related tools"
    STALE = "stale state"
    UNCONFIRMED = "missing confirmation"
    UNSUPPORTED = "unsupported operation"
    TIME_OUT_BEFORE = "time-out before commit"
    TIME_OUT_AFTER = "time-out after commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is right. operation: the one that may be proposed, None if none may. values: its fields. may_effect:
    whether an effect with exactly these values is allowed; why_not: else why."""

    operation: str | None
    values: Mapping[str, str]
    may_effect: bool = False
    why_not: str = ""

    @property
    def wants_effect(self) -> bool:
        """Whether the right end is one effect."""
        return self.operation == "schedule" and self.may_effect

    @property
    def wants_quote(self) -> bool:
        """Whether the right end is a quote."""
        return self.operation == "quote"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request. utterance and values are what the model sees; tempting: amounts are written with a comma, and the
    text is full of punctuation; near_payee: another payee of almost that name. The rest is evidence and faults."""

    id: str
    kind: Kind
    utterance: str
    values: Mapping[str, str]
    request: Request
    authority: tuple[Authority, Authority]
    world: tuple[World, World]
    truth: Truth
    tempting: bool = False
    near_payee: str = ""
    execute: tuple[ExecuteFault, ...] = ()
    read_back: tuple[ReadBackFault, ...] = ()
    is_idempotent: bool = True


def make_requests(seed: int, each: int) -> tuple[Asked, ...]:
    """So many requests of each kind, in mixed order."""
    made = [
        _make(random.Random(f"{seed}:{kind}:{n}"), kind, f"{kind.name.lower()}_{n:03d}", n)
        for kind in Kind
        for n in range(each)
    ]
    random.Random(seed).shuffle(made)
    return tuple(made)


@dataclass(slots=True)
class _Draft:
    """A request in the making: a confirmed, permitted schedule until a kind spoils it."""

    operation: str = "schedule"
    utterance: str = (
        "Schedule {amount} to {payee} for {day}, but only if the account keeps {floor}. I confirm this."
    )
    said_operation: str | None = "schedule"
    has_floor: bool = True
    why_not: str = ""
    tempting: bool = False
    near: bool = False
    confirmed: bool = True
    confirmed_at: datetime = AT - timedelta(minutes=2)
    confirmed_change: dict[str, str] = field(default_factory=dict)
    limit: str = "5000.00"
    later_tools: frozenset[str] | None = None
    later_balance: str = ""
    newest: tuple[int, int] = (1, 1)
    execute: tuple[ExecuteFault, ...] = ()
    read_back: tuple[ReadBackFault, ...] = ()
    is_idempotent: bool = True


_QUOTE = "What would it cost to pay {amount} to {payee} on {day}? A quote, please."


def _as_quote(draft: _Draft, utterance: str = _QUOTE) -> None:
    draft.operation = draft.said_operation = "quote"
    draft.utterance, draft.has_floor = utterance, False


def _spoil(draft: _Draft, kind: Kind, n: int) -> None:  # noqa: C901 - a table, one row a kind
    """Bring the kind's trouble; n chooses between its forms in turn."""
    match kind:
        case Kind.PLAIN:
            if n % 2:
                _as_quote(draft)
        case Kind.MALFORMED:
            draft.tempting = True
            if n % 3 == 0:
                _as_quote(draft)
        case Kind.AMBIGUOUS:
            _make_ambiguous(draft, n)
        case Kind.RELATED:
            draft.near = True
            if n % 2:
                _as_quote(draft, "What would a payment of {amount} scheduled for {day} to {payee} cost?")
        case Kind.STALE:
            _make_stale(draft, n)
        case Kind.UNCONFIRMED:
            _make_unconfirmed(draft, n)
        case Kind.UNSUPPORTED:
            verb = ("cancel", "refund", "change")[n % 3]
            draft.operation, draft.said_operation, draft.confirmed = verb, None, False
            draft.has_floor, draft.why_not = False, "unsupported"
            draft.utterance = (
                f"{verb.capitalize()} the payment of {{amount}} to {{payee}} scheduled for {{day}}."
            )
        case Kind.TIME_OUT_BEFORE:
            draft.execute = ("timeout_before_commit",)
            draft.is_idempotent = n % 4 != 0
            draft.read_back = ("unsettled",) if n % 5 == 0 else ()
        case Kind.TIME_OUT_AFTER:
            draft.execute = ("timeout_after_commit",) * (2 if n % 6 == 0 else 1)
            draft.is_idempotent = n % 4 != 0
            draft.read_back = ("unreadable",) if n % 5 == 0 else ()


def _make_ambiguous(draft: _Draft, n: int) -> None:
    match n % 4:
        case 0:
            _as_quote(draft, "Could you look at a transfer of {amount} to {payee} on {day}? Schedule it only once"
                      " my partner agrees.")  # fmt: skip
        case 1:
            _as_quote(draft, "Find out about {amount} to {payee} on {day}, and schedule it, but not before my"
                      " partner agrees.")  # fmt: skip
        case 2:
            draft.operation, draft.said_operation, draft.confirmed = "unclear", None, False
            draft.has_floor, draft.why_not = False, "unclear"
            draft.utterance = "{payee}, {amount}, {day}, as usual."
        case _:
            # The floor is meant and not said: the field is compulsory, and nobody has its value.
            draft.has_floor, draft.why_not, draft.said_operation = False, "floor not said", None
            draft.utterance = (
                "Schedule {amount} to {payee} for {day}, but leave enough for the rent. I confirm this."
            )


def _make_stale(draft: _Draft, n: int) -> None:
    match n % 4:
        case 0:
            draft.newest, draft.why_not = (2, 2), "superseded"
        case 1:
            draft.newest, draft.why_not = (1, 2), "superseded before the effect"
        case 2:
            draft.later_balance, draft.why_not = "12.00", "balance fell"
        case _:
            draft.later_tools, draft.why_not = frozenset({"quote_transfer"}), "permission revoked"


def _make_unconfirmed(draft: _Draft, n: int) -> None:
    match n % 4:
        case 0 | 1:
            draft.confirmed, draft.why_not = False, "not confirmed"
            draft.utterance = draft.utterance.replace(" I confirm this.", "")
        case 2:
            draft.confirmed_change, draft.why_not = {"amount_gbp": "10.00"}, "another amount was confirmed"
        case _:
            draft.limit, draft.why_not = "15.00", "over the limit"


def _make(dice: random.Random, kind: Kind, name: str, n: int) -> Asked:
    draft = _Draft()
    _spoil(draft, kind, n)
    # Tempting amounts have a thousands comma.
    pounds = dice.randrange(1_000, 4_900) if draft.tempting else dice.randrange(20, 990)
    pence = dice.choice((0, 0, dice.randrange(1, 100)))
    day = date(2026, 9, 2) + timedelta(days=dice.randrange(60))
    payee = dice.randrange(2, 60)
    values = {
        "account_id": "acct_demo",
        "payee_id": f"supplier_{payee}",
        "amount_gbp": f"{pounds}.{pence:02d}",
        "payment_date": day.isoformat(),
    }
    floor = f"{dice.randrange(2, 30)}00.00"
    conditions = {FLOOR: floor} if draft.has_floor else {}
    return Asked(
        id=name,
        kind=kind,
        utterance=draft.utterance.format(
            amount=f"£{pounds:,}.{pence:02d}",
            payee=f"supplier {payee}",
            day=f"{day:%d/%m/%Y}",
            floor=f"£{floor}",
        ),
        values={**values, **conditions},
        request=_request(draft, values, conditions, name),
        authority=_authorities(draft, {**values, **conditions}, name),
        world=_worlds(draft),
        truth=Truth(
            operation=draft.said_operation,
            values={**values, **conditions},
            may_effect=draft.said_operation == "schedule" and not draft.why_not,
            why_not=draft.why_not
            or ("" if draft.said_operation == "schedule" else "only a quote was asked for"),
        ),
        tempting=draft.tempting,
        near_payee=f"supplier_{payee}{payee % 10}" if draft.near else "",
        execute=draft.execute,
        read_back=draft.read_back,
        is_idempotent=draft.is_idempotent,
    )


def _request(draft: _Draft, values: dict[str, str], conditions: dict[str, str], name: str) -> Request:
    """As the application compiled it. The phase matters to a catalogue that narrows by it, and to nothing else."""
    is_effect = draft.operation == "schedule"
    return Request(
        operation=draft.operation,
        actor_id=ACTOR,
        phase="confirming" if is_effect else "exploring",
        values=values,
        conditions=conditions,
        control={"idempotency_key": f"bound-{name}"},
    )


def _authorities(draft: _Draft, bound: Mapping[str, str], name: str) -> tuple[Authority, Authority]:
    confirmation = Confirmation(
        event_id=f"yes-{name}",
        actor_id=ACTOR,
        operation="schedule",
        bound={**bound, "idempotency_key": f"bound-{name}", **draft.confirmed_change},
        confirmed_at=draft.confirmed_at,
    )
    may = draft.confirmed and draft.operation == "schedule"
    tools = frozenset({"quote_transfer", "schedule_transfer"})

    def authority(tools: frozenset[str], version: str) -> Authority:
        return Authority(
            actor_id=ACTOR,
            tools=tools,
            limits={"max_single_payment_gbp": draft.limit},
            confirmations=(confirmation,) if may else (),
            version=version,
        )

    return authority(tools, "1"), authority(tools if draft.later_tools is None else draft.later_tools, "2")


def _worlds(draft: _Draft) -> tuple[World, World]:
    balance = "20000.00"
    first, later = draft.newest
    return (
        World(facts={"current_balance_gbp": balance}, request_version=first, version="1"),
        World(
            facts={"current_balance_gbp": draft.later_balance or balance}, request_version=later, version="2"
        ),
    )
