"""The attempts at the cases of a batch: what stands in the store, what counts for each attempt, what is written back.

Promise: an attempt is judged with every attempt in view that may be committed before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ticketgate.agents.funnel.repair import CLARIFICATION, Attempt
from ticketgate.codecs.records.case_decision import CaseDecision
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.receipt import RepairReceipt
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.attempts import (
    CaseHistory,
    CaseKey,
    NewAttempts,
    StoredAttempt,
    WrittenAttempt,
    case_key,
)


@dataclass(slots=True)
class CaseBook:
    """The cases of one batch, whose attempts are judged one after another in the order of their offsets.

    `histories`: every case of the batch, as read from the store. An attempt that is added counts for those behind it.
    """

    namespace: str
    histories: Mapping[CaseKey, CaseHistory]
    _added: dict[CaseKey, dict[int, StoredAttempt]] = field(default_factory=dict, init=False)

    def before(self, proposal: Proposal, at: Coordinate) -> tuple[Attempt, ...]:
        """The attempts that count for the proposal at `at`, by number: `judge` takes them as `committed`."""
        return tuple(
            Attempt(each.number, each.call, each.verdict, each.permitted)
            for each in self._counting(case_key(self.namespace, proposal), proposal.attempt, at)
        )

    def add(
        self, proposal: Proposal, at: Coordinate, verdict: Verdict, repair: RepairReceipt | None = None
    ) -> None:
        """Take down what was said of the proposal at `at`, where it bears on another attempt.

        A case that has ended stays ended, and a stale attempt ends nothing: neither is taken down, so that a case has
        no more entries than its budgets allow. An entry of its own that stands is always brought up to date.
        """
        case = case_key(self.namespace, proposal)
        counting = self._counting(case, proposal.attempt, at)
        is_over = bool(counting) and (
            counting[-1].verdict.status is not Status.REPAIR or counting[-1].number > proposal.attempt
        )
        # What asks the requester is taken down, or it would ask again.
        is_asking = repair is not None and repair.permitted == (CLARIFICATION,)
        if is_over and not is_asking and all(each.at != at for each in self._standing(case)):
            return
        self._added.setdefault(case, {})[proposal.attempt] = _stored(proposal, at, verdict, repair)

    def news(self) -> tuple[NewAttempts, ...]:
        """What is to be recorded before the batch is committed."""
        return tuple(
            NewAttempts(case, self._history(case).revision, tuple(added.values()))
            for case, added in self._added.items()
        )

    def _counting(self, case: CaseKey, number: int, at: Coordinate) -> list[StoredAttempt]:
        return [
            each for each in self._standing(case) if each.number != number and not _is_behind(each.at, at)
        ]

    def _standing(self, case: CaseKey) -> list[StoredAttempt]:
        by_number = {each.number: each for each in self._history(case).attempts} | self._added.get(case, {})
        return [by_number[number] for number in sorted(by_number)]

    def _history(self, case: CaseKey) -> CaseHistory:
        return self.histories.get(case, CaseHistory())


def written_attempt(decision: CaseDecision, *, namespace: str, at_ms: int) -> WrittenAttempt | None:
    """The attempt that an output tells of (dispatch, review, repairs), to be restored. at_ms: the record's time.

    None where it tells of none: a collision was never judged, and a record without its proposal, for its size, does
    not say which version of the request it was for.
    """
    proposal = decision.proposed()
    if proposal is None or decision.verdict.stage is Stage.IDENTITY:
        return None
    attempt = _stored(proposal, decision.coordinate, decision.verdict, decision.repair)
    return WrittenAttempt(case_key(namespace, proposal), attempt, at_ms)


def _stored(
    proposal: Proposal, at: Coordinate, verdict: Verdict, repair: RepairReceipt | None
) -> StoredAttempt:
    is_repair = verdict.status is Status.REPAIR
    return StoredAttempt(
        number=proposal.attempt,
        at=at,
        verdict=verdict,
        call=proposal.call if is_repair else None,
        permitted=repair.permitted if is_repair and repair is not None else (),
    )


def _is_behind(other: Coordinate, mine: Coordinate) -> bool:
    """Whether an entry was left by a batch of this partition that was never committed.

    A partition is committed in order, so what lies behind this record cannot have been, and will be judged after it.
    Nothing of the kind is known of another partition: an entry from there may be committed or may never be, and
    counts in either case, for a budget that seems spent costs a person's look and one that is exceeded cannot be
    taken back.
    """
    return (other.topic, other.partition) == (mine.topic, mine.partition) and other.offset > mine.offset
