"""The judging of a proposal: evidence in, verdict and receipts out. Nothing is looked up or carried out here.

Promise: the same proposal on the same evidence, at the same moment, after the same attempts, is judged the same,
whoever judges and however often. There is a command exactly where an effect was accepted. What the model wrote never
sets a control: not the key, not the actor, not the limits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ticketgate.agents.deciding.gate import Observer, run_gates
from ticketgate.agents.effects.port import Command
from ticketgate.agents.funnel.case import KEY_FIELD, Call, FunnelCase
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Evidence
from ticketgate.agents.funnel.gates.evidence import WORLD_NEXT_STEP, standing_confirmations
from ticketgate.agents.funnel.gates.order import FUNNEL_GATES
from ticketgate.agents.funnel.gates.shape import check_schema
from ticketgate.agents.funnel.repair import Attempt, follow
from ticketgate.agents.funnel.results import ResultUnknown, results_of
from ticketgate.agents.funnel.values import plain, to_wire
from ticketgate.codecs.records.identity import effect_key, proposal_key
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.receipt import DecisionReceipt, RepairReceipt
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage, Status, Verdict

OBSERVED_NEXT_STEP = "the observation may be made and its result returned; no effect was asked for"
RESULT_NEXT_STEP = "a person looks the result up; nothing is told on a guess"
DECIDED_NEXT_STEP = "the effect is carried out under its key and read back"
CHANGED_NEXT_STEP = "nothing is done; the catalogue has changed since, so the request is proposed for anew"


@dataclass(frozen=True, slots=True)
class Judged:
    """How an attempt was judged. repair: what is told of the repair, if it is or asks for one. command: of an
    accepted effect, and of nothing else. confirmations: digests of those that allow it, where it needs one."""

    verdict: Verdict
    decision: DecisionReceipt
    repair: RepairReceipt | None = None
    command: Command | None = None
    confirmations: tuple[str, ...] = ()


def judge(
    proposal: Proposal,
    *,
    catalogue: Catalogue,
    evidence: Evidence,
    at: datetime,
    namespace: str,
    committed: Sequence[Attempt] = (),
    observe: Observer | None = None,
) -> Judged:
    """Judge one attempt. `at`: the moment judged for. `committed`: the other attempts at this version of the request,
    by number.

    A call that every gate lets through is accepted: an effect at the last gate, `authority`, with its command; an
    observation at `outcome`, without one and with its results. The receipt's key, fingerprint and source are
    for whoever read the record to fill in.
    """
    case = _case(proposal, catalogue, evidence, at)
    verdict = run_gates(case, FUNNEL_GATES, observe)
    followed = follow(case, verdict, committed)
    repair = None if followed is None else followed.receipt
    if followed is not None and followed.verdict.status is not Status.ACCEPT:
        verdict = followed.verdict
    command: Command | None = None
    result: Mapping[str, JsonValue] = {}
    confirmations: tuple[str, ...] = ()
    if verdict is None and case.tool.is_effect:
        verdict = Verdict(Status.ACCEPT, Stage.AUTHORITY, (), DECIDED_NEXT_STEP)
        command = _command(case, namespace)
        if case.authority is not None:
            confirmations = standing_confirmations(case, case.authority)
    elif verdict is None:
        verdict, result = _observed(case)
    return Judged(verdict, _receipt(case, verdict, evidence, result), repair, command, confirmations)


def judge_again(
    proposal: Proposal,
    *,
    catalogue: Catalogue,
    evidence: Evidence,
    at: datetime,
    confirmation: str | None,
    observe: Observer | None = None,
) -> Verdict | None:
    """The second look at an accepted effect, just before it is carried out, on evidence looked up anew.

    confirmation: the digest of the one that it used up, which has to stand still; None if it used none.
    None: go on. Else nothing is sent. Never `repair` or `accept`: the call is what it was, so what has changed since
    is the world or the catalogue, and no proposer can mend those.
    """
    case = replace(_case(proposal, catalogue, evidence, at), confirmed_by=confirmation or "")
    verdict = run_gates(case, FUNNEL_GATES, observe)
    if verdict is None or verdict.status not in (Status.REPAIR, Status.ACCEPT):
        return verdict
    if verdict.stage is Stage.TOOL_CATALOGUE:
        reasons = (f"tool_no_longer_offered:{case.call.tool}",)
        return Verdict(Status.REJECT, Stage.WORLD_STATE, reasons, WORLD_NEXT_STEP)
    return Verdict(Status.REJECT, verdict.stage, verdict.reasons, CHANGED_NEXT_STEP)


def decided_again(
    decision: DecisionReceipt, verdict: Verdict, evidence: Evidence, *, at: datetime
) -> DecisionReceipt:
    """The receipt of a decision after the second look: what was said then, on which evidence and for which moment."""
    return replace(decision, verdict=verdict, evidence=_versions(evidence), at=at)


def _case(proposal: Proposal, catalogue: Catalogue, evidence: Evidence, at: datetime) -> FunnelCase:
    return FunnelCase(proposal, catalogue, evidence.authority, evidence.world, at, evidence.unreadable)


def _observed(case: FunnelCase) -> tuple[Verdict, Mapping[str, JsonValue]]:
    """An observation that every gate let through, with what it brings; to a person where that cannot be had."""
    try:
        result = results_of(case.tool.results, case.world.facts, case.command)
    except ResultUnknown as err:
        return Verdict(Status.REVIEW, Stage.OUTCOME, (plain(str(err)),), RESULT_NEXT_STEP), {}
    return Verdict(Status.ACCEPT, Stage.OUTCOME, (), OBSERVED_NEXT_STEP), result


def _command(case: FunnelCase, namespace: str) -> Command:
    """The effect of a case that passed every gate, under the key that the application bound, else one of the case.

    Not of the attempt: a second attempt at a case must not have a second effect. Attempts count from 1, so 0 is the
    case's own place.
    """
    proposal = case.proposal
    given = proposal.request.control.get(KEY_FIELD)
    key = (
        given
        if isinstance(given, str)
        else effect_key(proposal_key(namespace, proposal.tenant, proposal.case_id, 0), 0)
    )
    return Command(case.call.tool, {name: to_wire(value) for name, value in case.command.items()}, key)


def _receipt(
    case: FunnelCase, verdict: Verdict, evidence: Evidence, result: Mapping[str, JsonValue]
) -> DecisionReceipt:
    # By the call itself: a repair that was stopped bears the stage of an attempt before.
    is_valid = (
        isinstance(case.envelope, Call)
        and case.envelope.tool in case.compiled.tools
        and check_schema(case) is None
    )
    proposal = case.proposal
    return DecisionReceipt(
        case_id=proposal.case_id,
        attempt=proposal.attempt,
        tenant=proposal.tenant,
        request=case.request,
        verdict=verdict,
        catalogue=case.compiled.ref,
        evidence=_versions(evidence),
        tool=case.call.tool if is_valid else None,
        arguments={name: to_wire(value) for name, value in case.arguments.items()} if is_valid else {},
        effect_created=None if is_valid and case.tool.is_effect else False,
        result=result,
        mended=case.written.mended_by,
        model=proposal.model,
        at=case.at,
    )


def _versions(evidence: Evidence) -> Mapping[str, str]:
    return {
        "authority": "" if evidence.authority is None else evidence.authority.version,
        "world": evidence.world.version,
    }
