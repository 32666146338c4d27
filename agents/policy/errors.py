"""What is wrong with a policy file: where, what, and the way out.

Promise: every problem that one reading can find is reported at once, in the order of the lines.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# The name that messages carry where the caller gave none.
UNNAMED = "policy"


# What programs tell problems apart by: a name for which the policy has nothing, a threshold outside (0, 1], or
# anything else that cannot be meant; `unreadable` where there was no text to read.
ProblemCode = Literal["unknown_id", "threshold_out_of_range", "invalid", "unreadable"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to mend: the line (from 1, None where no line can be named), what is wrong, the remedy."""

    line: int | None
    what: str
    remedy: str
    code: ProblemCode = "invalid"


class PolicyError(ValueError):
    """The policy cannot be used. Not retried: a person edits the file, or the old policy stays.

    `line`, `what` and `remedy` are those of the first problem; `problems` has all of them by line.
    `str()` is for people, two lines a problem; `summary` is the first problem on one line.
    """

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems: tuple[Problem, ...] = tuple(sorted(problems, key=lambda problem: problem.line or 0))
        first = self.problems[0]
        self.line, self.what, self.remedy = first.line, first.what, first.remedy
        super().__init__("\n".join(f"{self._where(p)}: {p.what}\n  {p.remedy}" for p in self.problems))

    @property
    def summary(self) -> str:
        """The first problem as one line, with the number of the others."""
        others = len(self.problems) - 1
        more = f" (and {others} more)" if others else ""
        return f"{self._where(self.problems[0])}: {self.what}; {self.remedy}{more}"

    def _where(self, problem: Problem) -> str:
        return self.source if problem.line is None else f"{self.source}:{problem.line}"
