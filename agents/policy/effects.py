"""What an accepted decision asks the world to do, with arguments filled in from the ticket and its labels.

Promise: filling in is substitution and nothing else. It is done once, so that text from a ticket which looks
like a reference stays text; what cannot be filled in is named, and then there is no effect at all.

References: `{ticket.id}` `{ticket.tenant}` `{attributes.a.b}` `{labels.QUESTION}`; `{{` and `}}` write braces.
A string that is one reference keeps the value's own type; inside other text only text, numbers and booleans fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, TypeAlias, assert_never, cast

from ticketgate.agents.policy.atoms import Atom, label
from ticketgate.agents.policy.attributes import AttributePath, Missing, attribute_path
from ticketgate.agents.policy.rules import all_hold
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import NoulQuestion, Question
from ticketgate.codecs.values.limits import MAX_DEPTH
from ticketgate.codecs.values.malformed import wrong_kind
from ticketgate.codecs.values.strict import JsonValue, encode, is_within_depth
from ticketgate.codecs.values.texts import find


@dataclass(frozen=True, slots=True)
class TicketField:
    """`{ticket.id}` or `{ticket.tenant}`."""

    name: Literal["id", "tenant"]


@dataclass(frozen=True, slots=True)
class LabelOf:
    """`{labels.kind}`: a noul's true or false, a choice's label, a score's level as a number; or its own value."""

    question_id: str
    question: Question


Reference = TicketField | AttributePath | LabelOf


@dataclass(frozen=True, slots=True)
class Text:
    """Text with references in it, in order."""

    parts: tuple[str | Reference, ...]


# A JSON value in which some strings are references or texts with references.
Template: TypeAlias = (
    "Reference | Text | bool | int | float | str | list[Template] | dict[str, Template] | None"
)


@dataclass(frozen=True, slots=True)
class ProposedEffect:
    """An effect of one accepted decision, arguments filled in. `place` is that of its template."""

    place: int
    tool: str
    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class EffectTemplate:
    """An effect as the policy declares it. `place` is its index there, from 0; its key is derived from it.

    constant: what it proposes, whatever the ticket; None if a ticket has to be looked into.
    """

    place: int
    when: tuple[Atom, ...]
    tool: str
    arguments: Mapping[str, Template]
    constant: ProposedEffect | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        arguments = dict(self.arguments)
        is_constant = not _refers(arguments) and is_within_depth(arguments, MAX_DEPTH)
        # Without a reference a template is its own value.
        own = ProposedEffect(self.place, self.tool, MappingProxyType(cast("dict[str, JsonValue]", arguments)))
        object.__setattr__(self, "constant", own if is_constant else None)


@dataclass(frozen=True, slots=True)
class Unfilled:
    """Why effects cannot be filled in: every reason, in the policy's order."""

    reasons: tuple[str, ...]


class TemplateError(ValueError):
    """An argument's text is no template. `what` says why, `remedy` what to write.

    names_nothing: it names a question that there is not.
    """

    def __init__(self, what: str, remedy: str, *, names_nothing: bool = False) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy, self.names_nothing = what, remedy, names_nothing


def fill_in(
    templates: tuple[EffectTemplate, ...], ticket: Ticket, selected: AbstractSet[str]
) -> tuple[ProposedEffect, ...] | Unfilled:
    """The effects whose condition holds, in the policy's order, or every reason why one cannot be had."""
    effects: list[ProposedEffect] = []
    reasons: list[str] = []
    for template in templates:
        if not all_hold(template.when, selected):
            continue
        if template.constant is not None:
            effects.append(template.constant)
            continue
        filling = _Filling(ticket, selected)
        arguments = {name: filling.fill(value) for name, value in template.arguments.items()}
        if not is_within_depth(arguments, MAX_DEPTH):
            # A template around an attribute as deep as a ticket may be: no reader would take the record.
            filling.reasons.append(f"its arguments are nested more than {MAX_DEPTH} levels deep")
        reasons += [f"effect {template.tool}: {reason}" for reason in filling.reasons]
        effects.append(ProposedEffect(template.place, template.tool, arguments))
    return Unfilled(tuple(dict.fromkeys(reasons))) if reasons else tuple(effects)


