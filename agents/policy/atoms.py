"""An atom is the smallest thing a rule speaks of: one label of one question, or its absence.

`urgent` a noul holds · `kind=bug` a choice's label · `anger>=2` a score's level (also = > <= < and, for
choice and score, !=) · `!` before any of these denies it. A level is written by its value, where it has one of its own;
labels that stand for numbers can be ordered as levels are.
"""

import difflib
import operator
import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, ScoreQuestion
from ticketgate.codecs.values.texts import alike, find, spelled

# What an atom is worth: it holds, it does not, or nobody knows since its question was abstained from.
Truth = bool | None

# Characters that mean something in an atom, or in a reference; an id that had them could be misread.
RESERVED_IN_IDS = frozenset("=!<>{}")

_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt,
}  # fmt: skip
_COMPARISON = re.compile(r"(?P<question>[^=!<>]+?)\s*(?P<operator>>=|<=|!=|=|>|<)\s*(?P<value>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Atom:
    """Holds when one of `members` is selected, or, if `negated`, when none is.

    `text` is the normal form that messages show (no blanks round the operator).
    """

    text: str
    question: str
    members: frozenset[str]
    negated: bool = False

    def truth(self, selected: AbstractSet[str], abstained: AbstractSet[str] = frozenset()) -> Truth:
        """True or false under an assignment; None if the atom's question is among the abstained ids."""
        if self.question in abstained:
            return None
        return self.members.isdisjoint(selected) is self.negated

    def same_as(self, other: "Atom") -> bool:
        """Whether both say the same, however they are written (`anger>=1` and `anger>0`)."""
        return (self.question, self.members, self.negated) == (other.question, other.members, other.negated)


class AtomError(ValueError):
    """The text is no atom over these questions. `what` says why, `remedy` what to write.

    names_nothing: it names a question, label or level that there is not.
    """

    def __init__(self, what: str, remedy: str, *, names_nothing: bool = False) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy, self.names_nothing = what, remedy, names_nothing


def label(question_id: str, value: str | int) -> str:
    """How a selected label of a choice or score is written in an assignment: `kind=bug`, `anger=2`."""
    return f"{question_id}={value}"


def read_atom(text: str, questions: Mapping[str, Question]) -> Atom:
    """The atom that `text` writes. Raises AtomError for unknown questions, labels, levels and operators."""
    bare = text.strip()
    denied = bare.startswith("!")
    body = bare[1:].strip() if denied else bare
    if not body:
        raise AtomError(f'"{text}" names no question', 'write a question id, as in "urgent"')
    match = _COMPARISON.fullmatch(body)
    question_id = body if match is None else match["question"]
    found = find(question_id, questions)
    question_id, question = (question_id, None) if found is None else found
    if question is None:
        raise AtomError(
            f'no question "{question_id}"{alike(question_id, questions)}',
            f"add [questions.{question_id}], {_suggest(question_id, questions)}",
            names_nothing=True,
        )
    if isinstance(question, NoulQuestion):
        if match is not None:
            raise AtomError(
                f'"{bare}" compares a noul question',
                f'write "{question_id}" if it holds, "!{question_id}" if not',
            )
        atom = Atom(question_id, question_id, frozenset({question_id}))
    elif match is None:
        example = label(question_id, question.names[0])
        raise AtomError(
            f'"{question_id}" is a {question.type} question', f'name its label, as in "{example}"'
        )
    else:
        atom = _comparison(question_id, question, match["operator"], match["value"].strip())
    if denied:
        return Atom(f"!{atom.text}", atom.question, atom.members, not atom.negated)
    return atom


def _comparison(question_id: str, question: ChoiceQuestion | ScoreQuestion, sign: str, value: str) -> Atom:
    values = question.names
    value = spelled(value, values) or value
    text = f"{question_id}{sign}{value}"
    if value not in values:
        noun = "label" if isinstance(question, ChoiceQuestion) else "level"
        raise AtomError(
            f'question "{question_id}" has no {noun} "{value}"{alike(value, values)}',
            f"its {noun}s are {_listed(values)}",
            names_nothing=True,
        )
    if sign in ("=", "!="):
        return Atom(text, question_id, frozenset({label(question_id, value)}), negated=sign == "!=")
    numbers = [
        each for each in question.meant if isinstance(each, int | float) and not isinstance(each, bool)
    ]
    if len(numbers) < len(values):
        raise AtomError(
            f'"{text}" orders the labels of a choice',
            f'compare with = or !=, as in "{label(question_id, value)}"',
        )
    bound = numbers[values.index(value)]
    inside = [name for name, each in zip(values, numbers, strict=True) if _ORDERS[sign](each, bound)]
    return Atom(text, question_id, frozenset(label(question_id, each) for each in inside))


def as_place(atom: Atom, question: Question) -> frozenset[str] | None:
    """What an atom would name if its number were a level's place from 0 and not its value; None if it could not be
    read so."""
    match = _COMPARISON.fullmatch(atom.text.removeprefix("!"))
    if not isinstance(question, ScoreQuestion) or match is None or match["value"] not in question.labels:
        return None
    plain = read_atom(match[0], {atom.question: ScoreQuestion(question.instructions, question.criteria)})
    return frozenset(
        label(atom.question, name)
        for name, level in zip(question.names, question.labels, strict=True)
        if label(atom.question, level) in plain.members
    )


def _suggest(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f'or write "{close[0]}"'
    return f"or use one of {_listed(tuple(known))}"


def _listed(values: tuple[str, ...]) -> str:
    # 255 options are allowed: an error that shows them all is not read.
    shown = ", ".join(values[:12])
    return f"{shown}, … ({len(values)} in all)" if len(values) > 12 else shown
