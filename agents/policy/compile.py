"""From a document of the right shape to a policy: every name resolved, every contradiction refused.

Promise: all problems are gathered before any is raised, so one reading shows what there is to mend. What is
legal but foolish (a rule that can never fire, say) is lint's to tell, not ours.
"""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType

from ticketgate.agents.cleaning import STEPS
from ticketgate.agents.policy.atoms import RESERVED_IN_IDS, Atom
from ticketgate.agents.policy.attributes import AttributePath, attribute_path
from ticketgate.agents.policy.compile_rules import compile_rules
from ticketgate.agents.policy.document import EffectDocument, QuestionDocument
from ticketgate.agents.policy.effects import EffectTemplate, Template, TemplateError, read_template
from ticketgate.agents.policy.errors import PolicyError
from ticketgate.agents.policy.examples import read_examples
from ticketgate.agents.policy.facts import MappedQuestion
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.resolve import Resolver
from ticketgate.agents.policy.written import Written
from ticketgate.codecs.files.positions import Path
from ticketgate.codecs.systemone.question_reading import read_question
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, QuestionError
from ticketgate.codecs.values.strict import JsonValue, canonical
from ticketgate.codecs.values.texts import apart, twins


def compile_policy(written: Written) -> Policy:
    """The policy that a document means. Raises PolicyError with every problem found."""
    document, names = written.document, Resolver(written)
    paths = {
        question_id: path
        for question_id, question in document.questions.items()
        if (path := _question(names, question_id, question)) is not None
    }
    _refuse_twins(names)
    examples = {
        name: read_examples(names, question, written_examples, ("questions", name, "examples"))
        for name, question in names.questions.items()
        if (written_examples := document.questions[name].examples) is not None
    }
    rules = compile_rules(names, document.rules)
    effects = tuple(_effect(names, place, effect) for place, effect in enumerate(document.effects))
    if names.problems:
        raise PolicyError(written.source, names.problems)
    scored = {name: each for name, each in names.questions.items() if name not in paths}
    mapped = {name: MappedQuestion(names.questions[name], path) for name, path in paths.items()}
    thresholds = {
        name: document.questions[name].threshold or document.threshold
        for name, each in scored.items()
        if isinstance(each, NoulQuestion)
    }
    return Policy(
        name=document.name,
        version=document.version,
        hash=document_hash(written.values),
        ids=tuple(names.questions),
        questions=MappingProxyType(scored),
        mapped=MappingProxyType(mapped),
        thresholds=MappingProxyType(thresholds),
        rules=rules,
        effects=effects,
        abstain_below=document.abstain_below,
        on_truncation=document.on_truncation,
        clean=tuple(step for step in STEPS if step in document.clean),
        examples=MappingProxyType(examples),
        document=written.values,
        source=written.source,
        lines=written.lines,
    )


def document_hash(values: Mapping[str, JsonValue]) -> str:
    """SHA-256 of the canonical document, hexadecimal.

    Canonical: JSON with sorted keys and no white space, the same from TOML and from JSON, comments and layout
    left out. Where the order of keys carries meaning, it is kept, by writing the table as an array of
    [key, value]: `questions` (the order of reasons) and `criteria` (ties go to the earlier label).
    """
    return hashlib.sha256(canonical(_ordered(values))).hexdigest()


