"""Who is compared, and how a worker of each is started in ticketgate's place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...support.deployment import Deployment, Worker
from ...support.rivals import AIOKAFKA_LOOP, start_rival
from ..run import SESSION_S
from .environment import rivals_python

WORKERS = Path(__file__).with_name("workers")
# ticketgate's in this harness.
TRANSACTION_MS = 20_000
# Batches of so many, and outputs by which each record is judged.
AIOKAFKA = {"RIVAL_BATCH": "16", "RIVAL_OUTPUT": "coordinate"}


def _own_python() -> Path:
    return Path(sys.executable)


@dataclass(frozen=True, slots=True)
class Contender:
    """`script` is None for ticketgate itself; `variables` are the script's own."""

    name: str
    title: str
    script: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    python: Callable[[], Path] = _own_python


CONTENDERS = (
    Contender("ticketgate", "ticketgate, `exactly_once`"),
    Contender(
        "faust-eo", "Faust, `exactly_once`", WORKERS / "faust_app.py", {"RIVAL_GUARANTEE": "exactly_once"}
    ),
    Contender(
        "faust-alo", "Faust, `at_least_once`", WORKERS / "faust_app.py", {"RIVAL_GUARANTEE": "at_least_once"}
    ),
    Contender("aiokafka-alo", "plain aiokafka loop, at least once", AIOKAFKA_LOOP, AIOKAFKA),
    Contender("quix-eo", "Quix Streams, `exactly-once`", WORKERS / "quix_app.py", python=rivals_python),
)


@dataclass
class RivalDeployment(Deployment):
    """A deployment with a rival's workers."""

    contender: Contender = CONTENDERS[0]

    def start_worker(self, *, program: str | None = None, **settings: str) -> Worker:
        """Start a worker of the contender."""
        if self.contender.script is None:
            return super().start_worker(program=program, **settings)
        return start_rival(
            self,
            self.contender.script,
            python=self.contender.python(),
            session_ms=round(SESSION_S * 1000),
            variables={"RIVAL_TRANSACTION_MS": str(TRANSACTION_MS), **self.contender.variables},
        )
