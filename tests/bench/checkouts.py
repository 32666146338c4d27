"""What a ticket costs this checkout against another one, interleaved in one run.

    .venv/bin/python -m tests.bench.checkouts ../before/.venv/bin/ticketgate

Two workers stand on one broker and one Valkey under exactly_once, one of each checkout, and one of them works at a
time: A B B A, A B B A, … as in `guarantee_cost`. Prints Markdown: the ratio of their CPU a ticket is what is measured.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import BEFORE_SETTLEMENTS, COMMAND, Deployment
from .backlog import write_inputs
from .guarantee_cost import ROUND_TICKETS, Round, Side, alternate, ratio
from .rounds import SESSION_S


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("other", type=Path, help="the other checkout's `ticketgate` command")
    parser.add_argument("--batch", type=int, default=64, choices=list(ROUND_TICKETS))
    parser.add_argument("--rounds", type=int, default=5, help="pairs of rounds  [%(default)s]")
    options = parser.parse_args()
    try:
        with Kafka() as kafka, Valkey() as valkey:
            pairs = measure(kafka, valkey, options.other, batch_size=options.batch, rounds=options.rounds)
    except PartMissing as err:
        print(f"skipped: {err}")
        return 0
    micros = 1e6 / ROUND_TICKETS[options.batch]
    mine, other = (micros * median(pair[place].worker_cpu_s for pair in pairs) for place in (0, 1))
    print("| batch size | worker CPU a ticket: this ÷ other | µs, median (this, other) |\n|---:|---|---|")
    compared = ratio([(this.worker_cpu_s, that.worker_cpu_s) for this, that in pairs])
    print(f"| {options.batch} | {compared} | {mine:.0f}, {other:.0f} |")
    return 0


def measure(
    kafka: Kafka, valkey: Valkey, other: Path, *, batch_size: int, rounds: int
) -> list[tuple[Round, Round]]:
    """The rounds of both checkouts, (this, other), in pairs that follow each other."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-checkouts-")))
        settings = {**write_inputs(folder), "BATCH_SIZE": str(batch_size), "SESSION_TIMEOUT": f"{SESSION_S}s"}
        sides: list[Side] = []
        for place, command in enumerate((COMMAND, other.absolute())):
            gate = Deployment(
                kafka.bootstrap, valkey.url, folder / str(place), settings, topics=BEFORE_SETTLEMENTS
            )
            stack.enter_context(gate)
            sides.append(Side(gate, gate.start_worker(installed=str(command))))
        return alternate(sides, kafka.pid, ROUND_TICKETS[batch_size], pairs=rounds)


if __name__ == "__main__":
    sys.exit(main())
