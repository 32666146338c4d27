"""The decider of a worker: a policy and a scorer, run in a thread of their own.

Promise: the event loop goes on while a model computes, so heartbeats are sent and `/readyz` answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ticketgate.agents.deciding.decide import Decision, decide, refuse
from ticketgate.agents.policy import Policy
from ticketgate.agents.scoring import Scorer
from ticketgate.agents.scoring.scorer import Closable, Remembering, TextCounts
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.verdict import Stage
from ticketgate.streams.config.gate_tally import GateTally
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.roles.decide.deciding import ScorerHung


class ModelDecider:
    """Decides by `policy` with `scorer`, one batch at a time, each within `timeout_s` once it is its turn; gates are
    counted in `telemetry`."""

    def __init__(self, *, policy: Policy, scorer: Scorer, telemetry: Telemetry, timeout_s: float) -> None:
        self._policy = policy
        self._scorer = scorer
        self._telemetry = telemetry
        self._timeout_s = timeout_s
        self._texts = TextCounts()
        # One thread: onnxruntime spreads one inference over the cores that its setting allows.
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="decide")
        telemetry.policies.in_force(policy.ref)

    def describe(self) -> dict[str, object]:
        """The policy and model in force, for /readyz."""
        model = self._scorer.model
        return {
            "policy": self._policy.ref.to_json(),
            "model": {"id": model.id, "hash": model.hash},
        }

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    @property
    def scorer(self) -> Scorer:
        """Who answers the policy's questions."""
        return self._scorer

    def adopt(self, policy: Policy) -> None:
        """Judge by this policy from the next batch on; a batch under way ends by the one that it began with."""
        self._policy = policy
        self._telemetry.policies.in_force(policy.ref)

    async def decide(self, tickets: Sequence[Ticket]) -> Sequence[Decision]:
        """One decision a ticket, in order. Raises what the scorer raises, and `ScorerHung`."""
        work = asyncio.get_running_loop().run_in_executor(self._executor, self._decide, tickets)
        # Not cancelled at the limit, for a thread cannot be: the process has to end with it.
        done, _ = await asyncio.wait([work], timeout=self._timeout_s)
        if not done:
            raise ScorerHung(self._timeout_s)
        return work.result()

    def refuse(self, stage: Stage, reasons: Sequence[str]) -> Decision:
        """A decision for review without inference."""
        return refuse(policy=self._policy.ref, model=self._scorer.model, stage=stage, reasons=reasons)

    def close(self) -> None:
        """Take no further batch; a computation under way is not waited for, and a remote one broken off."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        if isinstance(self._scorer, Closable):
            self._scorer.close()

    def _decide(self, tickets: Sequence[Ticket]) -> Sequence[Decision]:
        # Read once: all of a batch is judged by one policy, whichever comes into force meanwhile.
        policy = self._policy
        tally = GateTally()
        try:
            return decide(tickets, policy=policy, scorer=self._scorer, observe=tally.observe)
        finally:
            self._telemetry.gates(tally)
            self._count_texts()

    def _count_texts(self) -> None:
        if isinstance(self._scorer, Remembering):
            counts = self._scorer.text_counts
            self._telemetry.texts(counts.since(self._texts))
            self._texts = counts
