"""A policy for reading: as sentences, and as a picture in Mermaid's language.

Promise: both are made from what the rules mean, not from their authors' messages, so a message that says something
else than its rule is seen beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ticketgate.agents.cleaning import Step
from ticketgate.agents.policy.atoms import Atom
from ticketgate.agents.policy.effects import EffectTemplate
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.policy.rules import Count, Forbid, Iff, Implies, Rule, atoms_of
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, ScoreQuestion
from ticketgate.codecs.values.strict import JsonValue, canonical

# A choice may have 255 labels; a picture with all of them is not looked at.
MOST_LABELS = 12


def sentences(policy: Policy) -> tuple[str, ...]:
    """The policy in order: name, questions, what sends to review, rules, effects; one sentence each."""
    return (
        f"{policy.name}, version {policy.version} ({policy.hash[:12]})",
        *(_question(policy, question_id) for question_id in policy.ids),
        *_doubts(policy),
        *(_rule(rule) for rule in policy.rules),
        *(_effect(effect) for effect in policy.effects),
    )


def _question(policy: Policy, question_id: str) -> str:
    question = policy.question(question_id)
    match question:
        case NoulQuestion():
            kind = "a noul"
        case ChoiceQuestion():
            kind = f"one of {_some(question.labels)}"
        case ScoreQuestion():
            kind = f"a level from 0 to {len(question.levels) - 1}"
            if question.values is not None:
                kind = f"a level of {', '.join(question.names)}"
    if question_id in policy.mapped:
        return f"{question_id} is {kind}, known from attributes.{policy.mapped[question_id].path}"
    selected = (
        f", selected from a probability of {policy.thresholds[question_id]!r} on"
        if question_id in policy.thresholds
        else ""
    )
    return f"{question_id} is {kind}{selected}: {_wording(question.instructions)}"


_CLEANED: Mapping[Step, str] = {
    "html": "its HTML",
    "quoted_replies": "what it quotes of earlier mails",
    "signatures": "its signature",
}


def _wording(instructions: JsonValue) -> str:
    if instructions is None:
        return "(worded by its criteria)"
    return instructions if isinstance(instructions, str) else canonical(instructions).decode()


def _some(labels: tuple[str, ...]) -> str:
    return ", ".join(labels[:MOST_LABELS]) + (", …" if len(labels) > MOST_LABELS else "")


def _doubts(policy: Policy) -> Iterator[str]:
    if policy.abstain_below is not None:
        yield f"an answer less probable than {policy.abstain_below!r} sends the ticket to review"
    if policy.on_truncation == "allow":
        yield "a ticket that the model could not read to its end may be accepted"
    if policy.clean:
        yield f"the model reads a ticket without {', '.join(map(_CLEANED.__getitem__, policy.clean))}"


def _rule(rule: Rule) -> str:
    said = "" if rule.message == rule.sentence else f"; it is told as: {rule.message}"
    return f"rule {rule.id}: {rule.sentence}{said}"


def _effect(effect: EffectTemplate) -> str:
    condition = " and ".join(atom.text for atom in effect.when)
    return f"an accepted ticket{f' with {condition}' if condition else ''} asks for {effect.tool}"


def mermaid(policy: Policy) -> str:
    """Labels and rules as a flowchart: an arrow requires, a crossed line excludes, a hexagon is another rule, and
    a rounded box an effect. A dotted line means that the label is not there."""
    picture = _Picture()
    for question_id in policy.ids:
        picture.question(policy, question_id)
    for rule in policy.rules:
        picture.rule(rule)
    for effect in policy.effects:
        picture.effect(effect)
    return "\n".join(picture.lines) + "\n"


class _Picture:
    """A flowchart being drawn. Ids are numbers, for names may hold anything."""

    def __init__(self) -> None:
        self.lines = ["flowchart LR"]
        self._nodes: dict[str, str] = {}

    def question(self, policy: Policy, question_id: str) -> None:
        question = policy.question(question_id)
        if isinstance(question, NoulQuestion):
            self.lines.append(f"    {self._new(question_id)}[{_quoted(question_id)}]")
            return
        named = dict.fromkeys(
            _positive(atom)
            for constraint in [rule.constraint for rule in policy.rules]
            for atom in atoms_of(constraint)
            if atom.question == question_id
        )
        named |= dict.fromkeys(
            _positive(atom)
            for effect in policy.effects
            for atom in effect.when
            if atom.question == question_id
        )
        every = [f"{question_id}={each}" for each in question.names]
        shown = (
            [*named, *(each for each in every if each not in named)]
            if len(every) <= MOST_LABELS
            else [*named]
        )
        self.lines.append(f"    subgraph {self._new(('question', question_id))}[{_quoted(question_id)}]")
        for text in shown:
            self.lines.append(f"        {self._new(text)}[{_quoted(text)}]")
        self.lines.append("    end")

    def rule(self, rule: Rule) -> None:
        match rule.constraint:
            case Implies((left,), (right,)) if not left.text.startswith("!"):
                arrow = "-.->" if right.text.startswith("!") else "-->"
                self._edge(self._node(left), arrow, rule.id, self._node(right))
            case Count((one, other), 0, 1) if not (one.text + other.text).count("!"):
                self._edge(self._node(one), "x--x", rule.id, self._node(other))
            case Implies(left_side, right_side) | Iff(left_side, right_side):
                knot = self._knot(rule)
                for atom in left_side:
                    self._edge(self._node(atom), _line(atom, "---", "-.-"), "", knot)
                for atom in right_side:
                    self._edge(knot, _line(atom, "-->", "-.->"), "", self._node(atom))
            case Forbid(atoms) | Count(atoms):
                knot = self._knot(rule)
                for atom in atoms:
                    self._edge(knot, _line(atom, "---", "-.-"), "", self._node(atom))

    def effect(self, effect: EffectTemplate) -> None:
        box = self._new(("effect", effect.place))
        self.lines.append(f"    {box}([{_quoted(effect.tool)}])")
        for atom in effect.when:
            self._edge(self._node(atom), _line(atom, "==>", "-.->"), "", box)

    def _knot(self, rule: Rule) -> str:
        knot = self._new(("rule", rule.id))
        # The form alone where the lines say the rest.
        form = rule.sentence.partition(" of ")[0] + " of" if isinstance(rule.constraint, Count) else rule.id
        self.lines.append(f"    {knot}{{{{{_quoted(form)}}}}}")
        return knot

    def _edge(self, start: str, line: str, text: str, end: str) -> None:
        label = f"|{_quoted(text)}|" if text else ""
        self.lines.append(f"    {start} {line}{label} {end}")

    def _node(self, atom: Atom) -> str:
        return self._nodes[_positive(atom)]

    def _new(self, key: object) -> str:
        return self._nodes.setdefault(str(key), f"n{len(self._nodes)}")


def _positive(atom: Atom) -> str:
    return atom.text.removeprefix("!")


def _line(atom: Atom, there: str, absent: str) -> str:
    return absent if atom.text.startswith("!") else there


def _quoted(text: str) -> str:
    """Mermaid reads `#quot;` and the like in quoted text."""
    return '"' + text.replace("#", "#35;").replace('"', "#quot;") + '"'
