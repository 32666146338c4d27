"""What the model alone costs a ticket with perfect batches: the same texts, sorted by length, in full batches, on one
thread, in a process that does nothing else.

    python -m tests.bench.rivals.alone ROUND COUNT BATCH

Prints JSON: CPU a ticket in µs (user and system), and how long one full batch takes in ms.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from statistics import median

from ticketgate.agents.policy import parse_policy
from ticketgate.agents.scoring import open_scorer
from ticketgate.codecs.records.ticket import Ticket, decode_ticket

from ...support.deciding import SUPPORT
from .inputs import mails
from .machine import on_core


@dataclass(frozen=True, slots=True)
class Alone:
    """us: a ticket. batch_ms: a full batch, in its midst."""

    us: float
    batch_ms: float


def measure_alone(name: str, count: int, batch: int) -> Alone:
    """One round, in a process of its own on the measured core."""
    with on_core(1):
        done = subprocess.run(
            [sys.executable, "-m", __name__, name, str(count), str(batch)],
            check=True,
            capture_output=True,
            text=True,
        )
    return Alone(**json.loads(done.stdout))


def main(name: str, count: int, batch: int) -> Alone:
    """The round itself."""
    questions = parse_policy(SUPPORT).questions
    scorer = open_scorer("onnx", model=None, threads=1)
    read = [decode_ticket(value) for _, value in mails(name, count)]
    found = [each for each in read if isinstance(each, Ticket)]
    found.sort(key=lambda ticket: len(str(ticket.state)))
    batches = [found[begin : begin + batch] for begin in range(0, count, batch)]
    scorer.score(batches[0], questions)
    took, started = [], time.process_time()
    for each in batches:
        began = time.perf_counter()
        scorer.score(each, questions)
        took.append(time.perf_counter() - began)
    return Alone((time.process_time() - started) / count * 1e6, median(took) * 1e3)


if __name__ == "__main__":
    print(json.dumps(asdict(main(sys.argv[1], *map(int, sys.argv[2:])))))
