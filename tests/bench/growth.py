"""How the cost of a ticket grows: with questions, rules, options, the ticket's length, and the batch.

    .venv/bin/python -m tests.bench.growth [--kafka FILE] [--plot FILE] [--json FILE]

Promise: a cost is processor time of one thread from a ticket's bytes to its decision: decoding and deciding, as in a
worker, without Kafka and Redis. The points of all curves are measured in turn, round after round, and a point is the
median of its rounds, so that what else the machine does falls on all alike. Without a model the answers are given; with
the default one they are asked for, of texts that differ.

Prints Markdown: the points, and for each step how much the cost grew against how much the size did (1 is
proportional). A plot needs the extra `bench`. What `growth_kafka --json` wrote goes into plot and JSON with `--kafka`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ticketgate.agents.deciding.decide import decide
from ticketgate.agents.policy import Policy, parse_policy
from ticketgate.agents.scoring import FixedScorer, Scorer, open_scorer
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket, decode_ticket

GIVEN, MODEL = "answers given", "default model"
# A step beyond this is looked at: the cost grows faster than the size.
BEND = 1.1
TEXT = (
    "the card terminal shows an error when my customer pays since the update of yesterday and the invoice is wrong"
    " please call me about the parcel that was sent on monday to another address thank you"
)
WORDS = TEXT.split()
_UNSEEN = itertools.count()

Work = Callable[[], int]


@dataclass
class Point:
    """One size of one curve. work: one round, which says how many tickets it was. warm_ups: rounds that fill caches."""

    size: int
    work: Work
    warm_ups: int = 1
    seconds: list[float] = field(default_factory=list)

    @property
    def cost_us(self) -> float:
        """Processor time a ticket, in microseconds."""
        return statistics.median(self.seconds) * 1e6

    def measure(self) -> None:
        """One round."""
        started = time.process_time()
        tickets = self.work()
        self.seconds.append((time.process_time() - started) / tickets)


@dataclass
class Curve:
    """Cost against one thing, all others held."""

    of: str
    scorer: str
    points: list[Point]
    unit: str = ""

    @property
    def steps(self) -> Iterator[tuple[Point, Point, float]]:
        """Each step and by which power of the size the cost grew in it."""
        for before, after in itertools.pairwise(self.points):
            yield before, after, math.log(after.cost_us / before.cost_us) / math.log(after.size / before.size)


def policy(
    *, questions: int = 5, rules: int = 5, options: int | None = None, truncation: str = "allow"
) -> Policy:
    """So many noul questions and rules over them, and a choice if it is to have options."""
    dice = random.Random(7)
    names = [f"topic_{number:02d}" for number in range(questions)]
    asked: dict[str, Any] = {
        name: {"type": "noul", "instructions": f"Is this about the topic number {number}?"}
        for number, name in enumerate(names)
    }
    if options is not None:
        asked["desk"] = {
            "type": "choice",
            "instructions": "Which desk takes it?",
            "criteria": {f"desk_{n}": f"The desk for matters of kind {n}" for n in range(options)},
            **({"shortlist": 10} if options > 255 else {}),
        }
    made: list[dict[str, Any]] = []
    for number in range(rules):
        kind = ("excludes", "implies", "any_of")[number % 3] if len(names) > 1 else "any_of"
        made.append({"id": f"rule-{number:03d}", kind: dice.sample(names, min(2, len(names)))})
    return parse_policy(
        json.dumps(
            {"name": "growth", "version": "1", "on_truncation": truncation, "questions": asked, "rules": made}
        )
    )


def ticket(number: int, words: int) -> bytes:
    """A ticket of so many words, unlike any other."""
    dice = random.Random(f"{number} {words}")
    text = " ".join(dice.choice(WORDS) for _ in range(words))
    return json.dumps({"id": f"G-{number}", "state": f"{number} {text}"}).encode()


def given_answers(of: Policy, ids: Sequence[str]) -> Scorer:
    """A scorer that costs nothing."""
    dice = random.Random(3)
    answers: dict[str, dict[str, object]] = {}
    for each in ids:
        told: dict[str, object] = {}
        for name, question in of.questions.items():
            if question.type == "noul":
                told[name] = {"type": "noul", "noul": round(dice.random(), 3)}
            else:
                labels = [*question.labels]  # type: ignore[union-attr]
                rest = 0.5 / max(1, len(labels) - 1)
                told[name] = {
                    "type": "choice",
                    "choice": labels[0],
                    "probabilities": {label: rest if n else 0.5 for n, label in enumerate(labels)},
                }
        answers[each] = told
    return FixedScorer(answers, model=ModelRef(id="given", hash="0" * 64))  # type: ignore[arg-type]


def work(of: Policy, scorer: Scorer | None, *, words: int = 30, batch: int = 64, batches: int = 1) -> Work:
    """A round: batches of tickets, from bytes to decisions. scorer None: answers given."""
    ids = [f"G-{number}" for number in range(batch * batches)]
    given = scorer or given_answers(of, ids)
    kept = [ticket(number, words) for number in range(batch * batches)]

    def one_round() -> int:
        # The model sees texts that it never saw, at no other point either; what is given is by id.
        values = kept if scorer is None else [ticket(next(_UNSEEN), words) for _ in range(batch * batches)]
        for first in range(0, len(values), batch):
            tickets = [decode_ticket(value, max_bytes=2**22) for value in values[first : first + batch]]
            read = [each for each in tickets if isinstance(each, Ticket)]
            decisions = decide(read, policy=of, scorer=given)
            if len(decisions) != batch or any(each.verdict.stage == "answers" for each in decisions):
                raise RuntimeError(f"not every ticket was decided: {decisions[:1]}")
        return len(values)

    return one_round


def curves(scorer: Scorer | None, *, quick: bool) -> list[Curve]:
    """Those of one scorer; None: answers given."""
    name = GIVEN if scorer is None else MODEL
    # Without a model a ticket takes microseconds, and a round has to be longer than the clock's step.
    much, rounds_of = (64, 4) if scorer is None else (16, 1)

    def curve(of: str, sizes: Sequence[int], make: Callable[[int], Work], warm_ups: int = 1) -> Curve:
        return Curve(
            of, name, [Point(size, make(size), warm_ups) for size in (sizes[::2] if quick else sizes)]
        )

    found = [
        curve(
            "questions",
            (1, 2, 5, 10, 20, 50),
            lambda n: work(policy(questions=n), scorer, batch=much, batches=rounds_of),
        ),
        curve(
            "words of the ticket",
            (10, 30, 100, 300, 1000, 3000),
            lambda n: work(policy(), scorer, words=n, batch=16, batches=rounds_of),
        ),
        curve(
            "batch",
            (1, 4, 16, 64, 256),
            lambda n: work(policy(), scorer, batch=n, batches=max(1, much * rounds_of // n)),
        ),
        curve(
            "options of a choice",
            (2, 10, 50, 250),
            lambda n: work(policy(options=n), scorer, batch=64),
        ),
    ]
    if scorer is None:
        found.append(
            curve(
                "rules", (1, 10, 50, 100, 200), lambda n: work(policy(questions=20, rules=n), None, batches=4)
            )
        )
    else:
        found.append(
            curve(
                "options of a shortlisted choice",
                (300, 1000, 3000, 10_000),
                lambda n: work(policy(options=n), scorer, batch=64),
                # What is said of an option is read when it is first kept.
                warm_ups=4,
            )
        )
    return found


def measure(found: Sequence[Curve], rounds: int) -> None:
    """All points in turn, there and back, after the rounds that fill caches."""
    points = [point for curve in found for point in curve.points]
    for point in points:
        for _ in range(point.warm_ups):
            point.work()
    for number in range(rounds):
        for point in points if number % 2 == 0 else points[::-1]:
            point.measure()
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)


def report(found: Sequence[Curve]) -> None:
    """Markdown."""
    for curve in found:
        print(
            f"\n### {curve.of}, {curve.scorer}\n\n| {curve.of} | µs a ticket | grew by the power |\n|---:|---:|---:|"
        )
        powers: Mapping[int, float] = {after.size: power for _, after, power in curve.steps}
        for point in curve.points:
            power = powers.get(point.size)
            told = "" if power is None else f"{power:.2f}{' ←' if power > BEND else ''}"
            print(f"| {point.size:,} | {point.cost_us:,.1f} | {told} |")


def as_json(found: Sequence[Curve]) -> list[dict[str, object]]:
    """The same as data."""
    return [
        {
            "of": curve.of,
            "scorer": curve.scorer,
            "points": [{"size": p.size, "us": round(p.cost_us, 2)} for p in curve.points],
        }
        for curve in found
    ]


def of_kafka(points: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """What growth_kafka measured, as curves: against each size, the other being the one that most points have."""
    found: list[dict[str, object]] = []
    for of, other in (("partitions", "backlog"), ("backlog", "partitions")):
        held = statistics.mode(each[other] for each in points)
        along = sorted((each for each in points if each[other] == held), key=lambda each: each[of])
        for who, name in (("worker", "cpu_us"), ("broker", "broker_cpu_us"), ("Redis", "redis_cpu_us")):
            told = [{"size": each[of], "us": each[name]} for each in along]
            found.append({"of": of, "scorer": f"{who}, {GIVEN}", "points": told})
    return found


def plot(told: Sequence[Mapping[str, Any]], file: Path) -> None:
    """One picture, a panel for each thing that grows. Raises ImportError without the extra `bench`."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    # Text as text: the file is small, and can be searched.
    mpl.rcParams["svg.fonttype"] = "none"
    things = [*dict.fromkeys(each["of"] for each in told)]
    figure = Figure(figsize=(15, 7), layout="constrained")
    for axes, of in zip(figure.subplots(2, math.ceil(len(things) / 2)).flat, things, strict=False):
        for curve in (each for each in told if each["of"] == of):
            points = curve["points"]
            axes.loglog([p["size"] for p in points], [p["us"] for p in points], "o-", label=curve["scorer"])
        axes.set(xlabel=of, ylabel="processor time a ticket, µs")
        costs = [p["us"] for each in told if each["of"] == of for p in each["points"]]
        axes.set_ylim(10 ** math.floor(math.log10(min(costs))), 10 ** math.ceil(math.log10(max(costs))))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True, which="both", alpha=0.3)
        axes.legend()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--model-rounds", type=int, default=3, help="0 leaves the model out")
    parser.add_argument("--quick", action="store_true", help="every other point")
    parser.add_argument("--kafka", type=Path, help="what growth_kafka --json wrote")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path, help="a file, SVG or PNG by its name")
    options = parser.parse_args()
    found = curves(None, quick=options.quick)
    measure(found, options.rounds)
    if options.model_rounds:
        with_model = curves(open_scorer("onnx"), quick=options.quick)
        measure(with_model, options.model_rounds)
        found += with_model
    report(found)
    told = as_json(found)
    if options.kafka is not None:
        told += of_kafka(json.loads(options.kafka.read_text()))
    if options.json is not None:
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    if options.plot is not None:
        plot(told, options.plot)


if __name__ == "__main__":
    main()
