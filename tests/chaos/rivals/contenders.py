"""Who is compared, and how a worker of each is started in ticketgate's place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ...support.deployment import Deployment, Worker
from ..run import SESSION_S
from .environment import rivals_python

WORKERS = Path(__file__).with_name("workers")
# ticketgate's in this harness.
TRANSACTION_MS = 20_000


def _own_python() -> Path:
    return Path(sys.executable)


@dataclass(frozen=True, slots=True)
class Contender:
    """`script` is None for ticketgate itself; `variables` are the script's own."""

    name: str
    title: str
    script: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    python: Callable[[], Path] = _own_python


CONTENDERS = (
    Contender("ticketgate", "ticketgate, `exactly_once`"),
    Contender("faust-eo", "Faust, `exactly_once`", "faust_app.py", {"RIVAL_GUARANTEE": "exactly_once"}),
    Contender("faust-alo", "Faust, `at_least_once`", "faust_app.py", {"RIVAL_GUARANTEE": "at_least_once"}),
    Contender("aiokafka-alo", "plain aiokafka loop, at least once", "aiokafka_loop.py"),
    Contender("quix-eo", "Quix Streams, `exactly-once`", "quix_app.py", python=rivals_python),
)


@dataclass
class RivalDeployment(Deployment):
    """A deployment with a rival's workers."""

    contender: Contender = CONTENDERS[0]

    def start_worker(self, *, program: str | None = None, **settings: str) -> Worker:
        """Start a worker of the contender."""
        if self.contender.script is None:
            return super().start_worker(program=program, **settings)
        number = len(self.workers)
        folder = self.folder / f"state-{number}"
        folder.mkdir()
        environment = {
            **self.environment,
            **self.contender.variables,
            "RIVAL_KAFKA": self.settings.get("KAFKA", self.bootstrap),
            "RIVAL_GROUP": self.name,
            "RIVAL_TICKETS": self.topic("tickets"),
            "RIVAL_DISPATCH": self.topic("dispatch"),
            "RIVAL_SESSION_MS": str(round(SESSION_S * 1000)),
            "RIVAL_TRANSACTION_MS": str(TRANSACTION_MS),
            "RIVAL_FOLDER": str(folder),
        }
        command = [self.contender.python(), WORKERS / self.contender.script]
        worker = Worker(environment, self.folder / f"worker-{number}.log", command)
        self.workers.append(worker)
        return worker
