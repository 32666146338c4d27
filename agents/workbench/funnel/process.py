"""One proposal through the whole funnel.

Promise: an effect happens only for a call that passed every gate twice, the second time on evidence looked up just
before acting.
Steps: 1 look up, 2 judge, 3 prepare, which uses a confirmation up, 4 look up again and judge again, 5 carry out and
verify.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ticketgate.agents.deciding.gate import Observer
from ticketgate.agents.effects.port import EffectPort
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Lookup, look_up
from ticketgate.agents.funnel.judge import decided_again, judge, judge_again
from ticketgate.agents.funnel.repair import Attempt
from ticketgate.agents.workbench.funnel.execute import Run, Settled
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.receipt import DecisionReceipt, EffectReceipt, RepairReceipt
from ticketgate.codecs.verdict import Verdict


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
    again_at: datetime | None = None,
    namespace: str = "",
    committed: Sequence[Attempt] = (),
    observe: Observer | None = None,
    run: Run | None = None,
) -> Outcome:
    """Judge a proposal and, if every gate lets it through, carry its effect out. `at`: the moment judged for.

    again_at: that of the second look; None: the same. committed: the earlier attempts at this version of the request,
    in order. run: which confirmations the proposals before have used up; None: none. What the lookup or the port raises
    passes through.
    """
    # 1
    evidence = await look_up(proposal, lookup)
    # 2
    judged = judge(
        proposal,
        catalogue=catalogue,
        evidence=evidence,
        at=at,
        namespace=namespace,
        committed=committed,
        observe=observe,
    )
    if judged.command is None:
        return Outcome(judged.verdict, judged.decision, repair=judged.repair)
    # 3
    begun = await (run or Run()).begin(judged.command, port, judged.confirmations, states=catalogue.states)
    if isinstance(begun, Settled):
        return Outcome(begun.verdict, judged.decision, repair=judged.repair)
    # 4
    evidence = await look_up(proposal, lookup)
    again_at = again_at or at
    verdict = begun.objection or judge_again(
        proposal,
        catalogue=catalogue,
        evidence=evidence,
        at=again_at,
        confirmation=begun.confirmation,
        observe=observe,
    )
    decision = decided_again(judged.decision, verdict or judged.verdict, evidence, at=again_at)
    if verdict is not None:
        await begun.stop(verdict)
        return Outcome(verdict, decision, repair=judged.repair)
    # 5
    settled = await begun.carry_out()
    # The ledger of one command knows neither whose it is nor the time.
    effect = settled.receipt and replace(settled.receipt, subject=proposal.case_id, at=decision.at)
    return Outcome(settled.verdict, decision, effect, judged.repair)
