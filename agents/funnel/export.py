"""A record of the funnel as a case for `ticketgate funnel`: so that an incident ends with a test of what failed.

Promise: the case has the request, the call and the evidence of the record, at the moment that it was judged for, and
expects what the record says; run by the same catalogue it comes to that verdict. Where a record does not hold what this
takes, it is told what is missing. Records that belong together (attempts at a case, what became of its effect) make one
case each attempt.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ticketgate.agents.funnel.judge import KEY_FIELD
from ticketgate.agents.funnel.reproduce import EXECUTION, NotReproducible, Reproduction, reproduce
from ticketgate.codecs.case_decision import CaseDecision
from ticketgate.codecs.receipt import EffectReceipt, EffectStatus, StopReason
from ticketgate.codecs.strict import JsonValue
from ticketgate.codecs.verdict import Stage, Status, Verdict

# These stops compare an attempt with those before it.
_RESTS_ON_EARLIER: Final = frozenset(
    str(reason) for reason in StopReason if reason is not StopReason.REPAIRED
)

# What the second look alone can say: the call was offered and well formed when it was accepted.
_SECOND_LOOK_ALONE: Final = "tool_no_longer_offered:"


class CaseExportError(ValueError):
    """A record that cannot become a case: which, and what is missing, in one line."""


@dataclass(slots=True)
class _Attempt:
    """What is known of one attempt: the decisions on it in the order given, and its effect's receipts."""

    decisions: list[CaseDecision] = field(default_factory=list)
    receipts: list[EffectReceipt] = field(default_factory=list)

    @property
    def judged(self) -> CaseDecision:
        """The decision at the first look: the one that accepted an effect, if there is one."""
        return next((each for each in self.decisions if each.effects), self.decisions[0])

    @property
    def later(self) -> CaseDecision | None:
        """What was written of the attempt after its effect was accepted."""
        first = self.judged
        return next((each for each in self.decisions if first.effects and each != first), None)

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
        found = attempts.setdefault((each.tenant, each.case_id, each.attempt, each.fingerprint), _Attempt())
        if each not in found.decisions:
            found.decisions.append(each)
    return attempts


def _owner(receipt: EffectReceipt, attempts: Iterable[_Attempt]) -> _Attempt | None:
    """The attempt whose effect it is: by the effect's key, else by the case that it names."""
    named: _Attempt | None = None
    for attempt in attempts:
        effects = attempt.judged.effects
        if any(
            effect.idempotency_key == receipt.idempotency_key
            and effect.tool == receipt.tool
            and effect.arguments == receipt.arguments
            for effect in effects
        ):
            if receipt.subject in ("", attempt.judged.case_id):
                return attempt
        elif receipt.subject == attempt.judged.case_id and not effects:
            named = attempt
    return named


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
            f"its call was left out for its size; give the proposal's own record, {judged.coordinate}"
        )
    if judged.verdict.stage is Stage.IDENTITY:
        raise NotReproducible("a second content under a claimed key never reached a gate")
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
    """What is to be expected: how the effect stands, else what was said after it was accepted, else the decision."""
    receipt, later, judged = attempt.last_receipt, attempt.later, attempt.judged
    if receipt is not None and receipt.verdict is not None:
        return receipt.verdict
    if later is not None:
        return later.verdict
    if judged.effects:
        # Accepted at its last gate; without a fault it is carried out and read back equal.
        return Verdict(Status.ACCEPT, Stage.POSTCONDITION, (), "")
    return judged.verdict


def _faults(
    attempt: _Attempt, verdict: Verdict, attempts: dict[_Key, _Attempt]
) -> tuple[dict[str, JsonValue], tuple[str, ...] | None]:
    """The faults that bring the verdict about, and the reasons to expect."""
    judged = attempt.judged
    is_carried_out = bool(judged.effects) or judged.verdict == verdict
    if verdict.stage in EXECUTION and is_carried_out and not _is_observed(attempt):
        if verdict.stage is Stage.IDEMPOTENCY and _stands_before(attempt, attempts):
            return {}, verdict.reasons
        found = reproduce(verdict)
        return _as_faults(found), found.reasons
    if not judged.effects or judged.verdict == verdict:
        if any(each.startswith(_SECOND_LOOK_ALONE) for each in verdict.reasons):
            raise NotReproducible("it was stopped at the second look; give the record from dispatch as well")
        return {}, verdict.reasons
    # Stopped at the second look, on other evidence than the first.
    later = attempt.later
    if later is None:
        raise NotReproducible(
            "it was stopped at the second look, whose evidence a receipt does not hold; give the record from review"
        )
    # Nobody known and nobody with a right are one denial; a case says the former of the first look alone.
    nobody: dict[str, JsonValue] = {"actor_id": judged.proposal.request.actor_id if judged.proposal else ""}
    faults: dict[str, JsonValue] = {
        "authority_before_effect": later.evidence["authority"] or nobody,
        "world_before_effect": later.evidence["world"],
    }
    if "unreadable" in later.evidence:
        faults["unreadable_before_effect"] = later.evidence["unreadable"]
    return faults, verdict.reasons


def _is_observed(attempt: _Attempt) -> bool:
    """An observation is accepted at `outcome` too, and nothing is carried out for it."""
    judged = attempt.judged
    return judged.verdict.status is Status.ACCEPT and not judged.effects


def _stands_before(attempt: _Attempt, attempts: dict[_Key, _Attempt]) -> bool:
    """Whether the effect that has the key is among the cases before this one."""
    keys = {effect.idempotency_key for effect in attempt.judged.effects}
    keys |= {receipt.idempotency_key for receipt in attempt.receipts}
    proposed = attempt.judged.proposal
    if proposed is not None and isinstance(given := proposed.request.control.get(KEY_FIELD), str):
        keys.add(given)
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
