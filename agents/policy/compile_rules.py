"""From a rule as written to the constraint it means, with a name and a sentence for those that have none."""

from collections import Counter
from collections.abc import Sequence

from ticketgate.agents.policy import sentences
from ticketgate.agents.policy.atoms import Atom
from ticketgate.agents.policy.document import RuleDocument
from ticketgate.agents.policy.resolve import Resolver
from ticketgate.agents.policy.rules import Constraint, Count, Forbid, Iff, Implies, Rule, atoms_of
from ticketgate.agents.policy.space import outcomes
from ticketgate.codecs.files.positions import Path


def compile_rules(names: Resolver, written: Sequence[RuleDocument]) -> tuple[Rule, ...]:
    """The rules that could be understood, in order; problems with the others are noted in `names`."""
    rules: list[Rule] = []
    at: dict[str, int] = {}
    for index, each in enumerate(written):
        rule = _rule(names, each, ("rules", index))
        if rule is None:
            continue
        if rule.id in at:
            names.refuse(
                ("rules", index),
                f'rule {index + 1} has the id "{rule.id}" of rule {at[rule.id] + 1}',
                "give it an id of its own, or remove it if it says the same",
            )
            continue
        at[rule.id] = index
        rules.append(rule)
    return tuple(rules)


def _rule(names: Resolver, written: RuleDocument, place: Path) -> Rule | None:
    said = written.constructs
    title = f'rule "{written.id}"' if written.id is not None else f"rule {int(place[1]) + 1}"
    if len(said) != 1:
        what = f"{title} says {' and '.join(said)}" if said else f"{title} says nothing"
        remedy = (
            "write one rule for each"
            if said
            else 'add what it demands, such as implies = ["urgent", "review"]'
        )
        names.refuse((*place, *said[1:2]), what, remedy)
        return None
    understood = _constraint(names, written, said[0], (*place, said[0]))
    if understood is None:
        return None
    constraint, sentence = understood
    return Rule(
        id=written.id if written.id is not None else sentences.default_id(sentence),
        message=written.message if written.message is not None else sentence,
        sentence=sentence,
        constraint=constraint,
        entangled=_entangled(names, constraint),
    )


def _entangled(names: Resolver, constraint: Constraint) -> tuple[tuple[str, tuple[frozenset[str], ...]], ...]:
    """The questions that several atoms of the constraint name, with what each can select."""
    named = Counter(atom.question for atom in atoms_of(constraint))
    return tuple(
        (question_id, outcomes(question_id, names.questions[question_id]).selections)
        for question_id, times in named.items()
        if times > 1
    )


def _constraint(
    names: Resolver, written: RuleDocument, name: str, path: Path
) -> tuple[Constraint, str] | None:
    """What the rule demands, and the sentence that says it."""
    if name in ("implies", "iff"):
        return _sides(names, getattr(written, name), name, path)
    if name in ("at_least", "at_most", "exactly"):
        return _counted(names, written, name, path)
    texts: list[str] = getattr(written, name)
    atoms = names.atoms(texts, path)
    if atoms is None:
        return None
    if not _enough(names, atoms, name, path):
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


def _enough(names: Resolver, atoms: Sequence[Atom], name: str, path: Path) -> bool:
    if name == "excludes" and len(atoms) != 2:
        names.refuse(
            path,
            f"excludes takes two atoms, not {len(atoms)}",
            "of more than two that exclude each other write at_most = { count = 1, of = […] }",
        )
        return False
    needed = 2 if name == "exactly_one" else 1
    if len(atoms) < needed:
        names.refuse(
            path,
            f"{name} needs at least {needed} atoms, not {len(atoms)}",
            "name more, or remove the rule",
        )
        return False
    return True


def _sides(names: Resolver, sides: list[object], name: str, path: Path) -> tuple[Constraint, str] | None:
    if len(sides) != 2:
        names.refuse(
            path,
            f"{name} takes two sides, not {len(sides)}",
            'write ["urgent", "review"], or a list for a side of several: [["urgent", "vip"], "review"]',
        )
        return None
    left, right = names.side(sides[0], (*path, 0)), names.side(sides[1], (*path, 1))
    if left is None or right is None:
        return None
    if name == "implies":
        return Implies(left, right), sentences.implies(left, right)
    return Iff(left, right), sentences.iff(left, right)


def _counted(names: Resolver, written: RuleDocument, name: str, path: Path) -> tuple[Constraint, str] | None:
    counted = {"at_least": written.at_least, "at_most": written.at_most, "exactly": written.exactly}[name]
    if counted is None:
        return None
    atoms = names.atoms(counted.of, (*path, "of"))
    if atoms is None:
        return None
    count, total = counted.count, len(atoms)
    if not atoms:
        names.refuse((*path, "of"), f"{name} counts no atoms", "name those that are counted")
        return None
    if name != "at_most" and count > total:
        names.refuse(
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
