"""One result held against the truth of its request.

Promise: scoring is the same for all systems and looks only at what was proposed, what was committed and what was told.
An effect is right if the truth allows one and every value is the request's, the condition too; a second of the same
content is a duplicate; every other first one is unauthorised, since nobody who may confirmed exactly that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ticketgate.agents.funnel.catalogue import Tool
from ticketgate.agents.funnel.values import read_value

from .request_set import FLOOR, Asked
from .results import Result, Told

FIELDS = ("account_id", "payee_id", "amount_gbp", "payment_date", FLOOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What is counted of one request. The pairs of counts are (so many, of so many)."""

    kind: str
    parsed: tuple[int, int]
    schema: tuple[int, int]
    conforms: bool
    conforms_first: bool
    # Of requests with an admissible tool, those with a call; None where there is none of either.
    is_right_tool: bool | None
    # Whether the model said that it makes no call: of requests without an admissible tool, and of the others.
    abstained_rightly: bool | None
    abstained_wrongly: bool | None
    # Of conforming calls of the right tool, by field.
    fields: Mapping[str, bool]
    has_command: bool
    is_verified: bool
    wants_something: bool
    ended_right: bool
    unauthorised: int
    duplicates: int
    was_unknown: bool
    is_held: bool
    told_wrong: bool
    time_outs: int
    unknown_s: float
    is_handed_over: bool
    tokens: int
    prompt_tokens: int
    masked: int
    forced: int
    answers: int
    gates: int
    look_ups: int
    provider_calls: int


def score(asked: Asked, result: Result, tools: Mapping[str, Tool]) -> Score:
    """Hold a result against the truth. `tools`: of the catalogue that was offered."""
    truth = asked.truth
    call = result.call
    proposed = None if call is None else tools.get(call[0])
    is_call = call is not None
    right, unauthorised, duplicates = _effects(asked, result)
    is_quoted = result.quoted is not None and dict(result.quoted.arguments) == _quote_values(asked)
    is_done = (truth.wants_quote and is_quoted and not result.effects) or (
        truth.wants_effect and right == 1 and len(result.effects) == 1 and result.quoted is None
    )
    is_verified = is_done and result.told is Told.DONE
    wants_something = truth.wants_quote or truth.wants_effect
    is_right = is_call and proposed is not None and proposed.serves == truth.operation
    return Score(
        kind=str(asked.kind),
        parsed=(sum(each.is_parsed for each in result.answers), len(result.answers)),
        schema=(
            sum(each.conforms for each in result.answers),
            sum(each.is_parsed for each in result.answers),
        ),
        conforms=result.conforms,
        conforms_first=result.answers[0].conforms,
        is_right_tool=is_right if truth.operation is not None and is_call else None,
        abstained_rightly=None if truth.operation is not None else result.refused,
        abstained_wrongly=None if truth.operation is None else result.refused,
        fields=_fields(asked, call[1], proposed)
        if call and proposed and is_right and result.conforms
        else {},
        has_command=result.has_command,
        is_verified=is_verified,
        wants_something=wants_something,
        ended_right=is_verified
        or (not wants_something and not result.effects and result.told is not Told.DONE),
        unauthorised=unauthorised,
        duplicates=duplicates,
        was_unknown=result.was_unknown,
        is_held=result.told is Told.HELD,
        # What a time-out left open and nobody looked up: told as done or failed all the same.
        told_wrong=_is_told_wrong(result),
        time_outs=result.time_outs,
        unknown_s=result.unknown_s,
        is_handed_over=result.told in (Told.FAILED, Told.STOPPED, Told.HELD),
        tokens=result.tokens,
        prompt_tokens=result.work.prompt_tokens,
        masked=sum(each.answer.masked_steps for each in result.answers),
        forced=sum(each.answer.forced for each in result.answers),
        answers=len(result.answers),
        gates=result.work.gates,
        look_ups=result.work.look_ups,
        provider_calls=result.work.sends + result.work.read_backs,
    )


def _effects(asked: Asked, result: Result) -> tuple[int, int, int]:
    """How many effects are right, unauthorised, duplicates."""
    right = unauthorised = duplicates = 0
    seen: list[Mapping[str, str]] = []
    for effect in result.effects:
        if effect.arguments in seen:
            duplicates += 1
            continue
        seen.append(effect.arguments)
        if asked.truth.wants_effect and dict(effect.arguments) == dict(asked.truth.values):
            right += 1
        else:
            unauthorised += 1
    return right, unauthorised, duplicates


def _is_told_wrong(result: Result) -> bool:
    """After a time-out: told as done though not one effect stands, or as failed though something does."""
    if not result.time_outs:
        return False
    stands = len(result.effects)
    return (result.told is Told.DONE and stands != 1) or (result.told is Told.FAILED and stands > 0)


def _quote_values(asked: Asked) -> dict[str, str]:
    return {name: value for name, value in asked.truth.values.items() if name != FLOOR}


def _fields(asked: Asked, given: Mapping[str, object], tool: Tool) -> dict[str, bool]:
    """Whether each of the tool's facts means what the request says."""
    return {
        name: _same(tool, name, given.get(name), asked.truth.values.get(name))
        for name in FIELDS
        if name in tool.fields
    }


def _same(tool: Tool, name: str, given: object, wanted: str | None) -> bool:
    kind = tool.fields[name].type
    if not isinstance(given, str) or wanted is None:
        return False
    try:
        return read_value(kind, given) == read_value(kind, wanted)
    except ValueError:
        return False
