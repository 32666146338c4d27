#!/usr/bin/env python3
"""Measure a model folder in this process: the figures of the team's evaluate.py, and decisions/s.

    evaluate_local.py [--model FOLDER] [--limit 700] [--only bitext27] [--write FILE] [--speed] [--pairs FILE]

yes/no sets: accuracy at 0.5, AUC (pooled, and the mean within questions), ECE (10 bins), Brier. Choice sets: accuracy,
ECE of the reported probability, negative log-likelihood. Minimal pairs: by kind, the share that is right, and where
the others lie: `--pairs FILE` measures those of a file alone, and development_pairs.tsv is for choosing by. In brackets
and as `intervals` 95 % of 200 resamples: of whole questions where a set has some, of rows elsewhere.
"""

import argparse
import json
import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ticketgate.agents.scoring import Scorer, default_model_path, open_scorer
from ticketgate.codecs import ChoiceQuestion, NoulQuestion, Ticket

HERE = Path(__file__).parent
SEED_QUESTIONS = {
    "urgent": NoulQuestion("Does the customer request urgent action?"),
    "review": NoulQuestion("Does this ticket need review by a person?"),
    "auto_reply": NoulQuestion("Is an automatic reply appropriate for this ticket?"),
    "billing": NoulQuestion("Should this ticket go to billing?"),
    "technical": NoulQuestion("Should this ticket go to technical support?"),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=default_model_path())
    parser.add_argument("--sets", type=Path, default=Path("/work/shared/model/eval_sets.json"))
    parser.add_argument("--only", action="append")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", type=Path, help="also write the figures there, for assemble.py")
    parser.add_argument("--speed", action="store_true", help="measure decisions/s instead")
    parser.add_argument("--pairs", type=Path, help="measure the minimal pairs of this file instead")
    options = parser.parse_args()
    scorer = open_scorer("onnx", model=options.model, threads=options.threads)
    print(f"{scorer.model.id} {scorer.model.hash[:12]}, {options.threads} thread(s)")
    if options.speed:
        speed(scorer)
        return
    if options.pairs:
        for kind, found in pair_figures(scorer, options.pairs).items():
            told(f"pairs {kind}", len(found[0]), found)
        return
    sets = json.loads(options.sets.read_text())
    written: dict[str, dict[str, object]] = {}
    for kind, measure in (("noul", noul_figures), ("choice", choice_figures)):
        for name, rows in sets[kind].items():
            if not options.only or name in options.only:
                rows = spread(rows, options.limit)
                written[f"{kind} {name}"] = told(f"{kind} {name}", len(rows), measure(scorer, rows))
    if not options.only:
        for kind, found in pair_figures(scorer, HERE / "minimal_pairs.tsv").items():
            written[f"pairs {kind}"] = told(f"pairs {kind}", len(found[0]), found)
    if options.write:
        options.write.write_text(json.dumps(written, indent=1) + "\n")


# What a figure is made of: units that are drawn anew together, and what is counted of some of them.
Measured = tuple[Sequence[object], Callable[[Sequence], dict[str, float]]]
RESAMPLES = 200


def told(name: str, rows: int, measured: Measured) -> dict[str, object]:
    """Print the figures with their intervals; both, to be written."""
    units, figures = measured
    chance = random.Random(0)  # noqa: S311  # not secret, but repeatable
    drawn = [figures(chance.choices(units, k=len(units))) for _ in range(RESAMPLES)]
    found, ends = figures(units), {}
    for figure in found:
        values = sorted(each[figure] for each in drawn if not math.isnan(each[figure]))
        ends[figure] = [round(values[int(len(values) * share)], 4) for share in (0.025, 0.975)]
    shown = " ".join(f"{k}={v:.3f} ({ends[k][0]:.3f} to {ends[k][1]:.3f})" for k, v in found.items())
    print(f"{name:22} n={rows:5} {shown}", flush=True)
    return {"n": rows, **{k: round(v, 4) for k, v in found.items()}, "intervals": ends}


def noul_figures(scorer: Scorer, rows: Sequence[list]) -> Measured:
    """rows: [state, question, label, intent]. A unit is a question with its rows: (probability, label)."""
    by_question: dict[str, list[list]] = {}
    for row in rows:
        by_question.setdefault(row[1], []).append(row)
    units = []
    for question, asked in by_question.items():
        tickets = [Ticket(id=str(place), state=row[0]) for place, row in enumerate(asked)]
        found = scorer.score(tickets, {"q": NoulQuestion(question)})
        units.append(
            [(scores.answers["q"]["noul"], row[2]) for scores, row in zip(found, asked, strict=True)]
        )

    def figures(units: Sequence[Sequence[tuple[float, int]]]) -> dict[str, float]:
        pairs = [pair for unit in units for pair in unit]
        p, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        each = [auc(*zip(*unit, strict=True)) for unit in units]
        return {
            "acc": _share((v >= 0.5) == bool(t) for v, t in pairs),
            "auc": auc(p, y),
            "within": statistics.fmean(value for value in each if not math.isnan(value)),
            "ece": ece(p, y),
            "brier": statistics.fmean((v - t) ** 2 for v, t in pairs),
        }

    return units, figures


