"""Proposed payments for the delivery tests: what an application sends, its model's call in it, and the evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from .deployment import Sent
from .payments import PaymentServer

ACTOR = "user_demo"
FLOOR = "1000.00"
ENOUGH = {"facts": {"current_balance_gbp": "3000.00"}, "version": "ledger-1"}


def values(amount: str = "600.00", **changes: str) -> dict[str, str]:
    """What a request binds."""
    return {
        "account_id": "acct_demo",
        "payee_id": "supplier_7",
        "amount_gbp": amount,
        "payment_date": "2026-09-04",
        **changes,
    }


def call(tool: str = "schedule_transfer", **changes: str) -> str:
    """A model's call: right for a request of £600 unless told otherwise."""
    arguments = {**values(), "minimum_remaining_balance_gbp": FLOOR, **changes}
    if tool == "quote_transfer":
        del arguments["minimum_remaining_balance_gbp"]
    return json.dumps({"call_id": "c_1", "tool": tool, "arguments": arguments})


def key_of(case_id: str) -> str:
    """The key that `proposal` binds for a case."""
    return f"key-of-{case_id}"


def proposal(
    case_id: str,
    *,
    call: str = call(),
    attempt: int = 1,
    amount: str = "600.00",
    actor_id: str = ACTOR,
    operation: str = "schedule",
    **fields: Any,
) -> Sent:
    """One attempt at scheduling a payment, under its case's id as key. `fields` go over the request's."""
    request = {
        "operation": operation,
        "actor_id": actor_id,
        "purpose": "servicing",
        "values": values(amount),
        "conditions": {"minimum_remaining_balance_gbp": FLOOR},
        **({"control": {"idempotency_key": key_of(case_id)}} if operation == "schedule" else {}),
        **fields,
    }
    record = {
        "schema": "proposal/1",
        "case_id": case_id,
        "attempt": attempt,
        "call": call,
        "request": request,
    }
    return Sent(json.dumps(record).encode(), key=case_id.encode())


def authority(
    actor_id: str = ACTOR,
    *,
    amount: str = "600.00",
    most: str = "1000.00",
    cases: Sequence[str] = ("C-1",),
    **changes: Any,
) -> dict[str, Any]:
    """What an actor may do, with their confirmation of one payment for each case, given just now."""
    return {
        "actor_id": actor_id,
        "tools": ["quote_transfer", "schedule_transfer"],
        "limits": {"max_single_payment_gbp": most},
        "confirmations": [
            {
                "event_id": f"ev-{case_id}",
                "actor_id": actor_id,
                "operation": "schedule",
                "bound": {
                    **values(amount),
                    "minimum_remaining_balance_gbp": FLOOR,
                    "idempotency_key": key_of(case_id),
                },
                "confirmed_at": just_now(),
            }
            for case_id in cases
        ],
        "version": "authority-1",
        **changes,
    }


def just_now() -> str:
    """Two minutes ago: confirmations age."""
    return (datetime.now(UTC) - timedelta(minutes=2)).isoformat(timespec="seconds").replace("+00:00", "Z")


def confirmed_now(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """An authority as it is recorded in a file of cases, its confirmations given just now."""
    confirmations = [{**each, "confirmed_at": just_now()} for each in evidence["confirmations"]]
    return {**evidence, "confirmations": confirmations}


# What nobody but an operator can say; here the tests themselves show it.
STANDS = {
    "irreversible": (
        "cases_run",
        "selection_measured",
        "failure_profile",
        "loss_bounded",
        "provider_key_tested",
        "settle_time_measured",
        "reconcile_staffed",
    ),
    "reversible": ("cases_run", "undo_tried"),
}


def funnel_file(
    path: Path,
    bank: PaymentServer,
    *,
    idempotent_by_key: bool = True,
    settle_s: float = 1.0,
    timeout_s: float = 0.7,
    automatic: bool = True,
) -> Path:
    """A funnel for the built-in payments, whose evidence and provider are the tests' server."""
    # The release grid lets nothing that costs be automatic at a provider that is not idempotent by key.
    consequence = "irreversible" if idempotent_by_key else "reversible"
    stands = "\n".join(f'{each} = "tests/delivery"' for each in STANDS[consequence])
    path.write_text(
        f"""catalogue = "payments"

[lookup.authority]
adapter = "http"
url = "{bank.url}/authority/{{actor_id}}"

[lookup.world]
adapter = "http"
url = "{bank.url}/world"

[providers.bank]
adapter = "http"
url = "{bank.url}/transfers"
read_back_url = "{bank.url}/transfers/by-key/{{key}}"
idempotent_by_key = {str(idempotent_by_key).lower()}
settle_s = {settle_s}
timeout_s = {timeout_s}

[tools.schedule_transfer]
provider = "bank"
contribution = "arguments"
consequence = "{consequence}"
automatic = {str(automatic).lower()}

[tools.schedule_transfer.stands]
{stands}
"""
    )
    return path
