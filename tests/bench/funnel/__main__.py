"""Compare P, R, C and G, and vary constraint and ontology.

    .venv/bin/python -m tests.bench.funnel

Prints Markdown. Everything but the table of times follows from the seed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from .request_set import Asked, make_requests
from .results import Result
from .run import Run, constraints, first_use_s, four, ontologies, run
from .table import ablation, by_kind, comparison, costs

SEED, EACH = 1, 120


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED, help="[default: %(default)s]")
    parser.add_argument(
        "--each", type=int, default=EACH, help="requests of each kind  [default: %(default)s]"
    )
    options = parser.parse_args()
    requests = make_requests(options.seed, options.each)
    compared = run(four(), requests, options.seed)
    print(f"### P, R, C and G: {len(requests)} requests, seed {options.seed}\n")
    print(comparison(compared.scores), end="\n\n")
    print("### By trouble\n")
    print(by_kind(compared.scores), end="\n\n")
    print("### Cost\n")
    print(costs(compared.scores, seed=options.seed), end="\n\n")
    print("### Where G ended\n")
    print(ends(compared.results["G"]), end="\n\n")
    print("### Times: this machine, this run\n")
    print(times(compared), end="\n\n")
    print("### The constraint varied, naive execution\n")
    varied = run(constraints(), requests, options.seed)
    print(ablation(varied.scores), end="\n\n")
    print(by_kind(varied.scores), end="\n\n")
    print("### The ontology varied, schema automaton, naive execution\n")
    print(ablation(run(ontologies(has_gates=False), requests, options.seed).scores), end="\n\n")
    print("### The ontology varied, schema automaton, behind the gates\n")
    print(ablation(run(ontologies(has_gates=True), requests, options.seed).scores), end="\n\n")
    print("### Forced\n")
    print(forced(requests, compared))
    return 0


def times(compared: Run) -> str:
    """Microseconds by stage: first uses apart from steps, as sums and for each token or request."""
    heads = (
        "",
        "model, a token",
        "mask, a token met before",
        "mask, first uses in all",
        "states met",
        "after ten requests: first uses, other masked steps",
        "parse, schema or gates, a request",
        "acting, a request",
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, spent in compared.spent.items():
        system, count = compared.systems[name], len(compared.scores[name])
        states = sum(mask.first_uses for mask in system.masks.values())
        masked = f"{1e6 * spent.masking_s / spent.masked:.1f} µs" if spent.masked else "none"
        first, later = spent.early
        lines.append(
            f"| {name} | {1e6 * spent.sampling_s / spent.tokens:.1f} µs | {masked}"
            f" | {1e3 * first_use_s(system):.1f} ms | {states} | {1e3 * first:.1f} ms, {1e3 * later:.1f} ms"
            f" | {1e6 * spent.checking_s / count:.0f} µs | {1e6 * spent.acting_s / count:.0f} µs |"
        )
    return "\n".join(lines)


def ends(results: Sequence[Result]) -> str:
    """How often each end was told, by the stage that it was said at."""
    counts = Counter((str(each.told), each.stage) for each in results)
    lines = ["| told | stage | requests |", "|---|---|---:|"]
    lines += [f"| {told} | {stage} | {count} |" for (told, stage), count in counts.most_common()]
    return "\n".join(lines)


def forced(requests: tuple[Asked, ...], compared: Run) -> str:
    """The first request that no tool serves and that C answered with an effect: what P and C wrote, what G said."""
    for place, asked in enumerate(requests):
        free, masked, gated = (compared.results[name][place] for name in "PCG")
        if asked.request.operation == "cancel" and free.refused and masked.effects:
            return (
                f"> {asked.utterance}\n\nP: `{free.answers[0].answer.text}`\n\n"
                f"C: `{masked.answers[0].answer.text}`, executed: {dict(masked.effects[0].arguments)}\n\n"
                f"G: the same call, {gated.told} at `{gated.stage}`"
            )
    return "none in this set; take more requests with --each"


if __name__ == "__main__":
    sys.exit(main())
