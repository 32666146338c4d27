"""Recorded decisions judged anew: how many would have come out otherwise under another policy.

Promise: both policies judge the same recorded answers by a worker's own gates. A record that one of them cannot judge
(a question that was not asked then, a refusal before any policy was asked) is counted apart and never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.workbench.policy.check import check
from ticketgate.agents.workbench.policy.turns import Turn, Turns
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage

# What judged by a policy's answers, and can be judged again.
_BY_POLICY: Final = frozenset({Stage.ANSWERS, Stage.ABSTENTION, Stage.POLICY})


@dataclass(slots=True, kw_only=True)
class Rejudged(Turns):
    """What became of the records. Kinds: `accept to review`, `review to accept`, `other reasons`."""

    not_judged: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, JsonValue]:
        """For programs."""
        return {
            "judged": self.compared,
            "same": self.same,
            "changed": dict(self.turned),
            "not_judged": dict(self.not_judged),
            "recorded_under_another_policy": self.by_another_policy,
            "examples": self.examples_to_json(),
        }


def rejudge(records: Iterable[JsonValue], old: Policy, new: Policy) -> Rejudged:
    """Judge decision records by both policies. A record may stand in the envelope that `consume` prints."""
    result = Rejudged()
    for line in records:
        record = record_of(line)
        if record is None:
            result.not_judged["not a decision record"] += 1
            continue
        policy_of = record.get("policy")
        if isinstance(policy_of, dict) and policy_of.get("hash") != old.hash:
            result.by_another_policy += 1
        why = why_not_judged(record, {"old ": old, "new ": new})
        if why is not None:
            result.not_judged[why] += 1
            continue
        (before, _, reasons), (after, _, new_reasons) = (verdict_by(record, policy) for policy in (old, new))
        if (before, reasons) == (after, new_reasons):
            result.same += 1
            continue
        kind = f"{before} to {after}" if before != after else "other reasons"
        result.add(kind, Turn(str(record.get("ticket_id")), before, after, new_reasons or reasons))
    return result


def record_of(line: JsonValue) -> Mapping[str, JsonValue] | None:
    """The decision record in a line, which may be the envelope that `consume` prints; None if there is none."""
    value = line.get("value") if isinstance(line, dict) and "schema" not in line else line
    if not isinstance(value, dict) or not isinstance(value.get("answers"), dict):
        return None
    return value if str(value.get("schema", "")).startswith("decision/") else None


def why_not_judged(record: Mapping[str, JsonValue], policies: Mapping[str, Policy]) -> str | None:
    """Why a record's answers cannot be judged by these policies, or None. `policies`: by how they are told apart."""
    verdict = record.get("verdict")
    stage = verdict.get("stage") if isinstance(verdict, dict) else None
    if stage not in _BY_POLICY:
        return f"refused at {stage}, before a policy was asked"
    answers = record.get("answers")
    given = answers if isinstance(answers, dict) else {}
    for which, policy in policies.items():
        missing = [name for name in policy.questions if name not in given]
        # A worker's record at `answers` may lack some: then that is what was wrong, and stays so.
        if missing and stage is not Stage.ANSWERS and stage != Stage.ANSWERS.value:
            return f"question {missing[0]} of the {which}policy was not asked"
    return None


def verdict_by(
    record: Mapping[str, JsonValue], policy: Policy
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Status, selected labels and reasons of a record's answers under a policy."""
    answers = record["answers"]
    asked = (
        {name: each for name, each in answers.items() if name in policy.ids}
        if isinstance(answers, dict)
        else {}
    )
    # A dispatched record has no ticket, so arguments cannot be filled in: that would not be the policy's doing.
    judging = policy if isinstance(record.get("ticket"), dict) else replace(policy, effects=())
    decision = check({**record, "answers": asked}, policy=judging)
    return str(decision.verdict.status), decision.selected, decision.verdict.reasons