def pair_figures(scorer: Scorer, file: Path) -> dict[str, Measured]:
    """By kind: the share of minimal pairs with true at or above 0.5 above false, with true above false, and with both
    on one side; in log-odds how far true lies above false, and how much the middle of a pair varies, which is what the
    words say that both have. A middle that varies more than the gap is wide leaves few pairs right."""
    found: dict[str, list[tuple[float, float]]] = {}
    for line in file.read_text().splitlines():
        kind, question, *states = line.split("\t")
        tickets = [Ticket(id=str(place), state=state) for place, state in enumerate(states)]
        scored = scorer.score(tickets, {"q": NoulQuestion(question)})
        true, false = (_log_odds(scores.answers["q"]["noul"]) for scores in scored)
        found.setdefault(kind, []).append((true, false))
    found["all"] = [pair for pairs in found.values() for pair in pairs]

    def figures(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
        return {
            "right": _share(true >= 0 > false for true, false in pairs),
            "in order": _share(true > false for true, false in pairs),
            "both yes": _share(min(pair) >= 0 for pair in pairs),
            "both no": _share(max(pair) < 0 for pair in pairs),
            "gap": statistics.fmean(true - false for true, false in pairs),
            "middles": statistics.pstdev((true + false) / 2 for true, false in pairs),
        }

    return {kind: (pairs, figures) for kind, pairs in found.items()}


def _log_odds(p: float) -> float:
    return math.log(max(p, 1e-9) / max(1 - p, 1e-9))


def _share(values: Iterable[bool]) -> float:
    return statistics.fmean(float(value) for value in values)


def choice_figures(scorer: Scorer, rows: Sequence[list]) -> Measured:
    """rows: [state, instructions, options, place of the right one]. A unit is a row."""
    units = []
    for state, instructions, options, right in rows:
        question = ChoiceQuestion(instructions, dict.fromkeys(options))
        answer = scorer.score([Ticket(id="t", state=state)], {"q": question})[0].answers["q"]
        probabilities = answer["probabilities"]
        units.append(
            (
                answer["choice"] == options[right],
                probabilities[answer["choice"]],
                probabilities[options[right]],
            )
        )

    def figures(units: Sequence[tuple[bool, float, float]]) -> dict[str, float]:
        hit, top, gold = zip(*units, strict=True)
        return {
            "acc": _share(hit),
            "ece": ece(top, hit),
            "nll": statistics.fmean(-math.log(max(g, 1e-9)) for g in gold),
        }

    return units, figures


def auc(scores: Sequence[float], labels: Sequence[int]) -> float:
    """How often a true row scores above a false one; a tie counts half."""
    pairs = sorted(zip(scores, labels, strict=True))
    positives = sum(labels)
    negatives = len(labels) - positives
    if not positives or not negatives:
        return math.nan
    rank_sum, place = 0.0, 0
    while place < len(pairs):
        end = place
        while end < len(pairs) and pairs[end][0] == pairs[place][0]:
            end += 1
        shared_rank = (place + 1 + end) / 2
        rank_sum += shared_rank * sum(label for _, label in pairs[place:end])
        place = end
    return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives)


def ece(probabilities: Sequence[float], outcomes: Sequence[float], bins: int = 10) -> float:
    """Mean gap between probability and frequency, in bins of equal width."""
    groups: dict[int, list[tuple[float, float]]] = {}
    for p, outcome in zip(probabilities, outcomes, strict=True):
        groups.setdefault(min(int(p * bins), bins - 1), []).append((p, outcome))
    return sum(abs(sum(p - o for p, o in group)) for group in groups.values()) / len(probabilities)


def speed(scorer: Scorer) -> None:
    """One ticket a call against 32, in turns, so that a busy machine slows both alike."""
    text = (
        "Hello, my card was charged twice for the same order last Friday, and your app shows only one of the "
        "two payments. Could you please look into it and send the second amount back before the weekend? Thanks"
    )
    tickets = [Ticket(id=str(i), state=text) for i in range(32)]
    spent = {1: 0.0, 32: 0.0}
    done = {1: 0, 32: 0}
    tokens = scorer.score(tickets[:1], SEED_QUESTIONS)[0].input_tokens
    for _ in range(10):
        for size in spent:
            spent[size] += _seconds(
                lambda size=size: scorer.score(tickets[:size], SEED_QUESTIONS), 32 // size
            )
            done[size] += 32 * len(SEED_QUESTIONS)
    for size, seconds in spent.items():
        print(
            f"{tokens} tokens, 5 questions, {size:2} ticket(s) a call: {done[size] / seconds:.0f} decisions/s"
        )


def _seconds(call: Callable[[], object], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - start


def spread(rows: Sequence[list], limit: int) -> Sequence[list]:
    """Rows evenly spread over the set.

    Beware of a limit that divides the set's length by three: yes/no sets come in threes, one true row and
    two false ones, and every third row is true (600 of banking_held's 1,800 leave no AUC).
    """
    if not limit or limit >= len(rows):
        return rows
    return [rows[i * len(rows) // limit] for i in range(limit)]


if __name__ == "__main__":
    main()
