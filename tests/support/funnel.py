"""Builders for the tests of the funnel: a test shows only what matters to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Authority, Confirmation, World
from ticketgate.agents.funnel.file.catalogue_file import load_catalogue
from ticketgate.agents.funnel.repair import Attempt
from ticketgate.agents.workbench.funnel.process import Outcome, process
from ticketgate.codecs.records.proposal import Proposal, Request

PAYMENTS = load_catalogue("payments")
SUPPORT = load_catalogue("support")
AT = datetime(2026, 9, 1, 12, tzinfo=UTC)


def unkeyed(catalogue: Catalogue = PAYMENTS, tool: str = "schedule_transfer") -> Catalogue:
    """The catalogue with a confirmation that binds no key."""
    found = catalogue.tools[tool]
    assert found.confirmation is not None
    binds = tuple(name for name in found.confirmation.binds if name != "idempotency_key")
    rule = replace(found.confirmation, binds=binds)
    return replace(catalogue, tools={**catalogue.tools, tool: replace(found, confirmation=rule)})


KEY = "exactly-once-demo"
VALUES = {
    "account_id": "acct_demo",
    "payee_id": "supplier_7",
    "amount_gbp": "600.00",
    "payment_date": "2026-09-04",
}
FLOOR = {"minimum_remaining_balance_gbp": "1000.00"}


def request(operation: str = "schedule", **changed: Any) -> Request:
    """The payment that is asked for, with the values that a test changes."""
    values = {**VALUES, **{name: value for name, value in changed.items() if name in VALUES}}
    rest = {name: value for name, value in changed.items() if name not in VALUES}
    defaults: dict[str, Any] = {
        "operation": operation,
        "actor_id": "user_demo",
        "values": values,
        "conditions": FLOOR,
        "control": {"idempotency_key": KEY},
    }
    return Request(**{**defaults, **rest})


def arguments(**changed: Any) -> dict[str, Any]:
    """The schedule's arguments as asked for; a value of None leaves one out."""
    given = {**VALUES, **FLOOR, **changed}
    return {name: value for name, value in given.items() if value is not None}


def call(tool: str = "schedule_transfer", **changed: Any) -> str:
    """A call's text, with the schedule's arguments and what a test changes."""
    return bare_call(arguments(**changed), tool)


def bare_call(given: Mapping[str, Any], tool: str = "schedule_transfer") -> str:
    """A call's text with exactly these arguments."""
    return json.dumps({"call_id": "c_1", "tool": tool, "arguments": dict(given)})


def confirmation(key: str = KEY, **changed: Any) -> Confirmation:
    """A yes to the payment as asked for under a key; bound values that a test changes."""
    return Confirmation(
        event_id="ev_1" if key == KEY else f"yes-to-{key}",
        actor_id="user_demo",
        operation="schedule",
        bound={**VALUES, **FLOOR, "idempotency_key": key, **changed},
        confirmed_at=datetime(2026, 9, 1, 11, 58, tzinfo=UTC),
    )


def authority(limit: str = "1000.00", key: str = KEY, **changed: Any) -> Authority:
    """An actor who may quote and schedule, and has confirmed the payment under a key."""
    defaults: dict[str, Any] = {
        "actor_id": "user_demo",
        "tools": frozenset({"quote_transfer", "schedule_transfer"}),
        "limits": {"max_single_payment_gbp": limit},
        "confirmations": (confirmation(key),),
    }
    return Authority(**{**defaults, **changed})


class Evidence:
    """A look-up that says one thing when it is first asked, and if told so another before the effect."""

    def __init__(
        self,
        first: Authority | None,
        world: World,
        later: Authority | None = None,
        later_world: World | None = None,
    ) -> None:
        self.authorities = [first, first if later is None else later]
        self.worlds = [world, world if later_world is None else later_world]

    async def authority(self, proposal: Proposal) -> Authority | None:
        return self.authorities.pop(0)

    async def world(self, proposal: Proposal) -> World:
        return self.worlds.pop(0)


WORLD = World(facts={"current_balance_gbp": "3000.00"})


def run(
    text: str,
    *,
    asked: Request | None = None,
    may: Authority | None = None,
    world: World = WORLD,
    later: Authority | None = None,
    later_world: World | None = None,
    provider: MemoryProvider | None = None,
    committed: Sequence[Attempt] = (),
    catalogue: Any = PAYMENTS,
    case_id: str = "case_1",
) -> Outcome:
    """One proposal through the funnel."""
    proposal = Proposal(
        case_id=case_id,
        attempt=len(committed) + 1,
        call=text,
        request=asked if asked is not None else request(),
    )
    return asyncio.run(
        process(
            proposal,
            catalogue=catalogue,
            lookup=Evidence(authority() if may is None else may, world, later, later_world),
            port=MemoryProvider() if provider is None else provider,
            at=AT,
            namespace="tests",
            committed=committed,
        )
    )


def said(outcome: Outcome) -> tuple[str, str, tuple[str, ...]]:
    """Status, stage and reasons."""
    verdict = outcome.verdict
    return str(verdict.status), str(verdict.stage), verdict.reasons


def attempt(text: str, outcome: Outcome) -> Attempt:
    """What is committed of an attempt."""
    return Attempt(
        outcome.decision.attempt,
        text,
        outcome.verdict,
        () if outcome.repair is None else outcome.repair.permitted,
    )


def with_conditions(asked: Request, **conditions: str) -> Request:
    """The request with these conditions instead."""
    return replace(asked, conditions=conditions)