def _ordered(values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    ordered = dict(values)
    questions = values.get("questions")
    if isinstance(questions, dict):
        pairs: list[JsonValue] = []
        for question_id, question in questions.items():
            if isinstance(question, dict) and isinstance(criteria := question.get("criteria"), dict):
                in_order: list[JsonValue] = [[name, each] for name, each in criteria.items()]
                question = {**question, "criteria": in_order}
            pairs.append([question_id, question])
        ordered["questions"] = pairs
    return ordered


def _question(names: Resolver, question_id: str, written: QuestionDocument) -> AttributePath | None:
    """Understand one question; the path of the attribute that answers it, if one does."""
    place: Path = ("questions", question_id)
    # Rules that name a question which is itself at fault would only repeat its problem.
    names.broken.add(question_id)
    if not question_id or question_id != question_id.strip() or RESERVED_IN_IDS & set(question_id):
        names.refuse(
            place,
            f'"{question_id}" cannot be a question\'s id',
            f"use none of {' '.join(sorted(RESERVED_IN_IDS))} and no blanks at its ends",
        )
        return None
    path = None
    given = {"type": written.type, "instructions": written.instructions, "criteria": written.criteria}
    if written.from_ is not None:
        path = attribute_path(written.from_.split("."))
        if path is None:
            names.refuse(
                (*place, "from"), f'"{written.from_}" is no attribute', 'write from = "attributes.NAME"'
            )
            return None
        # No model reads a mapped question, so it need not be worded; the contract wants some wording.
        given["instructions"] = written.instructions or written.from_
    if written.threshold is not None and (path is not None or written.type != "noul"):
        kind = "mapped" if path is not None else written.type
        names.refuse(
            (*place, "threshold"),
            f'"{question_id}" is a {kind} question and has no threshold',
            "remove it: a threshold cuts the probability of a noul that a model answers",
        )
    if written.shortlist is not None and path is not None:
        names.refuse(
            (*place, "shortlist"),
            f'"{question_id}" is a mapped question and has no shortlist',
            "remove it: no model is asked",
        )
    if written.examples is not None and path is not None:
        names.refuse(
            (*place, "examples"),
            f'"{question_id}" is a mapped question and has no examples',
            "remove them: no model is asked",
        )
    try:
        question = read_question(question_id, given, shortlist=written.shortlist, values=written.values)
    except QuestionError as err:
        part = (err.part,) if err.part is not None else ()
        names.refuse((*place, *part), str(err), "word it as `ticketgate manual policy` shows")
        return None
    if isinstance(question, ChoiceQuestion) and any(each != each.strip() for each in question.labels):
        names.refuse(
            (*place, "criteria"),
            f'question "{question_id}" has a label with blanks at its ends',
            "remove the blanks",
        )
        return None
    names.questions[question_id] = question
    names.broken.discard(question_id)
    return path


def _refuse_twins(names: Resolver) -> None:
    """Two questions, or two labels of one, that nobody can tell apart: what names one of them could mean either."""
    if (pair := twins(names.questions)) is not None:
        what = f'question "{pair[1]}" reads the same as "{pair[0]}"; {apart(*pair)}'
        names.refuse(("questions", pair[1]), what, "give one of them another name")
    for question_id, question in names.questions.items():
        if isinstance(question, ChoiceQuestion) and (pair := twins(question.labels)) is not None:
            what = (
                f'label "{pair[1]}" of question "{question_id}" reads the same as "{pair[0]}"; {apart(*pair)}'
            )
            names.refuse(
                ("questions", question_id, "criteria", pair[1]), what, "give one of them another name"
            )


def _effect(names: Resolver, place: int, written: EffectDocument) -> EffectTemplate:
    path: Path = ("effects", place)
    when: tuple[Atom, ...] | None = ()
    if written.when is not None:
        when = names.side(written.when, (*path, "when"))
    arguments = {
        name: _template(names, value, (*path, "arguments", name)) for name, value in written.arguments.items()
    }
    return EffectTemplate(place, when or (), written.tool, MappingProxyType(arguments))


def _template(names: Resolver, value: JsonValue, path: Path) -> Template:
    if isinstance(value, str):
        try:
            return read_template(value, names.questions)
        except TemplateError as err:
            if not names.names_a_broken_question(value):
                names.refuse_named(path, err)
            return None
    if isinstance(value, list):
        return [_template(names, each, (*path, index)) for index, each in enumerate(value)]
    if isinstance(value, dict):
        return {name: _template(names, each, (*path, name)) for name, each in value.items()}
    return value
