"""Rules as sentences: the ids and messages of those that the author left unnamed.

Promise: the same rule gives the same id and message in every version, wherever in the file it stands, since
records and metrics carry them.
"""

from collections.abc import Sequence

from ticketgate.agents.policy.atoms import Atom


def implies(left: Sequence[Atom], right: Sequence[Atom]) -> str:
    """`urgent requires review`, `urgent and vip require review`."""
    return f"{_all(left)} {'requires' if len(left) == 1 else 'require'} {_all(right)}"


def iff(left: Sequence[Atom], right: Sequence[Atom]) -> str:
    """`refund exactly when billing and approved`."""
    return f"{_all(left)} exactly when {_all(right)}"


def excludes(atoms: Sequence[Atom]) -> str:
    """`review excludes auto_reply`."""
    return f"{_said(atoms[0])} excludes {_said(atoms[1])}"


def forbid(atoms: Sequence[Atom]) -> str:
    """`never urgent and not review`."""
    return f"never {_all(atoms)}"


def any_of(atoms: Sequence[Atom]) -> str:
    """`at least one of billing, technical`; of a single atom, `always billing`."""
    return f"at least one of {_list(atoms)}" if len(atoms) > 1 else f"always {_said(atoms[0])}"


def exactly(count: int, atoms: Sequence[Atom]) -> str:
    """`exactly one of billing, technical`; of a count of 0, `none of a, b`."""
    return f"exactly {_number(count)} of {_list(atoms)}" if count else f"none of {_list(atoms)}"


def at_least(count: int, atoms: Sequence[Atom]) -> str:
    """`at least two of a, b, c`."""
    return f"at least {_number(count)} of {_list(atoms)}"


def at_most(count: int, atoms: Sequence[Atom]) -> str:
    """`at most one of a, b, c`; of a count of 0, `none of a, b, c`."""
    return f"at most {_number(count)} of {_list(atoms)}" if count else f"none of {_list(atoms)}"


def default_id(sentence: str) -> str:
    """The sentence as one word: `urgent-requires-review`."""
    return "-".join(sentence.replace(",", " ").split())


def _said(atom: Atom) -> str:
    return f"not {atom.text[1:]}" if atom.text.startswith("!") else atom.text


def _all(atoms: Sequence[Atom]) -> str:
    return " and ".join(_said(atom) for atom in atoms)


def _list(atoms: Sequence[Atom]) -> str:
    return ", ".join(_said(atom) for atom in atoms)


def _number(count: int) -> str:
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[count] if count < len(words) else str(count)
