"""`ticketgate worker` that kills or stops itself at a step of a settlement, when the test arms it; as
stepping_worker.py says."""

from __future__ import annotations

import os
from pathlib import Path

from aiokafka import AIOKafkaProducer
from ticketgate.store.claims import Claims
from ticketgate.store.settlement_claims import SettlementClaims
from ticketgate.streams.cli import main
from ticketgate.streams.roles.settle.looking import Looking

try:
    from .stepping_worker import Armed, stepping
except ImportError:  # run as a program
    from stepping_worker import Armed, stepping  # type: ignore[no-redef,import-not-found]

STEPS: dict[str, tuple[type, str]] = {
    "look": (Looking, "look"),
    "claims.claim": (SettlementClaims, "claim"),
    "kafka.commit": (AIOKafkaProducer, "commit_transaction"),
    "mark": (Claims, "mark_committed"),
}


if __name__ == "__main__":
    armed = Armed(Path(os.environ["STEP_FILE"]))
    for name, (owner, method) in STEPS.items():
        setattr(owner, method, stepping(armed, name, getattr(owner, method)))
    main()
