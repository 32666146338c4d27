"""Run it: `python -m tests.bench.rivals`, or `make bench`."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment
from ..rounds import WARM_UP_TICKETS, wait_for_lanes
from .arms import ARMS, Arm, bench_python
from .inputs import Inputs, write_inputs
from .machine import can_pin, on_core
from .measuring import Side, run_paced, run_round
from .report import table

BATCHES = (16, 64, 256)
SHARES = (0.5, 0.8)
OUT = Path("build/bench")


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description="ticketgate beside what a user would build instead")
    parser.add_argument("--full", action="store_true", help=f"batches of {BATCHES}, and not of 64 alone")
    parser.add_argument("--batch", type=int, default=64, help="[%(default)s]")
    parser.add_argument("--rounds", type=int, default=5, help="rounds an arm  [%(default)s]")
    parser.add_argument("--tickets", type=int, default=6_000, help="tickets a round  [%(default)s]")
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="of each paced run; 0 for none  [%(default)s]"
    )
    parser.add_argument(
        "--arms", nargs="+", default=[each.name for each in ARMS], choices=[each.name for each in ARMS]
    )
    parser.add_argument(
        "--out", type=Path, default=OUT, help="where results.json and the plots go  [%(default)s]"
    )
    options = parser.parse_args()
    arms = [each for each in ARMS if each.name in options.arms]
    # Each topic is new, and its leaders are looked for in the first moment.
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    options.out.mkdir(parents=True, exist_ok=True)
    runs = []
    try:
        for batch in BATCHES if options.full else (options.batch,):
            sides = run(
                arms, batch=batch, rounds=options.rounds, count=options.tickets, seconds=options.seconds
            )
            runs.append({"batch": batch, "arms": [each.to_json() for each in sides]})
            print(f"\nBatches of {batch}:\n\n{table(sides)}", flush=True)
            _write(options.out, runs, options)
    except PartMissing as err:
        print(f"skipped: {err}")
    return 0


def run(arms: Sequence[Arm], *, batch: int, rounds: int, count: int, seconds: float) -> list[Side]:
    """All arms on one broker and one Redis, one at work at a time."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-rivals-")))
        # This process too: it does little while an arm is measured.
        stack.enter_context(on_core(0))
        kafka, valkey = stack.enter_context(Kafka()), stack.enter_context(Valkey())
        inputs = write_inputs(folder)
        sides = [_start(stack, arm, kafka, valkey, folder, inputs, batch) for arm in arms]
        parts = (kafka.pid, valkey.pid)
        for side in sides:
            asyncio.run(run_round(side, parts, "warm", WARM_UP_TICKETS))
        for number in range(rounds):
            # There and back: whatever the machine does meanwhile falls on all alike.
            for side in sides if number % 2 == 0 else reversed(sides):
                side.rounds.append(asyncio.run(run_round(side, parts, f"r{number}", count)))
                print(f"{side.arm.name} {number}: {side.rounds[-1]}", file=sys.stderr, flush=True)
        for side in sides if seconds else ():
            fastest = median(each.tickets_per_s for each in side.rounds)
            for share in SHARES:
                paced = run_paced(side, f"p{share}", share=share, rate=share * fastest, seconds=seconds)
                side.latencies.append(asyncio.run(paced))
                print(f"{side.arm.name}: {side.latencies[-1]}", file=sys.stderr, flush=True)
        return sides


def _start(
    stack: ExitStack, arm: Arm, kafka: Kafka, valkey: Valkey, folder: Path, inputs: Inputs, batch: int
) -> Side:
    gate = Deployment(kafka.bootstrap, valkey.url, folder / arm.name, inputs.settings)
    stack.enter_context(gate)
    with on_core(1):
        worker = arm.start(gate, batch=batch, answers=inputs.answers)
    if arm.script is None:
        wait_for_lanes(worker)
    return Side(arm, gate, worker)


def _write(out: Path, runs: Sequence[object], options: argparse.Namespace) -> None:
    results = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": {
            "system": platform.platform(),
            "python": platform.python_version(),
            "is_pinned": can_pin(),
        },
        "rounds": options.rounds,
        "tickets_a_round": options.tickets,
        "runs": runs,
    }
    file = out / "results.json"
    file.write_text(json.dumps(results, indent=1) + "\n")
    subprocess.run([bench_python(), Path(__file__).with_name("plot.py"), file], check=True)


if __name__ == "__main__":
    sys.exit(main())
