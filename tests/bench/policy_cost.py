"""What checking a policy costs beside scoring: 40 labels, 60 rules, the default model, the sample tickets.

    .venv/bin/python -m tests.bench.policy_cost

Promise: all is measured in one run, ticket by ticket in turn, in processor time, so that whatever else the machine does
falls on all alike. Checking the policy is from answers to violations: labels selected, abstentions, every rule. Judging
is all that a worker does with a ticket's scores: answers validated, policy checked, effects filled in, raw answers
copied for the record. Prints medians; exits 3 if checking costs 2 % of scoring or more.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from ticketgate.agents.deciding.decide import judge
from ticketgate.agents.deciding.ticket_case import TicketCase, Unusable
from ticketgate.agents.policy import Policy, parse_policy
from ticketgate.agents.scoring import Scorer, open_scorer
from ticketgate.codecs.records.ticket import Ticket, decode_ticket, is_empty_state

LABELS, RULES, EFFECTS = 40, 60, 6
# What checking may cost, in parts of scoring.
ALLOWED_SHARE = 0.02
SAMPLES = Path(__file__).resolve().parents[2] / "streams" / "samples" / "tickets.jsonl"


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over all rounds, in seconds of processor time a ticket."""

    scoring_s: float
    checking_s: float
    judging_s: float

    @property
    def share(self) -> float:
        """Checking in parts of scoring."""
        return self.checking_s / self.scoring_s


def large_policy() -> Policy:
    """Rules of every construct over 40 labels, the same at each call."""
    dice = random.Random(6)
    names = [f"topic_{number:02d}" for number in range(LABELS)]
    rules = []
    for number in range(RULES):
        a, b, c, d = dice.sample(names, 4)
        construct = (
            {"implies": [a, b]},
            {"implies": [[a, f"!{b}"], [c, f"!{d}"]]},
            {"iff": [a, [b, c]]},
            {"excludes": [a, b]},
            {"forbid": [a, b, f"!{c}"]},
            {"exactly_one": [a, b, c, d]},
            {"at_most": {"count": 2, "of": [a, b, c, d]}},
            {"any_of": [a, b, c, d]},
        )[number % 8]
        rules.append({"id": f"rule-{number:02d}", **construct})
    document = {
        "name": "large",
        # One of the sample tickets is longer than the model's window, and its rules are to be checked too.
        "on_truncation": "allow",
        "version": "1",
        "questions": {
            name: {"type": "noul", "instructions": f"Is this about the topic number {number}?"}
            for number, name in enumerate(names)
        },
        "rules": rules,
        "effects": [
            {"when": name, "tool": "assign", "arguments": {"ticket": "{ticket.id}", "queue": f"{name} queue"}}
            for name in names[:EFFECTS]
        ],
    }
    return parse_policy(json.dumps(document))


def sample_tickets() -> tuple[Ticket, ...]:
    """The sample tickets that have something to read."""
    read = (decode_ticket(line, max_bytes=2**20) for line in SAMPLES.read_bytes().splitlines())
    return tuple(each for each in read if isinstance(each, Ticket) and not is_empty_state(each.state))


def measure(policy: Policy, scorer: Scorer, *, rounds: int) -> Cost:
    """Score a ticket, check it, score the next, judge it, and so on in turn."""
    scoring: list[float] = []
    # About a text that it cannot read the model abstains, and no rule is checked.
    readable = [each for each in sample_tickets() if scorer.score([each], {})[0].abstention is None]
    # In turn, for whichever came second would find the processor's caches filled by the first.
    after: dict[str, list[float]] = {"check": [], "judge": []}
    # A question's own vector is made once and kept, as in a worker.
    scorer.score([Ticket(id="warm", state="a first ticket")], policy.questions)
    for number, ticket in enumerate(itertools.islice(itertools.cycle(readable), rounds)):
        started = time.process_time()
        (scores,) = scorer.score([ticket], policy.questions)
        scoring.append(time.process_time() - started)
        case = TicketCase(ticket, policy, scores)
        is_checked = number % 2 == 0
        if is_checked and isinstance(case.answers, Unusable):
            raise RuntimeError(f"no rule was checked: {case.answers.reasons}")
        started = time.process_time()
        if is_checked:
            case.violations  # noqa: B018 - asking is what checks
        else:
            judge(case, model=scorer.model)
        after["check" if is_checked else "judge"].append(time.process_time() - started)
        if len(case.rule_truths) != RULES:
            raise RuntimeError(f"{len(case.rule_truths)} of {RULES} rules were checked")
    return Cost(*(statistics.median(times) for times in (scoring, after["check"], after["judge"])))


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=500, help="tickets  [default: %(default)s]")
    arguments = parser.parse_args()
    cost = measure(large_policy(), open_scorer("onnx"), rounds=arguments.rounds)
    print(
        f"{LABELS} labels, {RULES} rules, {arguments.rounds} tickets, medians:"
        f" scoring {cost.scoring_s * 1e3:.2f} ms, checking {cost.checking_s * 1e3:.3f} ms ({cost.share:.2%}),"
        f" judging {cost.judging_s * 1e3:.3f} ms ({cost.judging_s / cost.scoring_s:.2%})"
    )
    return 0 if cost.share < ALLOWED_SHARE else 3


if __name__ == "__main__":
    sys.exit(main())
