"""What application code does that takes a parsed call for a permission.

It takes what it needs from whatever object the text parses to, executes it, and after a time-out executes it again:
under a new key, for a key belongs to a call and this is another. It looks nothing up and reads nothing back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation

from ticketgate.agents.effects.port import Command, Executed, TimedOut
from ticketgate.agents.funnel.catalogue import Tool

from .provider import Provider
from .request_set import FLOOR
from .results import Done, Result, Told

MOST_SENDS = 3


def read_call(text: str, tools: Mapping[str, Tool]) -> Done | None:
    """The call as the application's code understands it: what converts is taken. None where that raises."""
    try:
        document = json.loads(text)
        tool, given = tools[document["tool"]], document["arguments"]
        arguments = {
            "account_id": str(given["account_id"]),
            "payee_id": str(given["payee_id"]),
            "amount_gbp": _money(given["amount_gbp"]),
            "payment_date": date.fromisoformat(given["payment_date"]).isoformat(),
        }
        if tool.is_effect and given.get(FLOOR) is not None:
            arguments[FLOOR] = _money(given[FLOOR])
        return Done(tool.serves, arguments)
    except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation):
        return None


async def carry_out(done: Done, asked_id: str, provider: Provider, result: Result) -> None:
    """Execute a call, and again if no answer comes."""
    result.has_command = True
    if done.operation == "quote":
        result.quoted, result.told = done, Told.DONE
        return
    for attempt in range(MOST_SENDS):
        command = Command(done.operation, dict(done.arguments), f"{asked_id}-send-{attempt}")
        prepared = await provider.prepare(command)
        answer = await provider.execute(prepared)  # type: ignore[arg-type]  # it refuses nothing before sending
        if isinstance(answer, Executed):
            result.told = Told.DONE
            return
        if not isinstance(answer, TimedOut):
            break
    result.told = Told.FAILED


def _money(given: object) -> str:
    amount = Decimal(str(given))
    if not math.isfinite(amount) or amount < 0:
        raise ValueError
    return f"{amount:.2f}"
