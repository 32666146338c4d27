"""What must have changed between an effect's acceptance and its second look, told from what the second look said.

Promise: the evidence of the first look, changed as the reasons say and in nothing else. No record holds the later
evidence, so where the reasons leave open what it was, `NotReproducible` says so.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ticketgate.agents.funnel.reproduce import NotReproducible
from ticketgate.agents.funnel.values import read_money
from ticketgate.codecs.pieces import Effect
from ticketgate.codecs.strict import JsonValue
from ticketgate.codecs.verdict import Stage, Verdict

_UNREADABLE = "evidence_unreadable:"


def changed_evidence(
    verdict: Verdict, evidence: Mapping[str, JsonValue], effect: Effect
) -> dict[str, JsonValue]:
    """The faults of a case whose accepted `effect` was stopped at its second look. evidence: of the first look.

    Raises NotReproducible.
    """
    unreadable: list[JsonValue] = [
        each.removeprefix(_UNREADABLE) for each in verdict.reasons if each.startswith(_UNREADABLE)
    ]
    if unreadable:
        return {"unreadable_before_effect": unreadable}
    if verdict.stage is Stage.AUTHORITY:
        return {"authority_before_effect": _less_authority(verdict, _copy(evidence["authority"]), effect)}
    if verdict.stage is Stage.WORLD_STATE:
        return {"world_before_effect": _other_world(verdict, _copy(evidence["world"]), effect)}
    raise _left_open(verdict)


def _less_authority(verdict: Verdict, authority: dict[str, Any], effect: Effect) -> JsonValue:
    limits: dict[str, JsonValue] = _copy(authority.get("limits"))
    authority["limits"] = limits
    for reason in verdict.reasons:
        name, _, told = reason.partition(":")
        if name == "tool_not_delegated":
            authority["tools"] = [tool for tool in authority.get("tools", ()) if tool != effect.tool]
        elif name == "explicit_confirmation_missing" and len(verdict.reasons) == 1:
            authority["confirmations"] = []
        elif name == "limit_unknown":
            limits.pop(told, None)
        elif len(limits) == 1 and _money(told) is not None:
            limits[next(iter(limits))] = told
        else:
            raise _left_open(verdict)
    return authority


def _other_world(verdict: Verdict, world: dict[str, Any], effect: Effect) -> JsonValue:
    facts: dict[str, JsonValue] = _copy(world.get("facts"))
    world["facts"] = facts
    for place, reason in enumerate(verdict.reasons):
        name, _, told = reason.partition(":")
        following = verdict.reasons[place + 1 :][:1]
        if name in ("request_superseded", "request_version_unknown"):
            world["request_version"] = int(told.rpartition("newest=")[2])
        elif name == "fact_unknown" and told in facts:
            del facts[told]
        elif name in facts and following and following[0].startswith("required:"):
            facts[name] = told
        elif following and following[0].startswith("required_floor:"):
            fact, value = _spent(verdict, facts, effect, told, following[0].partition(":")[2])
            facts[fact] = value
        elif name not in ("required", "required_floor"):
            raise _left_open(verdict)
    return world


def _spent(
    verdict: Verdict, facts: Mapping[str, JsonValue], effect: Effect, remaining: str, floor: str
) -> tuple[str, str]:
    """The one amount among the facts as it must have been, where one argument alone can have been taken from it."""
    amounts = [name for name, value in facts.items() if _money(value) is not None]
    taken = [
        amount
        for value in effect.arguments.values()
        if (amount := _money(value)) is not None and value != floor
    ]
    left = _money(remaining)
    if len(amounts) != 1 or len(taken) != 1 or left is None:
        raise _left_open(verdict)
    return amounts[0], f"{left + taken[0]:.2f}"


def _money(value: JsonValue) -> Decimal | None:
    try:
        return read_money(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _copy(value: JsonValue) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _left_open(verdict: Verdict) -> NotReproducible:
    return NotReproducible(
        f"it was stopped at the second look ({', '.join(verdict.reasons)}) by evidence that no record holds; export the"
        " decision from dispatch alone, and write faults.authority_before_effect or world_before_effect into its case"
    )
