"""Who is measured, what each promises, and how its worker is started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...chaos.rivals.environment import environment_of
from ...support.deployment import Deployment, Worker
from ...support.rivals import AIOKAFKA_LOOP, start_rival
from ..rounds import SESSION_S
from .inputs import Inputs

WORKERS = Path(__file__).with_name("workers")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
NOT_STORMED = "not tried"


def bench_python() -> Path:
    """The interpreter of the rivals' environment."""
    return environment_of(REQUIREMENTS)


def _own_python() -> Path:
    return Path(sys.executable)


@dataclass(frozen=True, slots=True)
class Arm:
    """One contender. `guarantee` is what it promises; `storms` what tests/chaos/rivals counted for it, of 6,000 records
    (README.md there). script: None for ticketgate itself. does: `same` work as ticketgate's, or bare `carrying`.
    """

    name: str
    title: str
    does: str
    guarantee: str
    storms: str
    script: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    python: Callable[[], Path] = _own_python

    @property
    def decides(self) -> bool:
        """Whether there is something in it for a model to do."""
        return self.does == "same"

    def start(self, gate: Deployment, *, batch: int, inputs: Inputs) -> Worker:
        """Start its worker in a deployment."""
        if self.script is None:
            return gate.start_worker(
                BATCH_SIZE=str(batch), SESSION_TIMEOUT=f"{SESSION_S}s", **dict(self.settings)
            )
        return start_rival(
            gate,
            self.script,
            python=self.python(),
            session_ms=SESSION_S * 1000,
            variables={"RIVAL_BATCH": str(batch), "TOKENIZERS_PARALLELISM": "false", **inputs.rival},
        )


_REPEATS = "282 of 282 repeats out again"
_CALM = "exactly once, as ticketgate, while nothing fails"
ARMS = (
    Arm(
        "ticketgate",
        "ticketgate, `exactly_once`",
        does="same",
        guarantee="exactly once, and one decision for a ticket sent twice",
        storms="0 twice, 0 lost, 0 of 282 repeats out again",
    ),
    Arm(
        "ticketgate-alo",
        "ticketgate, `at_least_once`",
        does="same",
        guarantee="at least once",
        storms=NOT_STORMED,
        settings={"GUARANTEE": "at_least_once"},
    ),
    Arm(
        "work-confluent",
        "the same work on confluent-kafka",
        does="same",
        guarantee=_CALM,
        storms=NOT_STORMED,
        script=WORKERS / "confluent_work.py",
        python=bench_python,
    ),
    Arm(
        "work-quix",
        "the same work on Quix Streams",
        does="same",
        guarantee=_CALM,
        storms=NOT_STORMED,
        script=WORKERS / "quix_work.py",
        python=bench_python,
    ),
    Arm(
        "aiokafka",
        "aiokafka loop",
        does="carrying",
        guarantee="at least once",
        storms=f"48 twice, 0 lost, {_REPEATS}",
        script=AIOKAFKA_LOOP,
    ),
    Arm(
        "confluent",
        "confluent-kafka loop",
        does="carrying",
        guarantee="at least once",
        storms=NOT_STORMED,
        script=WORKERS / "confluent_loop.py",
        python=bench_python,
    ),
    Arm(
        "quix",
        "Quix Streams, `exactly-once`",
        does="carrying",
        guarantee="exactly once",
        storms=f"0 twice, 0 lost, {_REPEATS}",
        script=WORKERS / "quix_loop.py",
        python=bench_python,
    ),
    Arm(
        "faust",
        "Faust with `take`",
        does="carrying",
        guarantee="at least once",
        storms=f"3,347 twice, 0 lost, {_REPEATS}",
        script=WORKERS / "faust_take.py",
    ),
)
BASE = "aiokafka"
