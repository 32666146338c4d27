"""What may be changed about a good case so that it must not pass: every field, authority, state, order, time-out and
duplicate that its tool and its evidence have.

Promise: a mutation changes one thing. It is written as cases are, so that it can be run, read and kept as one.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

from ticketgate.agents.funnel.catalogue import Catalogue, FieldSpec, Tool
from ticketgate.agents.funnel.values import Value
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.times import rfc3339

Kind = Literal["field", "order", "authority", "state", "time-out", "duplicate"]
Line = dict[str, Any]

# never: nothing is accepted and nothing stands. open: not accepted, and one effect stands at most. once: one at most.
Must = Literal["never", "open", "once"]


@dataclass(frozen=True, slots=True)
class Mutation:
    """Cases in their order, the last of which is the one that is looked at; how many effects stand before it."""

    name: str
    kind: Kind
    must: Must
    lines: tuple[Line, ...]
    before: int = 0


def mutations(
    line: Mapping[str, Any], catalogue: Catalogue, tool_name: str, *, case: str
) -> Iterator[Mutation]:
    """Every mutation of a good case's line, which calls `tool_name`."""
    tool = catalogue.tools[tool_name]
    good: Line = {
        **copy.deepcopy(dict(line)),
        "name": case,
        "expect": {"status": "accept", "stage": "outcome"},
    }
    for kind, must, what, lines, before in (
        *_fields(good, tool),
        *_authority(good, tool, tool_name),
        *_state(good, tool),
        *_order(good, tool),
        *(_time_outs(good) if tool.is_effect else ()),
        *(_duplicates(good, tool) if tool.is_effect else ()),
    ):
        yield Mutation(f"{case}: {kind}: {what}", kind, must, tuple(lines), before)


_Found = tuple[Kind, Must, str, list[Line], int]


def _one(kind: Kind, what: str, line: Line, must: Must = "never") -> _Found:
    return kind, must, what, [line], 0


def _called(good: Line, change: Mapping[str, JsonValue], drop: str | None = None) -> Line:
    call = json.loads(good["call"])
    call["arguments"] = {**call["arguments"], **change}
    if drop is not None:
        del call["arguments"][drop]
    return {**good, "call": json.dumps(call)}


