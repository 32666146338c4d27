"""A deployment whose workers judge proposed payments and carry them out, and what its topics then say.

Everything is read by plain aiokafka, with none of ticketgate's code.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .deployment import Deployment, Sent, Worker
from .meddling import send_to
from .payments import PaymentServer
from .proposals import ENOUGH, authority

Record = dict[str, Any]
WAIT_S = 60.0


@dataclass(frozen=True)
class PaymentFunnel:
    """A deployment and the provider that its funnel file names."""

    gate: Deployment
    bank: PaymentServer

    def delegate(self, *actor_ids: str, **changes: Any) -> None:
        """Let actors pay £600 from an account with enough on it."""
        self.bank.set_world(ENOUGH)
        for actor_id in actor_ids:
            self.bank.delegate(authority(actor_id, **changes))

    def send(self, *proposals: Sent) -> None:
        """Produce proposals, in order, each confirmed by its actor if they confirm at all."""
        for each in proposals:
            with suppress(ValueError, KeyError, TypeError):  # what is no proposal confirms nothing
                self.bank.confirm(json.loads(each.value or b"")["request"])
        send_to(self.gate, self.gate.topic("proposals"), proposals)

    def records(self, topic: str) -> list[Record]:
        """What a read_committed reader sees in a topic now; empty values are left out."""
        return [json.loads(each.value) for each in self.gate.committed(topic) if each.value]

    def wait_for(
        self, topic: str, condition: Callable[[Record], bool], *, count: int = 1, timeout_s: float = WAIT_S
    ) -> list[Record]:
        """Wait until a topic holds `count` records that fulfil a condition; all of these. Fails with what was seen."""
        deadline = time.monotonic() + timeout_s
        while True:
            seen = self.records(topic)
            found = [each for each in seen if condition(each)]
            if len(found) >= count:
                return found
            if time.monotonic() > deadline:
                logs = "\n".join(worker.log()[-3000:] for worker in self.gate.workers)
                states = [worker.ready() for worker in self.gate.workers]
                raise AssertionError(
                    f"{len(found)} of {count} records in {topic}, which holds "
                    f"{json.dumps(seen, indent=1)[-4000:]}\n{self.bank.ledger()}\n{states}\n{logs}"
                )
            time.sleep(0.1)

    def decision(self, case_id: str, *, attempt: int = 1) -> Record:
        """The one decision receipt of an attempt, as soon as it is there."""
        (found,) = self.wait_for("receipts", decision_of(case_id, attempt))
        return found

    def effect(self, case_id: str, *states: str) -> Record:
        """The newest effect receipt of a case, as soon as it tells of one of these states."""
        wanted = states or SETTLED
        found = self.wait_for(
            "receipts", lambda each: effect_of(case_id)(each) and each["effect_state"] in wanted
        )
        return max(found, key=lambda each: each["sequence"])

    def lag(self, role: str, topic: str) -> int:
        """How much a role has still to take."""
        return self.gate.lag(topic, group=f"{self.gate.name}.{role}")

    def wait_taken(self, timeout_s: float = WAIT_S) -> None:
        """Wait until both roles have taken all there is: nothing holds a partition up."""
        deadline = time.monotonic() + timeout_s
        while any(left := (self.lag("propose", "proposals"), self.lag("effects", "dispatch"))):
            if time.monotonic() > deadline:
                logs = "\n".join(worker.log()[-3000:] for worker in self.gate.workers)
                raise AssertionError(f"proposals and dispatch are behind by {left}\n{logs}")
            time.sleep(0.1)

    def start_worker(self, roles: str = "propose,effects", *, program: str | None = None) -> Worker:
        """Start a worker with these roles."""
        return self.gate.start_worker(program=program, ROLES=roles)


SETTLED = ("committed", "rejected")


def decision_of(case_id: str, attempt: int = 1) -> Callable[[Record], bool]:
    """Whether a receipt is of the judging of an attempt."""
    return lambda each: (
        each["kind"] == "decision_receipt" and (each["case_id"], each["attempt"]) == (case_id, attempt)
    )


def effect_of(case_id: str) -> Callable[[Record], bool]:
    """Whether a receipt is of an effect of a case."""
    return lambda each: each["kind"] == "effect_receipt" and each["subject"] == case_id


def said(record: Record) -> tuple[str, str, tuple[str, ...]]:
    """Status, stage and reasons of a record's verdict."""
    verdict = record["verdict"]
    return verdict["status"], verdict["stage"], tuple(verdict["reasons"])


def assert_consistent(receipts: Iterable[Record]) -> None:
    """Receipts by key and step: told once in one way, in steps that exist, and never sent more than twice."""
    # Sequence 0 tells of a collision, and nothing of what stands under the key.
    effects = [each for each in receipts if each["kind"] == "effect_receipt" and each["sequence"]]
    by_step: dict[tuple[str, int, str], list[Record]] = {}
    for each in effects:
        by_step.setdefault(step_of(each), []).append(each)
    for step, told in by_step.items():
        # A receipt may be told again by who finds that its predecessor had not got so far as to write that down.
        told_states = Counter(
            (each["sends"], each["provider_id"], json.dumps(each.get("judged_again"))) for each in told
        )
        assert len(told_states) == 1, (step, told)
    for key in {each["idempotency_key"] for each in effects}:
        steps = [by_step[step][0] for step in sorted(by_step, key=_in_order) if step[0] == key]
        assert_steps(steps)


def step_of(receipt: Record) -> tuple[str, int, str]:
    """Key, sequence and state: a resend is announced as prepared under the sequence that sending it then has."""
    return receipt["idempotency_key"], receipt["sequence"], receipt["effect_state"]


def _in_order(step: tuple[str, int, str]) -> tuple[int, bool]:
    return step[1], step[2] != "prepared"


STEPS = {
    # A lane that dies tells of no step in between.
    ("prepared", "prepared"),
    ("prepared", "unknown"),
    ("prepared", "rejected"),
    ("prepared", "committed"),
    ("prepared", "absent"),
    ("unknown", "unknown"),
    ("unknown", "committed"),
    ("unknown", "rejected"),
    ("unknown", "absent"),
    ("absent", "prepared"),
    ("absent", "unknown"),
    ("absent", "committed"),
    ("absent", "rejected"),
    ("rejected", "prepared"),
    ("rejected", "committed"),
}
"""Each with what may lie between two receipts: not every step of the ledger has one."""


def assert_steps(steps: Sequence[Record]) -> None:
    """One effect's receipts by sequence."""
    sends = [each["sends"] for each in steps]
    states = [each["effect_state"] for each in steps]
    assert sends == sorted(sends), steps
    assert max(sends) <= 2, steps
    assert states[0] == "prepared", steps
    assert all(step in STEPS for step in pairwise(states)), states
