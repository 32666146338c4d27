"""Real input: the 3,080 test questions of banking77 through two workers on Apache Kafka and Valkey.

    .venv/bin/python -m tests.bench.banking77

Promise: exits 0 only if each question has exactly one record in dispatch and review together, as a read_committed
reader with none of ticketgate's code sees it. Prints, as Markdown, the mix of verdicts, the rules that fired and ten
examples. Skips, saying so, where the data folder is absent. The default model, `streams/samples/bank.toml`.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from tests.support.deployment import OUTPUTS, Deployment, ticket

ROOT = Path(__file__).resolve().parents[2]
POLICY = ROOT / "streams" / "samples" / "bank.toml"
DATA = Path("/work/shared/data/banking77_test.csv")

# What the policy's rule one-desk counts.
DESKS = {"cards", "payments", "transfers", "top_ups", "cash", "account"}

WORKERS = 2
EXAMPLES = 10
# Fixed, so that the examples read in README.md are the ones that a run prints.
SEED = 77
# 3,080 questions take a minute on two idle cores.
TIMEOUT_S = 900.0

Decided = Mapping[str, Any]


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="banking77_test.csv  [default: %(default)s]")
    data: Path = parser.parse_args().data
    if not data.is_file():
        print(
            f"skipped: no {data}; it is public data that the project does not carry (--data names another place)"
        )
        return 0
    with data.open(encoding="utf-8", newline="") as file:
        questions = {f"B77-{number:04d}": row["text"] for number, row in enumerate(csv.DictReader(file), 1)}
    try:
        decided, topics, share, seconds = decide_all(questions)
    except PartMissing as err:
        print(f"skipped: {err}")
        return 0
    faults = differences(questions, decided)
    report(questions, decided, topics, share, seconds)
    print("\nin equals out: " + ("yes, each once" if not faults else "NO: " + "; ".join(faults)))
    return 1 if faults else 0


def decide_all(
    questions: Mapping[str, str],
) -> tuple[list[Decided], Counter[str], tuple[int, ...], float]:
    """All decision records of two workers; how many lie in each topic; how many each worker took; the seconds from
    the first record sent to the last one committed."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Kafka() as kafka,
        Valkey() as valkey,
        Deployment(kafka.bootstrap, valkey.url, Path(folder), {"POLICY": str(POLICY)}) as gate,
    ):
        workers = [gate.start_worker() for _ in range(WORKERS)]
        for worker in workers:
            worker.wait_for(lambda state: state.get("ready") is True and len(state["lanes"]) == 6 // WORKERS)
        started = time.monotonic()
        gate.send(ticket(name, text) for name, text in questions.items())
        deadline = started + TIMEOUT_S
        while sum(taken := [int(worker.metric("ticketgate_records_total")) for worker in workers]) < len(
            questions
        ):
            if time.monotonic() > deadline:
                break  # what is missing is told by name
            time.sleep(0.2)
        seconds = time.monotonic() - started
        # A commit is answered before the broker has marked it in each partition, and until then it is not to be seen.
        while len(records := gate.committed(*OUTPUTS)) < len(questions) and time.monotonic() < deadline:
            time.sleep(0.2)
        names = {gate.topic(name): name for name in OUTPUTS}
    topics = Counter(names[record.topic] for record in records)
    decided = [
        json.loads(record.value or b"{}") for record in records if names[record.topic] != "dead-letter"
    ]
    return decided, topics, tuple(taken), seconds


def differences(questions: Mapping[str, str], decided: Sequence[Decided]) -> list[str]:
    """In what way the outputs are not each question exactly once."""
    seen = Counter(record["ticket_id"] for record in decided)
    return [
        f"{what} {len(ids)} ({', '.join(sorted(ids)[:5])})"
        for what, ids in (
            ("missing", set(questions) - set(seen)),
            ("unknown", set(seen) - set(questions)),
            ("more than once", {name for name, count in seen.items() if count > 1}),
        )
        if ids
    ]


def report(
    questions: Mapping[str, str],
    decided: Sequence[Decided],
    topics: Counter[str],
    share: Sequence[int],
    seconds: float,
) -> None:
    """Print what became of the questions."""
    print(f"{len(questions)} questions in, {sum(topics.values())} records out, {seconds:.0f} s; ", end="")
    print("taken by the workers: " + ", ".join(map(str, share)) + "\n")
    verdicts = Counter(f"{_verdict(record)} at {record['verdict']['stage']}" for record in decided)
    _table("verdict", verdicts, of=len(questions))
    _table(
        "rule that fired",
        Counter(v["rule"] for record in decided for v in record["violations"]),
        of=len(questions),
    )
    _table("desks that a question has", Counter(_desks(record) for record in decided), of=len(questions))
    _table("label of a dispatched question", _labels(decided, "accept"), of=topics["dispatch"])
    _table("label of a question in review", _labels(decided, "review"), of=topics["review"])
    by_id = {record["ticket_id"]: record for record in decided}
    for number, name in enumerate(random.Random(SEED).sample(sorted(by_id), min(EXAMPLES, len(by_id))), 1):
        record = by_id[name]
        chances = ", ".join(f"{label} {_shown(chance)}" for label, chance in record["probabilities"].items())
        print(f"{number}. {questions[name]}")
        print(f"   - {chances}")
        print(f"   - **{_verdict(record)}**: {', '.join(record['selected']) or 'no label'}", end="")
        print("".join(f"; broken: {violation['rule']}" for violation in record["violations"]))


def _verdict(record: Decided) -> str:
    return str(record["verdict"]["status"])


def _desks(record: Decided) -> str:
    return str(len(set(record["selected"]) & DESKS))


def _shown(chance: float) -> Decimal:
    """Cut to three places, not rounded: a number below its threshold must not be shown at it."""
    return Decimal(repr(chance)).quantize(Decimal("0.001"), ROUND_FLOOR)


def _labels(decided: Sequence[Decided], status: str) -> Counter[str]:
    return Counter(label for record in decided if _verdict(record) == status for label in record["selected"])


def _table(title: str, counts: Counter[str], *, of: int) -> None:
    print(f"| {title} | questions | share |\n|---|---:|---:|")
    for name, count in counts.most_common():
        print(f"| {name} | {count} | {count / of:.1%} |")
    print()


if __name__ == "__main__":
    sys.exit(main())