def _fields(good: Line, tool: Tool) -> Iterator[_Found]:
    given: dict[str, JsonValue] = json.loads(good["call"])["arguments"]
    bound = {**good["request"].get("values", {}), **good["request"].get("conditions", {})}
    for name, spec in tool.fields.items():
        if name not in given:
            continue
        if spec.is_asked_for or (name in bound and spec.role != "control"):
            yield _one("field", f"{name} is missing", _called(good, {}, name))
            yield _one("field", f"{name} is null", _called(good, {name: None}))  # which says the same
        yield _one("field", f"{name} is of another type", _called(good, {name: [given[name]]}))
        if spec.role != "interpretation":
            for other in _others(spec, spec.read(given[name])):
                yield _one("field", f"{name} is {other}", _called(good, {name: other}))
    yield _one("field", "a field that the tool has not", _called(good, {"zz_not_a_field": "x"}))
    call = json.loads(good["call"])
    yield _one(
        "field", "a tool that is not offered", {**good, "call": json.dumps({**call, "tool": "zz_no_tool"})}
    )
    yield _one("field", "the text ends too early", {**good, "call": good["call"][: len(good["call"]) // 2]})


def _others(spec: FieldSpec, value: Value) -> Iterator[JsonValue]:
    """Well-formed values that mean something else."""
    found = [spec.cases.wrong] if spec.cases is not None and spec.role == "fact" else []
    for each in (*found, *_near(spec, value)):
        try:
            if spec.read(each) != value:
                yield each
        except ValueError:
            continue  # not well formed, so that another gate than the one in question would stop it


def _near(spec: FieldSpec, value: Value) -> list[str | int]:
    """Values that are like one, as a slip of a model's is: a cent more, ten times as much, the next day."""
    match value:
        case bool():
            return [not value]
        case Decimal():
            return [f"{each:.2f}" for each in (value + Decimal("0.01"), value * 10, value / 100)]
        case int():
            return [value + 1, value * 10]
        case date():
            return [(value + timedelta(days=1)).isoformat()]
        case _:
            return [*spec.one_of] if spec.type == "choice" else [f"{value}0", value.swapcase()]


def _authority(good: Line, tool: Tool, tool_name: str) -> Iterator[_Found]:
    authority = good.get("authority")
    yield _one("authority", "nothing is known of the actor", {**good, "authority": None})
    if not isinstance(authority, dict):
        return
    less = {**authority, "tools": [each for each in authority.get("tools", []) if each != tool_name]}
    yield _one("authority", "the tool is not delegated", {**good, "authority": less})
    yield _one(
        "authority", "it is of another actor", {**good, "authority": {**authority, "actor_id": "zz_nobody"}}
    )
    if not tool.is_effect:
        return
    revoked = {**good.get("faults", {}), "authority_before_effect": less}
    yield _one("authority", "the permission is revoked before the effect", {**good, "faults": revoked})
    for limit in tool.limits:
        limits = authority.get("limits", {})
        without = {name: each for name, each in limits.items() if name != limit.limit}
        yield _one(
            "authority", f"no limit {limit.limit}", {**good, "authority": {**authority, "limits": without}}
        )
        low = {**authority, "limits": {**limits, limit.limit: "0.00"}}
        yield _one("authority", f"{limit.limit} is 0.00", {**good, "authority": low})
    if tool.channels:
        asked = {**good["request"], "channel": "zz_elsewhere"}
        yield _one("authority", "through another channel", {**good, "request": asked})
    if tool.confirmation is None:
        return
    given = authority.get("confirmations", [])
    yield _one("authority", "no confirmation", {**good, "authority": {**authority, "confirmations": []}})
    for name in tool.confirmation.binds:
        other = [{**each, "bound": {**each["bound"], name: "zz_other"}} for each in given]
        yield _one(
            "authority",
            f"the confirmation is of another {name}",
            {**good, "authority": {**authority, "confirmations": other}},
        )
    late = datetime.fromisoformat(good["at"]) + timedelta(seconds=tool.confirmation.max_age_s + 1)
    yield _one("authority", "the confirmation has expired", {**good, "at": rfc3339(late)})


def _state(good: Line, tool: Tool) -> Iterator[_Found]:
    world = good.get("world", {})
    facts: dict[str, Any] = world.get("facts", {})
    asked = {**good["request"].get("conditions", {}), **good["request"].get("values", {})}
    for each in tool.preconditions:
        if each.floor and each.floor not in asked:
            continue  # without a floor in the request there is nothing to keep
        without = {name: value for name, value in facts.items() if name != each.fact}
        # Below any floor; or a value that is in no list.
        broken = {**facts, each.fact: "-999999999.00" if each.floor else "zz_other"}
        for what, changed in (("is not known", without), ("is another", broken)):
            later = {**world, "facts": changed}
            yield _one("state", f"{each.fact} {what}", {**good, "world": later})
            if tool.is_effect:
                faults = {**good.get("faults", {}), "world_before_effect": later}
                yield _one("state", f"{each.fact} {what} before the effect", {**good, "faults": faults})
    for name in tool.offered.facts:
        line = {**good, "world": {**world, "facts": {**facts, name: "zz_other"}}}
        yield _one("state", f"{name} does not offer the tool", line)
    if tool.is_effect and tool.states is not None:
        for state in (*tool.states.undone, *tool.states.pending, "zz_not_declared"):
            faults = {**good.get("faults", {}), "read_back": [f"state:{state}"]}
            yield _one("state", f"what stands is {state}", {**good, "faults": faults}, "open")


def _order(good: Line, tool: Tool) -> Iterator[_Found]:
    world = good.get("world", {})
    newer = good["request"].get("version", 1) + 1
    superseded = {**good, "world": {**world, "request_version": newer}}
    yield _one("order", "the request was superseded", superseded)
    again = {**good, "case_id": good.get("case_id", good["name"]), "attempt": good.get("attempt", 1) + 1}
    first = {**good, "case_id": again["case_id"]}
    stands = 1 if tool.is_effect else 0
    yield "order", "never", "another attempt after the accepted one", [first, again], stands
    if tool.is_effect:
        later = {**good.get("faults", {}), "world_before_effect": {**world, "request_version": newer}}
        yield _one("order", "the request is superseded before the effect", {**good, "faults": later})


def _time_outs(good: Line) -> Iterator[_Found]:
    faults = good.get("faults", {})

    def line(**changed: Any) -> Line:
        return {**good, "faults": {**faults, **changed}}

    yield _one(
        "time-out", "after the commit, and nothing can be read",
        line(execute=["timeout_after_commit"], read_back=["unreadable"]), "open",
    )  # fmt: skip
    yield _one("time-out", "after the commit", line(execute=["timeout_after_commit"]), "once")
    yield _one("time-out", "before the commit", line(execute=["timeout_before_commit"]), "once")
    yield _one(
        "time-out", "before the commit, of a provider that is not idempotent",
        line(execute=["timeout_before_commit"], idempotent_by_key=False), "open",
    )  # fmt: skip
    yield _one(
        "time-out", "what stands is another effect",
        line(execute=["timeout_after_commit"], read_back=["altered"]), "open",
    )  # fmt: skip
    yield _one("time-out", "a success that cannot be read back", line(read_back=["unreadable"]), "open")
    yield _one("time-out", "the provider refuses", line(execute=["refused"]), "never")


def _duplicates(good: Line, tool: Tool) -> Iterator[_Found]:
    control = good["request"].get("control", {})
    if "idempotency_key" not in control:
        return
    other_case = {**good, "name": f"{good['name']} again", "case_id": "zz_other_case"}
    yield "duplicate", "once", "the same key in another case", [good, other_case], 1
    for name, spec in tool.fields.items():
        values = good["request"].get("values", {})
        if spec.role != "fact" or name not in values:
            continue
        for other in _others(spec, spec.read(values[name])):
            changed = _everywhere(other_case, name, other)
            yield "duplicate", "once", f"the same key for another {name}", [good, changed], 1
            break


def _everywhere(line: Line, name: str, value: JsonValue) -> Line:
    """The line as if another value had been asked for, confirmed and called."""
    changed = _called(line, {name: value})
    changed["request"] = {**line["request"], "values": {**line["request"]["values"], name: value}}
    if isinstance(authority := line.get("authority"), dict):
        confirmed = [
            {**each, "bound": {**each["bound"], name: value}} if name in each["bound"] else each
            for each in authority.get("confirmations", [])
        ]
        changed["authority"] = {**authority, "confirmations": confirmed}
    return changed
