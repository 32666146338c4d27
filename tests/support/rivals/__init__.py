"""Workers that others would write in ticketgate's place, and what starts one: for their storms and their costs alike.

The scripts beside this run in an environment of their own, know nothing of this package, and take all they need from
variables named RIVAL_…; a harness has further scripts that import the `…_parts` from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..deployment import Deployment, Worker

SCRIPTS = Path(__file__).parent
AIOKAFKA_LOOP = SCRIPTS / "aiokafka_loop.py"


def start_rival(
    gate: Deployment, script: Path, *, python: Path, session_ms: int, variables: Mapping[str, str]
) -> Worker:
    """Start a worker of a deployment by its script; it is ended with the deployment. variables: the script's own."""
    number = len(gate.workers)
    folder = gate.folder / f"state-{number}"
    folder.mkdir()
    settings = gate.environment
    environment = {
        **settings,
        "PYTHONPATH": str(SCRIPTS),
        "RIVAL_KAFKA": settings["TICKETGATE_KAFKA"],
        "RIVAL_REDIS": settings["TICKETGATE_REDIS"],
        "RIVAL_GROUP": gate.name,
        "RIVAL_TICKETS": gate.topic("tickets"),
        "RIVAL_DISPATCH": gate.topic("dispatch"),
        "RIVAL_REVIEW": gate.topic("review"),
        "RIVAL_SESSION_MS": str(session_ms),
        "RIVAL_FOLDER": str(folder),
        **variables,
    }
    worker = Worker(environment, gate.folder / f"worker-{number}.log", [python, script])
    gate.workers.append(worker)
    return worker