def _refers(template: Template) -> bool:
    """Whether a ticket or its labels have to be asked for anything in it."""
    if isinstance(template, list):
        return any(map(_refers, template))
    if isinstance(template, dict):
        return any(map(_refers, template.values()))
    return isinstance(template, TicketField | AttributePath | LabelOf | Text)


class _Filling:
    """One substitution over one effect's arguments; it gathers what is missing."""

    def __init__(self, ticket: Ticket, selected: AbstractSet[str]) -> None:
        self._ticket = ticket
        self._selected = selected
        self.reasons: list[str] = []

    def fill(self, template: Template) -> JsonValue:
        match template:
            case TicketField() | AttributePath() | LabelOf():
                value = self._look_up(template)
                return None if isinstance(value, Missing) else value
            case Text(parts):
                return "".join(part if isinstance(part, str) else self._as_text(part) for part in parts)
            case list():
                return [self.fill(each) for each in template]
            case dict():
                return {name: self.fill(each) for name, each in template.items()}
            case _:
                return template

    def _look_up(self, reference: Reference) -> JsonValue | Missing:
        match reference:
            case TicketField("id"):
                return self._ticket.id
            case TicketField():
                return self._ticket.tenant
            case AttributePath():
                value = reference.find(self._ticket.attributes)
                if isinstance(value, Missing):
                    self.reasons.append(f'the ticket has no attribute "{reference}"')
                return value
            case LabelOf(question_id, question):
                return selected_value(question_id, question, self._selected)
            case _:
                assert_never(reference)

    def _as_text(self, reference: Reference) -> str:
        value = self._look_up(reference)
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float) or (value is None and isinstance(reference, LabelOf)):
            # As JSON writes it: true, 7, 0.5. The same on every machine.
            return encode(value).decode()
        if not isinstance(value, Missing):
            self.reasons.append(
                f'attribute "{reference}" is {wrong_kind(value)} and cannot stand within text'
            )
        return ""


def selected_value(question_id: str, question: Question, selected: AbstractSet[str]) -> JsonValue:
    """What an assignment says of a question, in its own type; None where it says nothing."""
    if isinstance(question, NoulQuestion):
        return question_id in selected
    named = zip(question.names, question.meant, strict=True)
    return next((value for name, value in named if label(question_id, name) in selected), None)


_PIECE = re.compile(r"\{\{|\}\}|\{(?P<reference>[^{}]*)\}|[{}]|[^{}]+")


def read_template(text: str, questions: Mapping[str, Question]) -> Template:
    """The template that an argument's text writes: a str, a Reference or a Text.

    Raises TemplateError for a reference to nothing and for a brace on its own.
    """
    parts: list[str | Reference] = []
    for piece in _PIECE.finditer(text):
        written = piece.group()
        if piece["reference"] is not None:
            parts.append(_read_reference(piece["reference"], questions))
        elif written in ("{", "}"):
            raise TemplateError(
                f'"{text}" has a brace on its own', f'write "{written * 2}" for a brace that is meant'
            )
        else:
            parts.append(written[0] if written in ("{{", "}}") else written)
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]
    if any(not isinstance(part, str) for part in parts):
        return Text(tuple(parts))
    return "".join(str(part) for part in parts)


def _read_reference(name: str, questions: Mapping[str, Question]) -> Reference:
    root, *rest = name.split(".")
    match root, rest:
        case "ticket", ["id"]:
            return TicketField("id")
        case "ticket", ["tenant"]:
            return TicketField("tenant")
        case "labels", [_, *_]:
            found = find(name.partition(".")[2], questions)
            if found is None:
                raise TemplateError(
                    f'"{{{name}}}" refers to no question',
                    f"the questions are {', '.join(questions)}",
                    names_nothing=True,
                )
            return LabelOf(*found)
    path = attribute_path([root, *rest])
    if path is None:
        raise TemplateError(
            f'"{{{name}}}" refers to nothing',
            "write {ticket.id}, {ticket.tenant}, {attributes.NAME} or {labels.QUESTION}; {{ and }} for braces",
        )
    return path
