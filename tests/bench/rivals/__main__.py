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
from dataclasses import asdict
from pathlib import Path
from statistics import median

from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment
from ..rounds import WARM_UP_TICKETS, wait_for_lanes
from .alone import Alone, measure_alone
from .arms import ARMS, Arm, bench_python
from .inputs import Inputs, write_inputs
from .machine import can_pin, on_core
from .measuring import HALF, Side, run_paced, run_round
from .report import asked, base_costs, table

BATCHES = (16, 64, 256)
SHARES = (HALF, 0.8)
OUT = Path("build/bench")
ANSWERS, MODEL = "answers", "model"
# The model takes the longer to warm up, and the fewer tickets to measure.
MODEL_WARM_UP_TICKETS = 192


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description="ticketgate beside what a user would build instead")
    parser.add_argument("--full", action="store_true", help=f"batches of {BATCHES}, and not of 64 alone")
    parser.add_argument("--batch", type=int, default=64, help="[%(default)s]")
    parser.add_argument("--rounds", type=int, default=5, help="rounds an arm  [%(default)s]")
    parser.add_argument("--tickets", type=int, default=6_000, help="tickets a round  [%(default)s]")
    parser.add_argument(
        "--model-tickets", type=int, default=1_200, help="tickets a round with the model  [%(default)s]"
    )
    parser.add_argument(
        "--seconds", type=float, default=8.0, help="of each paced run; 0 for none  [%(default)s]"
    )
    parser.add_argument(
        "--arms", nargs="+", default=[each.name for each in ARMS], choices=[each.name for each in ARMS]
    )
    parser.add_argument(
        "--with",
        dest="by",
        nargs="+",
        default=[ANSWERS, MODEL],
        choices=[ANSWERS, MODEL],
        help="who answers the policy's questions: fixed answers, which cost nothing, the shipped model, or first"
        " the one and then the other  [both]",
    )
    parser.add_argument(
        "--out", type=Path, default=OUT, help="where results.json and the plots go  [%(default)s]"
    )
    options = parser.parse_args()
    arms = [each for each in ARMS if each.name in options.arms]
    # Each topic is new, and its leaders are looked for in the first moment.
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    options.out.mkdir(parents=True, exist_ok=True)
    runs: list[dict[str, object]] = []
    try:
        for batch in BATCHES if options.full else (options.batch,):
            free: list[Side] = []
            if ANSWERS in options.by:
                free, _ = run(arms, options, batch=batch)
                runs.append(_told(ANSWERS, batch, free))
                print(
                    f"\nBatches of {batch}:\n\n{table(free, base_costs(free), named='aiokafka loop')}",
                    flush=True,
                )
                _write(options.out, runs, options)
            if MODEL in options.by:
                sides, alone = run([each for each in arms if each.decides], options, batch=batch, by=MODEL)
                runs.append({**_told(MODEL, batch, sides), "alone": [asdict(each) for each in alone]})
                costs = [each.us for each in alone]
                print(
                    f"\nBatches of {batch}, with the model:\n\n{table(sides, costs, named='the model alone')}"
                    f"\n\n{asked(sides, alone, free)}",
                    flush=True,
                )
                _write(options.out, runs, options)
    except PartMissing as err:
        print(f"skipped: {err}")
    return 0


def run(
    arms: Sequence[Arm], options: argparse.Namespace, *, batch: int, by: str = ANSWERS
) -> tuple[list[Side], list[Alone]]:
    """All arms on one broker and one Redis, one at work at a time; between them, with the model, the model alone."""
    has_model = by == MODEL
    count = options.model_tickets if has_model else options.tickets
    alone: list[Alone] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-rivals-")))
        # This process too: it does little while an arm is measured.
        stack.enter_context(on_core(0))
        kafka, valkey = stack.enter_context(Kafka()), stack.enter_context(Valkey())
        inputs = write_inputs(folder, with_model=has_model)
        sides = [_start(stack, arm, kafka, valkey, folder, inputs, batch) for arm in arms]
        parts = (kafka.pid, valkey.pid)
        for side in sides:
            warm_up = MODEL_WARM_UP_TICKETS if has_model else WARM_UP_TICKETS
            asyncio.run(run_round(side, parts, "warm", warm_up))
        for number in range(options.rounds):
            if has_model:
                alone.append(measure_alone(f"r{number}", count, batch))
                print(f"the model alone {number}: {alone[-1]}", file=sys.stderr, flush=True)
            # There and back: whatever the machine does meanwhile falls on all alike.
            for side in sides if number % 2 == 0 else reversed(sides):
                side.rounds.append(asyncio.run(run_round(side, parts, f"r{number}", count)))
                print(f"{side.arm.name} {number}: {side.rounds[-1]}", file=sys.stderr, flush=True)
        for side in sides if options.seconds else ():
            fastest = median(each.tickets_per_s for each in side.rounds)
            for share in SHARES:
                paced = run_paced(
                    side, f"p{share}", share=share, rate=share * fastest, seconds=options.seconds
                )
                side.latencies.append(asyncio.run(paced))
                print(f"{side.arm.name}: {side.latencies[-1]}", file=sys.stderr, flush=True)
        return sides, alone


def _start(
    stack: ExitStack, arm: Arm, kafka: Kafka, valkey: Valkey, folder: Path, inputs: Inputs, batch: int
) -> Side:
    gate = Deployment(kafka.bootstrap, valkey.url, folder / arm.name, inputs.settings)
    stack.enter_context(gate)
    with on_core(1):
        worker = arm.start(gate, batch=batch, inputs=inputs)
    if arm.script is None:
        wait_for_lanes(worker)
    return Side(arm, gate, worker, inputs.tickets)


def _told(by: str, batch: int, sides: Sequence[Side]) -> dict[str, object]:
    return {"batch": batch, "answered_by": by, "arms": [each.to_json() for each in sides]}


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
        "tickets_a_round_with_model": options.model_tickets,
        "runs": runs,
    }
    file = out / "results.json"
    file.write_text(json.dumps(results, indent=1) + "\n")
    subprocess.run([bench_python(), Path(__file__).with_name("plot.py"), file], check=True)


if __name__ == "__main__":
    sys.exit(main())
