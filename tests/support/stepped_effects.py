"""A payment funnel whose effects are carried out by workers that die or stand still at a step (stepping_worker.py).

One worker judges for as long as the funnel lives; those that carry out come and go.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from . import stepping_worker
from .deployment import Deployment, Worker
from .meddling import redis_call
from .payment_funnel import PaymentFunnel, assert_consistent, effect_of
from .payments import PaymentServer
from .proposals import funnel_file, key_of, proposal

STRIKE_TIMEOUT_S = 30.0
# Short, so that a partition of a killed worker is soon given away.
SETTINGS: Mapping[str, str] = {"PARTITIONS": "1", "SESSION_TIMEOUT": "2s", "REDIS_TIMEOUT": "1s"}


@dataclass(frozen=True)
class SteppedEffects(PaymentFunnel):
    """`hands` are the workers with the role effects, the newest last."""

    step_file: Path
    valkey: Valkey
    hands: list[Worker] = field(default_factory=list)

    def hand(self) -> Worker:
        """The worker that carries out now; a new one if none lives."""
        if not self.hands or self.hands[-1].process.poll() is not None:
            self.relieve()
        return self.hands[-1]

    def relieve(self) -> Worker:
        """Start another worker that carries out; it is not armed."""
        self.hands.append(self.start_worker("effects", program=stepping_worker.__file__))
        return self.hands[-1]

    def arm(self, at: str, *, nth: int = 1, strike: signal.Signals = signal.SIGKILL) -> None:
        """Let the first process that reaches a step for the nth time from now on be struck there."""
        new = self.step_file.with_suffix(".new")
        # The time makes it another arming, so that the count begins anew.
        new.write_text(json.dumps({"at": at, "nth": nth, "signal": strike, "armed": time.time()}))
        new.replace(self.step_file)

    def wait_struck(self, hand: Worker, strike: signal.Signals = signal.SIGKILL) -> None:
        """Wait until a worker is dead, or stands still; fails with its log."""
        deadline = time.monotonic() + STRIKE_TIMEOUT_S
        how = os.WSTOPPED if strike is signal.SIGSTOP else os.WEXITED
        while not os.waitid(os.P_PID, hand.process.pid, how | os.WNOWAIT | os.WNOHANG):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"the step was not reached: {self.step_file.read_text()}\n{hand.log()[-4000:]}"
                )
            time.sleep(0.02)
        assert not self.step_file.exists(), f"it ended by itself\n{hand.log()[-4000:]}"

    def wait_settled(self) -> None:
        """Wait until all is taken, and nothing is left to be read back or to be told of."""
        self.wait_taken()
        self.wait_until(lambda: self.due() == 0)

    def due(self) -> object:
        """How many effects are to be looked at again."""
        return redis_call(self.gate.redis_url, "ZCARD", f"ticketgate:{self.gate.name}:effects_open")

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition holds; fails with the ledgers and the newest worker's log."""
        deadline = time.monotonic() + STRIKE_TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"due: {self.due()}\n{self.bank.ledger()}\n{self.hand().log()[-4000:]}")
            time.sleep(0.05)

    def outlive(self, part: Valkey | PaymentServer, *, actor_id: str, cases: Sequence[str]) -> None:
        """Kill and restart a part amid payments, each slow enough for that: each is made once."""
        self.delegate(actor_id)
        self.bank.fail("commit_then_late_answer", times=len(cases), seconds=0.4)
        self.hand().wait_ready()
        self.send(*(proposal(case_id, actor_id=actor_id) for case_id in cases))
        self.wait_until(lambda: self.bank.account(key_of(cases[3])).posts)

        part.kill()
        part.start()

        self.assert_each_paid_once(cases)

    def assert_each_paid_once(self, cases: Sequence[str]) -> None:
        """Each has one transfer, as its receipt says, and was asked for twice at most; nothing is open or held up."""
        self.wait_for(
            "receipts",
            lambda each: each.get("subject") in cases and each["effect_state"] == "committed",
            count=len(cases),
        )
        self.wait_settled()
        receipts = self.records("receipts")
        assert_consistent(receipts)
        ledger = self.bank.ledger()
        for case_id in cases:
            paid = ledger[key_of(case_id)]
            told = {each["provider_id"] for each in receipts if effect_of(case_id)(each)} - {None}
            assert (len(paid.transfers), told) == (1, {*paid.transfers}), case_id
            assert paid.posts <= 2, case_id


@contextmanager
def stepped_effects(kafka: Kafka, folder: Path, **funnel: Any) -> Iterator[SteppedEffects]:
    """The parts, a deployment, and the worker that judges. `funnel` as `funnel_file` takes it."""
    step_file = folder / "step.json"
    with (
        Valkey(data=folder / "valkey") as valkey,
        PaymentServer(folder / "bank") as bank,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("STEP_FILE", str(step_file))
        file = funnel_file(folder / "funnel.toml", bank, **funnel)
        settings = {**SETTINGS, "FUNNEL": str(file)}
        with Deployment(kafka.bootstrap, valkey.url, folder / "workers", settings) as gate:
            effects = SteppedEffects(gate, bank, step_file, valkey)
            effects.start_worker("propose").wait_ready()
            yield effects
