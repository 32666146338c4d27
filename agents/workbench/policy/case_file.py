"""A table of cases for a policy: answers, and the verdict that they should get. TOML (`[[cases]]`) or JSON lines.

Promise: what comes out can be judged; what cannot is refused by case and key. Answers may be written short, and then
mean answers of certainty: a noul as true, false or its probability, a choice as its label, a score as its level; or as
a table of probabilities. A mapped question's answer is its fact.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ticketgate.agents.policy.policy import Policy
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.json_text import json_lines
from ticketgate.codecs.files.positions import line_of, locate
from ticketgate.codecs.files.toml_text import read_toml
from ticketgate.codecs.systemone.questions import (
    ChoiceQuestion,
    NoulQuestion,
    Question,
    ScoreQuestion,
    name_of,
)
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.texts import alike, spelled
from ticketgate.codecs.verdict import Stage


class CaseError(ValueError):
    """The table cannot be used: where, what, and the way out, in one line. A person mends it."""


class CaseDocument(BaseModel):
    """One case as written. What is not expected (None) is not looked at."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str | None = None
    answers: dict[str, Any] = Field(default_factory=dict)
    attributes: dict[str, Any] = Field(default_factory=dict)
    state: Any = "a ticket"
    truncated: list[str] = Field(default_factory=list)
    expect: Literal["accept", "review"]
    stage: Annotated[Stage, Field(strict=False)] | None = None
    violations: list[str] | None = None
    selected: list[str] | None = None
    effects: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCase:
    """A case that can be judged: `given` is what `check.check` takes."""

    name: str
    given: dict[str, JsonValue]
    expected: CaseDocument


def read_cases(text: str, *, source: str, policy: Policy) -> tuple[CheckedCase, ...]:
    """The cases that a text writes, in order. Raises CaseError."""
    cases = tuple(
        _checked(value, place, where, policy)
        for place, (where, value) in enumerate(_written(text, source), start=1)
    )
    if not cases:
        raise CaseError(f'{source}: no cases; write [[cases]] with answers and expect = "accept" or "review"')
    return cases


def _written(text: str, source: str) -> Iterator[tuple[str, object]]:
    """Each case with where it stands."""
    try:
        if text.lstrip().startswith("{"):
            content = text.encode("utf-8", "surrogatepass")
            yield from ((f"{source}:{number}", value) for number, value in json_lines(content, source=source))
            return
        document = read_toml(text, source=source)
    except FileFault as err:
        raise CaseError(str(err)) from err
    others = [name for name in document if name != "cases"]
    if isinstance(document.get("cases"), dict):
        line = line_of(locate(text), ("cases",))
        raise CaseError(
            f"{source}:{line}: [cases] is one table, where each case has its own; write [[cases]]"
        )
    if others or not isinstance(document.get("cases", []), list):
        raise CaseError(
            f'{source}: unknown field "{(others or ["cases"])[0]}"; a table of cases has [[cases]] alone'
        )
    for place, value in enumerate(document.get("cases", []), start=1):
        yield f"{source}: case {place}", value


def _checked(value: object, place: int, where: str, policy: Policy) -> CheckedCase:
    try:
        written = CaseDocument.model_validate(value)
    except ValidationError as err:
        first = err.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "the case"
        known = ", ".join(CaseDocument.model_fields)
        raise CaseError(f"{where}: {key}: {first['msg'].lower()}; the fields are {known}") from None
    rules = {rule.id for rule in policy.rules}
    for rule_id in written.violations or ():
        if rule_id not in rules:
            raise CaseError(
                f'{where}: no rule "{rule_id}" in the policy; `ticketgate policy show` lists the ids'
            )
    answers: dict[str, JsonValue] = {}
    attributes: dict[str, JsonValue] = dict(written.attributes)
    for written_id, short in written.answers.items():
        question_id = spelled(written_id, policy.ids) or written_id
        if question_id in policy.mapped:
            attributes = _placed(attributes, policy, question_id, short)
        elif (question := policy.questions.get(question_id)) is not None:
            answers[question_id] = _answer(question, short, f"{where}: answers.{question_id}")
        else:
            raise CaseError(
                f'{where}: no question "{question_id}" in the policy; it asks {", ".join(policy.ids)}'
                f"{alike(question_id, policy.ids)}"
            )
    return CheckedCase(
        name=written.name or f"case {place}",
        given={
            "answers": answers,
            "attributes": attributes,
            "state": written.state,
            "truncated": list(written.truncated),
        },
        expected=written,
    )


def _placed(
    attributes: dict[str, JsonValue], policy: Policy, question_id: str, value: JsonValue
) -> dict[str, JsonValue]:
    keys = policy.mapped[question_id].path.keys
    merged: dict[str, JsonValue] = copy.deepcopy(attributes)
    inner = merged
    for key in keys[:-1]:
        below = inner.setdefault(key, {})
        if not isinstance(below, dict):
            below = inner[key] = {}
        inner = below
    inner[keys[-1]] = value
    return merged


def _answer(question: Question, short: object, where: str) -> JsonValue:
    """The answer as the protocol writes it; what is written whole is left as it is, to be judged as it is."""
    if isinstance(short, Mapping) and "type" in short:
        return dict(short)
    if isinstance(question, NoulQuestion):
        if isinstance(short, bool | int | float):
            return {"type": "noul", "noul": float(short)}
        raise CaseError(f"{where}: write true, false or a probability")
    # Written by the question's own values, given on by the protocol's labels.
    labels, names = question.labels, question.names
    chances: dict[str, JsonValue]
    if isinstance(short, Mapping):
        by_name = {spelled(str(name), names) or str(name): each for name, each in short.items()}
        chances = {label: by_name.get(name, 0.0) for label, name in zip(labels, names, strict=True)}
        strange = [name for name in by_name if name not in names]
    elif isinstance(short, list) and len(short) == len(labels):
        chances, strange = dict(zip(labels, short, strict=True)), []
    else:
        named = _named(question, short)
        chances = {label: float(name == named) for label, name in zip(labels, names, strict=True)}
        strange = [] if named is not None else [str(short)]
    if strange:
        twin = alike(strange[0], names)
        raise CaseError(f'{where}: no label "{strange[0]}"{twin}; its labels are {", ".join(names[:12])}')
    numbers = [value if isinstance(value, int | float) else 0.0 for value in chances.values()]
    mode = labels[max(range(len(labels)), key=lambda index: (numbers[index], -index))]
    if isinstance(question, ChoiceQuestion):
        return {"type": "choice", "choice": mode, "probabilities": chances}
    expected = sum(level * number for level, number in enumerate(numbers))
    return {"type": "score", "score": expected, "probabilities": chances}


def _named(question: ChoiceQuestion | ScoreQuestion, short: object) -> str | None:
    """The label that a value or its text means; a value before a text."""
    if short is None or isinstance(short, str | int | float):
        found = name_of(question, short)
        if found is not None:
            return found
    return str(short) if str(short) in question.names and not isinstance(short, bool) else None
