"""From names in a document to what they name, and a list of those that name nothing."""

from collections.abc import Sequence

from ticketgate.agents.policy.atoms import Atom, AtomError, read_atom
from ticketgate.agents.policy.effects import TemplateError
from ticketgate.agents.policy.errors import Problem, ProblemCode
from ticketgate.agents.policy.written import Written
from ticketgate.codecs.files.positions import Path
from ticketgate.codecs.systemone.questions import Question


class Resolver:
    """The questions understood so far, which atoms may name, and the problems met. One for each document.

    `broken` has ids of questions that are at fault themselves: what names one of them is not refused again.
    """

    def __init__(self, written: Written) -> None:
        self.questions: dict[str, Question] = {}
        self.broken: set[str] = set()
        self.problems: list[Problem] = []
        self._written = written

    def refuse(self, path: Path, what: str, remedy: str, *, code: ProblemCode = "invalid") -> None:
        """Note a problem at the line of `path`."""
        self.problems.append(self._written.problem(path, what, remedy, code))

    def names_a_broken_question(self, text: str) -> bool:
        """Whether `text` may fail only because of a question that was refused already."""
        return any(name in text for name in self.broken)

    def atom(self, text: str, path: Path) -> Atom | None:
        """The atom, or None with the problem noted."""
        try:
            return read_atom(text, self.questions)
        except AtomError as err:
            if not self.names_a_broken_question(text):
                self.refuse_named(path, err)
            return None

    def refuse_named(self, path: Path, err: AtomError | TemplateError) -> None:
        """Note what an atom or a template was refused for."""
        self.refuse(path, err.what, err.remedy, code="unknown_id" if err.names_nothing else "invalid")

    def atoms(self, texts: Sequence[object], path: Path) -> tuple[Atom, ...] | None:
        """Every atom of a list, no two alike, or None with the problems noted."""
        found: list[Atom] = []
        sound = True
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                self.refuse((*path, index), "an atom must be text", 'write it in quotes, such as "urgent"')
                sound = False
                continue
            atom = self.atom(text, (*path, index))
            if atom is None:
                sound = False
            elif any(atom.same_as(other) for other in found):
                self.refuse((*path, index), f'"{atom.text}" stands twice', "name each atom once")
                sound = False
            else:
                found.append(atom)
        return tuple(found) if sound else None

    def side(self, value: object, path: Path) -> tuple[Atom, ...] | None:
        """One side of implies or iff, or a condition: an atom, or a list of atoms that must all hold."""
        if isinstance(value, str):
            atom = self.atom(value, path)
            return None if atom is None else (atom,)
        if isinstance(value, list) and value:
            return self.atoms(value, path)
        self.refuse(path, "neither an atom nor a list of atoms", 'write "urgent" or ["urgent", "!vip"]')
        return None
