"""A record of the funnel as a case for `ticketgate funnel`: so that an incident ends with a test of what failed.

Promise: the case has the request, the call and the evidence of the record, that of a second look too, at the moments
that were judged for, and expects what the record says; run by the same catalogue it comes to that verdict. Where a
record does not hold what this takes, it is told what is missing. Records that belong together (attempts at a case, what
became of its effect) make one case each attempt.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ticketgate.agents.workbench.funnel.reproduce import EXECUTION, NotReproducible, Reproduction, reproduce
from ticketgate.codecs.records.case_decision import CaseDecision
from ticketgate.codecs.records.receipt import EffectReceipt, EffectStatus, JudgedAgain, StopReason
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage, Status, Verdict

# These stops compare an attempt with those before it.
_RESTS_ON_EARLIER: Final = frozenset(
    str(reason) for reason in StopReason if reason is not StopReason.REPAIRED
)


class CaseExportError(ValueError):
    """A record that cannot become a case: which, and what is missing, in one line."""


@dataclass(slots=True)
class _Attempt:
    """What is known of one attempt: the decision on it, and its effect's receipts in the order given."""

    judged: CaseDecision
    receipts: list[EffectReceipt] = field(default_factory=list)

    @property
    def last_receipt(self) -> EffectReceipt | None:
        """The furthest step that says how the effect stands. A person's word is no test: the step before it is."""
        telling = [each for each in self.receipts if each.verdict is not None and each.settled_by is None]
        return max(telling, key=lambda each: each.sequence, default=None)


def export_cases(
    decisions: Sequence[CaseDecision], receipts: Sequence[EffectReceipt], *, name: str | None = None
) -> tuple[list[dict[str, JsonValue]], list[CaseExportError]]:
    """The cases that the records make, the attempts at a case in their order, and what could not become one.

    name: for the cases; numbered where there are several. None: the case id, with the attempt beyond the first.
    """
    errors: list[CaseExportError] = []
    attempts = _grouped(decisions)
    for receipt in receipts:
        owner = _owner(receipt, attempts.values())
        if owner is None:
            errors.append(_without_decision(receipt))
        else:
            owner.receipts.append(receipt)
    lines: list[dict[str, JsonValue]] = []
    # The order in which the records came, which is that in which keys were taken; attempts by number within a case.
    first_seen: dict[tuple[str, str], int] = {}
    for tenant, case_id, _, _ in attempts:
        first_seen.setdefault((tenant, case_id), len(first_seen))
    for key in sorted(attempts, key=lambda each: (first_seen[each[:2]], each[2])):
        try:
            lines.append(_line(attempts[key], attempts))
        except NotReproducible as err:
            judged = attempts[key].judged
            errors.append(CaseExportError(f"case {judged.case_id} attempt {judged.attempt}: {err}"))
    if name is not None:
        for number, line in enumerate(lines, start=1):
            line["name"] = name if len(lines) == 1 else f"{name} {number}"
    return lines, errors


_Key = tuple[str, str, int, str]


def _grouped(decisions: Iterable[CaseDecision]) -> dict[_Key, _Attempt]:
    """By attempt and content: a second content under one attempt's key is another matter."""
    attempts: dict[_Key, _Attempt] = {}
    for each in decisions:
        attempts.setdefault((each.tenant, each.case_id, each.attempt, each.fingerprint), _Attempt(each))
    return attempts


def _owner(receipt: EffectReceipt, attempts: Iterable[_Attempt]) -> _Attempt | None:
    """The attempt whose effect it is. A key alone does not tell: another effect may have been asked for under it."""
    for attempt in attempts:
        wanted = [(each.tool, each.arguments, each.idempotency_key) for each in attempt.judged.effects]
        mine = (receipt.tool, receipt.arguments, receipt.idempotency_key)
        if mine in wanted and receipt.subject == attempt.judged.case_id:
            return attempt
    return None


def _without_decision(receipt: EffectReceipt) -> CaseExportError:
    where = "dispatch" if receipt.source is None else str(receipt.source)
    return CaseExportError(
        f"effect {receipt.idempotency_key}: a receipt holds neither the request nor the evidence; give the decision"
        f" that lies at {where} as well"
    )


