"""What lint reports: findings, each with what proves it, and how much the rules allow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from ticketgate.codecs.values.strict import JsonValue

Severity = Literal["error", "warning", "note"]

# error: tickets or effects are lost to it for certain. warning: it says nothing, or says it twice, or forces an
# answer. note: true, worth knowing, and often meant.
SEVERITIES: dict[str, Severity] = {
    "unreadable": "error",
    "invalid": "error",
    "unknown_id": "error",
    "threshold_out_of_range": "error",
    "unsatisfiable": "error",
    "effect_never_proposed": "error",
    "label_never_accepted": "warning",
    "label_always_forced": "warning",
    "vacuous_rule": "warning",
    "duplicate_rule": "warning",
    "redundant_rule": "warning",
    "unused_question": "warning",
    "choice_without_none": "warning",
    "label_like_topic": "warning",
    "question_in_no_rule": "note",
    "compulsory_label": "note",
    "level_is_a_value": "note",
    "impossible_pair": "note",
    "examples_missing": "warning",
    "not_searched": "warning",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found. `code` is a key of SEVERITIES, `line` where in the file it stands, from 1.

    subjects: the labels, rule ids, question ids or tools it is about. core: ids of the rules that bring it about,
    none of which can be left out. example: the selected labels of one assignment that shows it, sorted.
    """

    code: str
    message: str
    remedy: str
    subjects: tuple[str, ...]
    core: tuple[str, ...] = ()
    example: tuple[str, ...] | None = None
    line: int | None = None

    @property
    def severity(self) -> Severity:
        """error, warning or note."""
        return SEVERITIES[self.code]

    def to_json(self) -> dict[str, JsonValue]:
        """The finding for programs."""
        return {
            "code": self.code,
            "severity": self.severity,
            "line": self.line,
            "message": self.message,
            "remedy": self.remedy,
            "subjects": list(self.subjects),
            "core": list(self.core),
            "example": None if self.example is None else list(self.example),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """What lint says of a policy. `acceptable` of `assignments` break no rule.

    acceptable: None if that was too much to count. assignments: None if the file is no policy.
    """

    findings: tuple[Finding, ...]
    assignments: int | None
    acceptable: int | None

    @classmethod
    def of(
        cls, findings: Iterable[Finding], *, assignments: int | None, acceptable: int | None
    ) -> LintReport:
        """The report with the worst first, each severity in the order of the file."""
        rank = ("error", "warning", "note")
        in_order = sorted(findings, key=lambda each: (rank.index(each.severity), each.line or 0))
        return cls(findings=tuple(in_order), assignments=assignments, acceptable=acceptable)

    @property
    def has_errors(self) -> bool:
        """Whether the policy should not be used as it is."""
        return any(finding.severity == "error" for finding in self.findings)

    def to_json(self) -> dict[str, JsonValue]:
        """The report for programs. Counts beyond 64 bits are text: JSON readers could not hold them."""
        return {
            "acceptable": _number(self.acceptable),
            "assignments": _number(self.assignments),
            "findings": [finding.to_json() for finding in self.findings],
        }


def named_rules(core: Sequence[str]) -> str:
    """`rule "a"`, `rules "a", "b" and "c"`."""
    quoted = [f'"{rule_id}"' for rule_id in core]
    if len(quoted) == 1:
        return f"rule {quoted[0]}"
    return f"rules {', '.join(quoted[:-1])} and {quoted[-1]}"


def _number(count: int | None) -> JsonValue:
    return count if count is None or count < 2**63 else str(count)
