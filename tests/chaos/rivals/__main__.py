"""Run the contenders one after the other under the same seeded faults, and print one table.

    .venv/bin/python -m tests.chaos.rivals --seed 1

Results on stdout, as Markdown or with --json as one object a line; progress on stderr. Each run ends by itself.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .contenders import CONTENDERS
from .run import Outcome, run

TICKETS = 6_000


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="tests.chaos.rivals", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tickets", type=int, default=TICKETS, help="for each contender  [%(default)s]")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[each.name for each in CONTENDERS])
    parser.add_argument("--calm", action="store_true", help="no faults: what each does when nothing happens")
    parser.add_argument("--network", action="store_true", help="through a network that fails too")
    parser.add_argument("--json", action="store_true", help="one object a line instead of the table")
    options = parser.parse_args()
    # A producer that lives through a broker's death has much to say about it.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logs = Path(tempfile.mkdtemp(prefix=f"ticketgate-rivals-seed-{options.seed}-"))
    outcomes: list[Outcome] = []
    for contender in CONTENDERS:
        if options.only and contender.name not in options.only:
            continue
        print(f"--- {contender.name}", file=sys.stderr, flush=True)
        outcome = run(
            contender,
            seed=options.seed,
            tickets=options.tickets,
            logs=logs,
            is_calm=options.calm,
            has_network=options.network,
        )
        print(json.dumps(asdict(outcome)), file=sys.stdout if options.json else sys.stderr, flush=True)
        outcomes.append(outcome)
    if not options.json:
        _table(outcomes, seed=options.seed)


def _table(outcomes: Sequence[Outcome], *, seed: int) -> None:
    titles = {contender.name: contender.title for contender in CONTENDERS}
    faults = sum(outcomes[0].faults.values()) if outcomes else 0
    print(f"seed {seed}, {faults} faults each\n")
    print(
        "| contender | records in | visible outputs | duplicates | lost | undecided (stuck partitions)"
        " | upstream repeats: in, out again | workers restarted | torn by the broker |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for each in outcomes:
        books = each.books
        print(
            f"| {titles[each.contender]} | {books.records_in} | {books.outputs} | {books.duplicates} | {books.lost}"
            f" | {books.undecided} ({books.stuck_partitions}) | {books.repeats_in}, {books.repeats_out}"
            f" | {each.restarts} | {each.torn} |"
        )


if __name__ == "__main__":
    main()