def _line(attempt: _Attempt, attempts: dict[_Key, _Attempt]) -> dict[str, JsonValue]:
    """The case. Raises NotReproducible."""
    judged = attempt.judged
    if judged.proposal is None:
        raise NotReproducible(
            f"its call was left out for its size; write the case by hand, from the proposal at {judged.coordinate}"
        )
    if judged.verdict.stage in (Stage.IDENTITY, Stage.POLICY):
        # A second content under a claimed key, or a fault of ours while judging.
        raise NotReproducible(f"no gate of the funnel said {', '.join(judged.verdict.reasons)}")
    verdict = _verdict(attempt)
    is_first = not any(
        key[:2] == (judged.tenant, judged.case_id) and key[2] < judged.attempt for key in attempts
    )
    if is_first and verdict.reasons and verdict.reasons[0] in _RESTS_ON_EARLIER:
        raise NotReproducible(
            "it was stopped for what the attempts before it were; give their records as well"
        )
    name = judged.case_id if judged.attempt == 1 else f"{judged.case_id} attempt {judged.attempt}"
    line: dict[str, JsonValue] = {"name": name, "case_id": judged.case_id, "attempt": judged.attempt}
    if judged.tenant:
        line["tenant"] = judged.tenant
    line |= {
        "at": judged.to_json()["decided_at"],
        "request": judged.proposal.request.to_json(),
        "authority": judged.evidence["authority"],
        "world": judged.evidence["world"],
        "call": judged.proposal.call,
    }
    faults, reasons = _faults(attempt, verdict, attempts)
    if "unreadable" in judged.evidence:
        faults["unreadable"] = judged.evidence["unreadable"]
    if faults:
        line["faults"] = faults
    expect: dict[str, JsonValue] = {"status": str(verdict.status), "stage": str(verdict.stage)}
    if reasons is not None:
        expect["reasons"] = list(reasons)
    receipt = attempt.last_receipt
    if receipt is not None and receipt.status is EffectStatus.VERIFIED_BY_READBACK:
        expect["receipt"] = str(receipt.status)
    line["expect"] = expect
    return line


def _verdict(attempt: _Attempt) -> Verdict:
    """What is to be expected: how the effect stands, else the decision. Raises NotReproducible."""
    receipt, judged = attempt.last_receipt, attempt.judged
    if receipt is not None and receipt.verdict is not None:
        return receipt.verdict
    if any(each.settled_by is not None for each in attempt.receipts):
        raise NotReproducible(
            "its effect was settled by a person's word; give the receipt of the step before"
        )
    if judged.effects:
        # Accepted at its last gate; without a fault it is carried out and read back equal.
        return Verdict(Status.ACCEPT, Stage.POSTCONDITION, (), "")
    return judged.verdict


def _faults(
    attempt: _Attempt, verdict: Verdict, attempts: dict[_Key, _Attempt]
) -> tuple[dict[str, JsonValue], tuple[str, ...] | None]:
    """The faults that bring the verdict about, and the reasons to expect."""
    judged = attempt.judged
    if verdict.stage in EXECUTION and judged.effects:
        if verdict.stage is Stage.IDEMPOTENCY and _stands_before(attempt, attempts):
            return {}, verdict.reasons
        found = reproduce(verdict)
        return _as_faults(found), found.reasons
    if judged.effects:
        receipt = attempt.last_receipt
        return _second_look(
            verdict, judged, None if receipt is None else receipt.judged_again
        ), verdict.reasons
    return {}, verdict.reasons


def _second_look(verdict: Verdict, judged: CaseDecision, again: JudgedAgain | None) -> dict[str, JsonValue]:
    """The faults that are the later evidence and moment. Raises NotReproducible."""
    if again is None:
        why = "by what is no evidence"
    elif again.evidence is None:
        why = "by evidence that was left out for its size"
    elif _is_of_another_catalogue(verdict, judged.evidence, again.evidence):
        why = "by a catalogue that had changed since, and a case is run by one"
    else:
        evidence = again.evidence
        faults: dict[str, JsonValue] = {
            "authority_before_effect": evidence["authority"],
            "world_before_effect": evidence["world"],
            "at_before_effect": again.to_json()["at"],
        }
        if "unreadable" in evidence:
            faults["unreadable_before_effect"] = evidence["unreadable"]
        return faults
    raise NotReproducible(
        f"its effect was stopped ({', '.join(verdict.reasons)}) {why}; export the decision from dispatch alone, and"
        " write into its case what is missing"
    )


def _is_of_another_catalogue(
    verdict: Verdict, before: Mapping[str, JsonValue], later: Mapping[str, JsonValue]
) -> bool:
    """Whether evidence cannot have brought the verdict about: a call that was right is so by the same catalogue, and
    the same facts offer the same tools."""
    if verdict.stage not in (Stage.WORLD_STATE, Stage.AUTHORITY):
        return True
    is_withdrawn = any(each.startswith("tool_no_longer_offered:") for each in verdict.reasons)
    return is_withdrawn and _facts(before) == _facts(later)


def _facts(evidence: Mapping[str, JsonValue]) -> JsonValue:
    world = evidence["world"]
    return world.get("facts") if isinstance(world, dict) else None


def _stands_before(attempt: _Attempt, attempts: dict[_Key, _Attempt]) -> bool:
    """Whether the effect that has the key is among the cases before this one."""
    keys = {effect.idempotency_key for effect in attempt.judged.effects}
    for other in attempts.values():
        if other is attempt:
            return False
        if keys & {effect.idempotency_key for effect in other.judged.effects}:
            return True
    return False


def _as_faults(found: Reproduction) -> dict[str, JsonValue]:
    faults: dict[str, JsonValue] = {}
    if found.execute:
        faults["execute"] = list(found.execute)
    if found.read_back:
        faults["read_back"] = list(found.read_back)
    return faults
