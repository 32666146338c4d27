"""From a document of the right shape to a policy: every name resolved, every contradiction refused.

Promise: all problems are gathered before any is raised, so one reading shows what there is to mend. What is
legal but foolish (a rule that can never fire, say) is lint's to tell, not ours.
"""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ticketgate.agents.policy import sentences
from ticketgate.agents.policy.atoms import RESERVED_IN_IDS, Atom, AtomError, read_atom
from ticketgate.agents.policy.attributes import AttributePath, attribute_path
from ticketgate.agents.policy.document import QuestionDocument, RuleDocument, Written
from ticketgate.agents.policy.effects import EffectTemplate, Template, TemplateError, read_template
from ticketgate.agents.policy.errors import PolicyError, Problem
from ticketgate.agents.policy.facts import MappedQuestion
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.positions import Path
from ticketgate.agents.policy.rules import Constraint, Count, Forbid, Iff, Implies, Rule
from ticketgate.codecs.questions import ChoiceQuestion, NoulQuestion, Question, QuestionError, read_question
from ticketgate.codecs.strict import JsonValue, canonical


def compile_policy(written: Written) -> Policy:
    """The policy that a document means. Raises PolicyError with every problem found."""
    return _Compiler(written).policy()


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


class _Compiler:
    """One document on its way; holds what was understood so far and the problems met."""

    def __init__(self, written: Written) -> None:
        self._written = written
        self._problems: list[Problem] = []
        self._questions: dict[str, Question] = {}
        self._broken: set[str] = set()

    def policy(self) -> Policy:
        document = self._written.document
        paths: dict[str, AttributePath] = {}
        for question_id, question in document.questions.items():
            path = self._question(question_id, question)
            if path is not None:
                paths[question_id] = path
        rules = self._rules(document.rules)
        effects = tuple(self._effect(place) for place in range(len(document.effects)))
        if self._problems:
            raise PolicyError(self._written.source, self._problems)
        scored = {name: each for name, each in self._questions.items() if name not in paths}
        return Policy(
            name=document.name,
            version=document.version,
            hash=document_hash(self._written.values),
            ids=tuple(self._questions),
            questions=MappingProxyType(scored),
            mapped=MappingProxyType(
                {name: MappedQuestion(self._questions[name], path) for name, path in paths.items()}
            ),
            thresholds=MappingProxyType(
                {
                    name: document.questions[name].threshold or document.threshold
                    for name, each in scored.items()
                    if isinstance(each, NoulQuestion)
                }
            ),
            rules=rules,
            effects=effects,
            abstain_below=document.abstain_below,
            on_truncation=document.on_truncation,
        )

    def _refuse(self, path: Path, what: str, remedy: str) -> None:
        self._problems.append(self._written.problem(path, what, remedy))

    # Questions

    def _question(self, question_id: str, written: QuestionDocument) -> AttributePath | None:
        """Understand one question; the path of the attribute that answers it, if one does."""
        place: Path = ("questions", question_id)
        # Rules that name a question which is itself at fault would only repeat its problem.
        self._broken.add(question_id)
        if not question_id or question_id != question_id.strip() or RESERVED_IN_IDS & set(question_id):
            self._refuse(
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
                self._refuse(
                    (*place, "from"), f'"{written.from_}" is no attribute', 'write from = "attributes.NAME"'
                )
                return None
            # No model reads a mapped question, so it need not be worded; the contract wants some wording.
            given["instructions"] = written.instructions or written.from_
        if written.threshold is not None and (path is not None or written.type != "noul"):
            kind = "mapped" if path is not None else written.type
            self._refuse(
                (*place, "threshold"),
                f'"{question_id}" is a {kind} question and has no threshold',
                "remove it: a threshold cuts the probability of a noul that a model answers",
            )
        try:
            question = read_question(question_id, given)
        except QuestionError as err:
            part = (err.part,) if err.part is not None else ()
            self._refuse((*place, *part), str(err), "word it as agents/policy/README.md shows")
            return None
        if isinstance(question, ChoiceQuestion) and any(each != each.strip() for each in question.labels):
            self._refuse(
                (*place, "criteria"),
                f'question "{question_id}" has a label with blanks at its ends',
                "remove the blanks",
            )
            return None
        self._questions[question_id] = question
        self._broken.discard(question_id)
        return path

    # Atoms

    def _atom(self, text: str, path: Path) -> Atom | None:
        try:
            return read_atom(text, self._questions)
        except AtomError as err:
            if not any(name in text for name in self._broken):
                self._refuse(path, err.what, err.remedy)
            return None

    def _atoms(self, texts: Sequence[object], path: Path) -> tuple[Atom, ...] | None:
        """Every atom of a list, no two alike, or None with the problems noted."""
        found: list[Atom] = []
        sound = True
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                self._refuse((*path, index), "an atom must be text", 'write it in quotes, such as "urgent"')
                sound = False
                continue
            atom = self._atom(text, (*path, index))
            if atom is None:
                sound = False
            elif any(atom.same_as(other) for other in found):
                self._refuse((*path, index), f'"{atom.text}" stands twice', "name each atom once")
                sound = False
            else:
                found.append(atom)
        return tuple(found) if sound else None

    def _side(self, value: object, path: Path) -> tuple[Atom, ...] | None:
        """One side of implies or iff, or a condition: an atom, or a list of atoms that must all hold."""
        if isinstance(value, str):
            atom = self._atom(value, path)
            return None if atom is None else (atom,)
        if isinstance(value, list) and value:
            return self._atoms(value, path)
        self._refuse(path, "neither an atom nor a list of atoms", 'write "urgent" or ["urgent", "!vip"]')
        return None

    # Rules

    def _rules(self, written: Sequence[RuleDocument]) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        at: dict[str, int] = {}
        for index, each in enumerate(written):
            rule = self._rule(each, ("rules", index))
            if rule is None:
                continue
            if rule.id in at:
                self._refuse(
                    ("rules", index),
                    f'rule {index + 1} has the id "{rule.id}" of rule {at[rule.id] + 1}',
                    "give it an id of its own, or remove it if it says the same",
                )
                continue
            at[rule.id] = index
            rules.append(rule)
        return tuple(rules)

    def _rule(self, written: RuleDocument, place: Path) -> Rule | None:
        names = written.constructs
        name = f'rule "{written.id}"' if written.id is not None else f"rule {int(place[1]) + 1}"
        if len(names) != 1:
            what = f"{name} says {' and '.join(names)}" if names else f"{name} says nothing"
            remedy = (
                "write one rule for each"
                if names
                else 'add what it demands, such as implies = ["urgent", "review"]'
            )
            self._refuse((*place, *names[1:2]), what, remedy)
            return None
        understood = self._constraint(written, names[0], (*place, names[0]))
        if understood is None:
            return None
        constraint, sentence = understood
        return Rule(
            id=written.id if written.id is not None else sentences.default_id(sentence),
            message=written.message if written.message is not None else sentence,
            constraint=constraint,
        )

    def _constraint(self, written: RuleDocument, name: str, path: Path) -> tuple[Constraint, str] | None:
        """What the rule demands, and the sentence that says it."""
        if name in ("implies", "iff"):
            return self._sides(getattr(written, name), name, path)
        if name in ("at_least", "at_most", "exactly"):
            return self._counted(written, name, path)
        texts: list[str] = getattr(written, name)
        atoms = self._atoms(texts, path)
        if atoms is None:
            return None
        if not self._enough(atoms, name, path):
            return None
        match name:
            case "excludes":
                return Count(atoms, 0, 1), sentences.excludes(atoms)
            case "forbid":
                return Forbid(atoms), sentences.forbid(atoms)
            case "exactly_one":
                return Count(atoms, 1, 1), sentences.exactly(1, atoms)
            case _:
                return Count(atoms, 1, len(atoms)), sentences.any_of(atoms)

    def _enough(self, atoms: Sequence[Atom], name: str, path: Path) -> bool:
        if name == "excludes" and len(atoms) != 2:
            self._refuse(
                path,
                f"excludes takes two atoms, not {len(atoms)}",
                "of more than two that exclude each other write at_most = { count = 1, of = […] }",
            )
            return False
        needed = 2 if name == "exactly_one" else 1
        if len(atoms) < needed:
            self._refuse(
                path,
                f"{name} needs at least {needed} atoms, not {len(atoms)}",
                "name more, or remove the rule",
            )
            return False
        return True

    def _sides(self, sides: list[object], name: str, path: Path) -> tuple[Constraint, str] | None:
        if len(sides) != 2:
            self._refuse(
                path,
                f"{name} takes two sides, not {len(sides)}",
                'write ["urgent", "review"], or a list for a side of several: [["urgent", "vip"], "review"]',
            )
            return None
        left, right = self._side(sides[0], (*path, 0)), self._side(sides[1], (*path, 1))
        if left is None or right is None:
            return None
        if name == "implies":
            return Implies(left, right), sentences.implies(left, right)
        return Iff(left, right), sentences.iff(left, right)

    def _counted(self, written: RuleDocument, name: str, path: Path) -> tuple[Constraint, str] | None:
        counted = {"at_least": written.at_least, "at_most": written.at_most, "exactly": written.exactly}[name]
        if counted is None:
            return None
        atoms = self._atoms(counted.of, (*path, "of"))
        if atoms is None:
            return None
        count, total = counted.count, len(atoms)
        if not atoms:
            self._refuse((*path, "of"), f"{name} counts no atoms", "name those that are counted")
            return None
        if name != "at_most" and count > total:
            self._refuse(
                (*path, "count"), f"{name} {count} of {total} can never hold", f"write a count up to {total}"
            )
            return None
        match name:
            case "at_least":
                return Count(atoms, count, total), sentences.at_least(count, atoms)
            case "at_most":
                return Count(atoms, 0, count), sentences.at_most(count, atoms)
            case _:
                return Count(atoms, count, count), sentences.exactly(count, atoms)

    # Effects

    def _effect(self, place: int) -> EffectTemplate:
        written = self._written.document.effects[place]
        path: Path = ("effects", place)
        when: tuple[Atom, ...] | None = ()
        if written.when is not None:
            when = self._side(written.when, (*path, "when"))
        arguments = {
            name: self._template(value, (*path, "arguments", name))
            for name, value in written.arguments.items()
        }
        return EffectTemplate(place, when or (), written.tool, MappingProxyType(arguments))

    def _template(self, value: JsonValue, path: Path) -> Template:
        if isinstance(value, str):
            try:
                return read_template(value, self._questions)
            except TemplateError as err:
                if not any(name in value for name in self._broken):
                    self._refuse(path, err.what, err.remedy)
                return None
        if isinstance(value, list):
            return [self._template(each, (*path, index)) for index, each in enumerate(value)]
        if isinstance(value, dict):
            return {name: self._template(each, (*path, name)) for name, each in value.items()}
        return value
