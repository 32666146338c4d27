"""Recorded tickets put to another model: what that does to a policy's thresholds and verdicts.

Promise: before and after are judged by the same policy and a worker's own gates; before from the answers that a record
holds, after from the scorer's. A record that cannot be asked anew is counted apart and never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ticketgate.agents.deciding.decide import Decision, decide
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.scoring.scorer import Scorer
from ticketgate.agents.workbench.policy.rejudge import record_of, verdict_by, why_not_judged
from ticketgate.agents.workbench.policy.turns import Turn, Turns
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.values.strict import JsonValue

# Large enough for a model to batch, small enough that a long export does not fill the memory.
BATCH = 32

Record = Mapping[str, JsonValue]


@dataclass(slots=True)
class Moved:
    """One noul over all tickets: its probabilities of true before and after, ticket by ticket."""

    threshold: float
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)

    def selected(self, chances: Sequence[float]) -> int:
        """How many of these the threshold selects."""
        return sum(chance >= self.threshold for chance in chances)

    @property
    def newly(self) -> int:
        """How many are selected now and were not."""
        return self._turned(self.after, self.before)

    @property
    def no_longer(self) -> int:
        """How many were selected and are not now."""
        return self._turned(self.before, self.after)

    @property
    def same_share_from(self) -> float | None:
        """The threshold from which on as many would be selected now as were; None if none was.

        Of several equal probabilities all are selected: there may be more.
        """
        count = self.selected(self.before)
        return sorted(self.after, reverse=True)[count - 1] if count else None

    def to_json(self) -> dict[str, JsonValue]:
        """For programs."""
        return {
            "threshold": self.threshold,
            "tickets": len(self.before),
            "selected_before": self.selected(self.before),
            "selected_after": self.selected(self.after),
            "newly_selected": self.newly,
            "no_longer_selected": self.no_longer,
            "same_share_from": self.same_share_from,
        }

    def _turned(self, into: Sequence[float], out_of: Sequence[float]) -> int:
        return sum(one >= self.threshold > other for one, other in zip(into, out_of, strict=True))


@dataclass(slots=True, kw_only=True)
class Rescored(Turns):
    """What became of the records. Kinds: `accept to review`, `review to accept`, `other labels`.

    nouls: by question, those that both have answered. by_this_model: records that name the model now asked.
    """

    nouls: dict[str, Moved]
    not_asked: Counter[str] = field(default_factory=Counter)
    by_this_model: int = 0

    def to_json(self) -> dict[str, JsonValue]:
        """For programs."""
        return {
            "asked": self.compared,
            "same": self.same,
            "changed": dict(self.turned),
            "not_asked": dict(self.not_asked),
            "recorded_under_another_policy": self.by_another_policy,
            "recorded_by_this_model": self.by_this_model,
            "questions": {name: moved.to_json() for name, moved in self.nouls.items()},
            "examples": self.examples_to_json(),
        }


def rescore(
    records: Iterable[JsonValue],
    *,
    policy: Policy,
    scorer: Scorer,
    tickets: Mapping[str, Mapping[str, JsonValue]] | None = None,
) -> Rescored:
    """Put the records' tickets to `scorer`, and judge by `policy` what is recorded and what it says.

    A record may stand in the envelope that `consume` prints. tickets: by id, for records that hold none; a ticket
    that the record holds comes first. Raises what the scorer raises.
    """
    result = Rescored(nouls={name: Moved(each) for name, each in policy.thresholds.items()})
    askable = _askable(records, policy, tickets or {}, result)
    while batch := list(islice(askable, BATCH)):
        decisions = decide([ticket for _, ticket in batch], policy=policy, scorer=scorer)
        for (record, _), decision in zip(batch, decisions, strict=True):
            _compare(record, decision, policy, scorer, result)
    return result


def _askable(
    records: Iterable[JsonValue],
    policy: Policy,
    tickets: Mapping[str, Mapping[str, JsonValue]],
    result: Rescored,
) -> Iterator[tuple[Record, Ticket]]:
    for line in records:
        record = record_of(line)
        if record is None:
            result.not_asked["not a decision record"] += 1
            continue
        why = why_not_judged(record, {"": policy})
        given = record.get("ticket")
        known = given if isinstance(given, dict) else tickets.get(str(record.get("ticket_id")))
        if why is None and (known is None or "state" not in known):
            why = "its ticket is not in the record; give the tickets besides"
        if why is not None or known is None:
            result.not_asked[why or ""] += 1
            continue
        yield {**record, "ticket": {**known}}, _ticket(record, known)


def _ticket(record: Record, known: Mapping[str, JsonValue]) -> Ticket:
    attributes = known.get("attributes")
    return Ticket(
        id=str(record.get("ticket_id")),
        state=known["state"],
        tenant=str(record.get("tenant") or ""),
        attributes=attributes if isinstance(attributes, dict) else {},
    )


def _compare(record: Record, decision: Decision, policy: Policy, scorer: Scorer, result: Rescored) -> None:
    named, model = record.get("policy"), record.get("model")
    result.by_another_policy += isinstance(named, dict) and named.get("hash") != policy.hash
    result.by_this_model += isinstance(model, dict) and model.get("hash") == scorer.model.hash
    for name, moved in result.nouls.items():
        before, after = _noul(record.get("answers"), name), _noul(decision.answers, name)
        if before is not None and after is not None:
            moved.before.append(before)
            moved.after.append(after)
    status, labels, reasons = verdict_by(record, policy)
    now = decision.verdict
    if status != now.status:
        kind = f"{status} to {now.status}"
    elif labels != decision.selected:
        kind = "other labels"
    else:
        result.same += 1
        return
    told = now.reasons or reasons
    if kind == "other labels":
        told = (f"{', '.join(labels) or 'none'} before, {', '.join(decision.selected) or 'none'} now",)
    result.add(kind, Turn(str(record.get("ticket_id")), status, str(now.status), told))


def _noul(answers: JsonValue, name: str) -> float | None:
    """The probability of true in raw answers, which may hold anything."""
    answer = answers.get(name) if isinstance(answers, dict) else None
    chance = answer.get("noul") if isinstance(answer, dict) else None
    if isinstance(chance, bool) or not isinstance(chance, (int, float)) or not 0 <= chance <= 1:
        return None
    return float(chance)
