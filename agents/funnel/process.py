"""One proposal through the whole funnel.

Promise: an effect happens only for a call that passed every gate twice, the second time on evidence looked up just
before acting. What the model wrote never sets a control: not the key, not the actor, not the limits.
Steps: 1 look up, 2 gates, 3 the attempts before, 4 look up again and judge again, 5 carry out and verify.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ticketgate.agents.effects.execute import carry_out
from ticketgate.agents.effects.port import Command, EffectPort
from ticketgate.agents.funnel.case import Call, FunnelCase
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Lookup, look_up
from ticketgate.agents.funnel.evidence_gates import WORLD_NEXT_STEP
from ticketgate.agents.funnel.gates import FUNNEL_GATES
from ticketgate.agents.funnel.repair import Attempt, follow
from ticketgate.agents.funnel.shape_gates import check_schema
from ticketgate.agents.funnel.values import to_wire
from ticketgate.agents.gate import Observer, run_gates
from ticketgate.codecs.identity import effect_key, proposal_key
from ticketgate.codecs.proposal import Proposal
from ticketgate.codecs.receipt import DecisionReceipt, EffectReceipt, RepairReceipt
from ticketgate.codecs.verdict import Stage, Status, Verdict

OBSERVED_NEXT_STEP = "the observation may be made and its result returned; no effect was asked for"
DECIDED_NEXT_STEP = "the effect is carried out under its key and read back"

# The field whose control value is the effect's key, where the application binds one.
KEY_FIELD = "idempotency_key"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended. decision: the receipt of the judging; effect: only if an effect stands, verified."""

    verdict: Verdict
    decision: DecisionReceipt
    effect: EffectReceipt | None = None
    repair: RepairReceipt | None = None


async def process(
    proposal: Proposal,
    *,
    catalogue: Catalogue,
    lookup: Lookup,
    port: EffectPort,
    at: datetime,
    namespace: str = "",
    committed: Sequence[Attempt] = (),
    observe: Observer | None = None,
) -> Outcome:
    """Judge a proposal and, if every gate lets it through, carry its effect out. `at`: the moment judged for.

    committed: the earlier attempts at this version of the request, in order. What the lookup or the port raises
    passes through.
    """
    # 1
    case = await _looked_up(proposal, catalogue, lookup, at)
    # 2
    verdict = run_gates(case, FUNNEL_GATES, observe)
    # 3
    followed = follow(case, verdict, committed)
    repair = None if followed is None else followed.receipt
    if followed is not None and followed.verdict.status is not Status.ACCEPT:
        verdict = followed.verdict
    if verdict is not None:
        return Outcome(verdict, _receipt(case, verdict), repair=repair)
    if not case.tool.is_effect:
        verdict = Verdict(Status.ACCEPT, Stage.OUTCOME, (), OBSERVED_NEXT_STEP)
        return Outcome(verdict, _receipt(case, verdict), repair=repair)
    # 4
    case = await _looked_up(proposal, catalogue, lookup, at)
    verdict = run_gates(case, FUNNEL_GATES, observe)
    if verdict is not None and verdict.status is Status.REPAIR:
        # The call is what it was and passed: the world has withdrawn its tool, which no proposer can mend.
        reasons = (f"tool_no_longer_offered:{case.call.tool}",)
        verdict = Verdict(Status.REJECT, Stage.WORLD_STATE, reasons, WORLD_NEXT_STEP)
    if verdict is not None:
        return Outcome(verdict, _receipt(case, verdict), repair=repair)
    decision = _receipt(case, Verdict(Status.ACCEPT, Stage.AUTHORITY, (), DECIDED_NEXT_STEP))
    # 5
    settled = await carry_out(command_of(case, namespace), port)
    return Outcome(settled.verdict, decision, settled.receipt, repair)


def command_of(case: FunnelCase, namespace: str) -> Command:
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


async def _looked_up(proposal: Proposal, catalogue: Catalogue, lookup: Lookup, at: datetime) -> FunnelCase:
    evidence = await look_up(proposal, lookup)
    return FunnelCase(proposal, catalogue, evidence.authority, evidence.world, at)


def _receipt(case: FunnelCase, verdict: Verdict) -> DecisionReceipt:
    # By the call itself: a repair that was stopped bears the stage of an attempt before.
    is_valid = (
        isinstance(case.envelope, Call)
        and case.envelope.tool in case.compiled.tools
        and check_schema(case) is None
    )
    return DecisionReceipt(
        case_id=case.proposal.case_id,
        attempt=case.proposal.attempt,
        tenant=case.proposal.tenant,
        request=case.request,
        verdict=verdict,
        catalogue=case.compiled.ref,
        evidence={
            "authority": "" if case.authority is None else case.authority.version,
            "world": case.world.version,
        },
        tool=case.call.tool if is_valid else None,
        arguments={name: to_wire(value) for name, value in case.arguments.items()} if is_valid else {},
        effect_created=None if is_valid and case.tool.is_effect else False,
    )
