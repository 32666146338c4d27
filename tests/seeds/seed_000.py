"""000: an assignment goes on only if every declared rule holds, and is never touched."""

from __future__ import annotations

import itertools
import json
from functools import cache
from typing import Any

from ticketgate.agents.scoring import default_model_path
from ticketgate.codecs.verdict import Status

from ..support.deciding import LABELS, SUPPORT, decide_one, noul, policy, support_answers
from . import product
from .rows import row

URGENT, REPLY, ROUTE = (
    "urgent requires review",
    "review excludes auto_reply",
    "exactly one of billing, technical",
)
CASES = {
    "valid": ((0.9, 0.9, 0.1, 0.8, 0.2), ()),
    "implication": ((0.9, 0.2, 0.1, 0.8, 0.2), (URGENT,)),
    "exclusion": ((0.1, 0.9, 0.8, 0.8, 0.2), (REPLY,)),
    "no route": ((0.1, 0.1, 0.8, 0.2, 0.2), (ROUTE,)),
    "two routes": ((0.1, 0.1, 0.8, 0.8, 0.7), (ROUTE,)),
    "boundary": ((0.5, 0.5, 0.4999, 0.5, 0.4999), ()),
}
REQUEST: Any = {
    "model": "decider:2b",
    "state": "My card was charged twice. Please fix this today.",
    "questions": {
        "urgent": {"type": "noul", "instructions": "Does the customer request urgent action?"},
        "review": {"type": "noul", "instructions": "Does this ticket need review by a person?"},
        "auto_reply": {"type": "noul", "instructions": "Is an automatic reply appropriate for this ticket?"},
        "billing": {"type": "noul", "instructions": "Should this ticket go to billing?"},
        "technical": {"type": "noul", "instructions": "Should this ticket go to technical support?"},
    },
}


def decided(*values: object) -> Any:
    return decide_one(support_answers(*values), policy())


def outcome(values: tuple[object, ...]) -> tuple[str, tuple[str, ...]]:
    found = decided(*values)
    return str(found.verdict.status), tuple(each.message for each in found.violations)


for _name, (_values, _broken) in CASES.items():
    row(
        "000",
        f"case {_name}: verdict and every broken rule",
        ("review" if _broken else "accept", _broken),
        lambda values=_values: outcome(values),
    )
    row(
        "000",
        f"case {_name}: the probabilities are unchanged",
        dict(zip(LABELS, _values, strict=True)),
        lambda values=_values: decided(*values).probabilities,
    )
    row(
        "000",
        f"case {_name}: the order of the answers changes nothing",
        True,
        lambda values=_values: (
            decide_one(dict(reversed(list(support_answers(*values).items()))), policy()) == decided(*values)
        ),
    )


def every_assignment() -> int:
    """How many of the 32 get exactly the violations that the three rules say."""
    right = 0
    for chosen in itertools.product((False, True), repeat=5):
        urgent, review, auto_reply, billing, technical = chosen
        wanted = [
            text
            for text, is_broken in (
                (URGENT, urgent and not review),
                (REPLY, review and auto_reply),
                (ROUTE, billing is technical),
            )
            if is_broken
        ]
        found = decided(*(1.0 if each else 0.0 for each in chosen))
        is_accepted = found.verdict.status is Status.ACCEPT
        right += [each.message for each in found.violations] == wanted and is_accepted is not bool(wanted)
    return right


row("000", "all 32 Boolean assignments", 32, every_assignment)
row("000", "a score of 0.5 selects, 0.4999 does not", ("billing", "review", "urgent"),
    lambda: decided(0.5, 0.5, 0.4999, 0.5, 0.4999).selected)  # fmt: skip
row("000", "0.49996 is not rounded up", (), lambda: decided(*[0.49996] * 5).selected)

MALFORMED: dict[str, Any] = {
    "a probability that is true": noul(True),
    "a probability that is text": noul("0.9"),
    "a probability that is null": noul(None),
    "NaN": noul(float("nan")),
    "infinity": noul(float("inf")),
    "below 0": noul(-0.1),
    "above 1": noul(1.1),
    "another type tag": {"type": "choice", "noul": 0.9},
    "no type tag": {"noul": 0.9},
    "no object": 0.9,
}
for _name, _answer in MALFORMED.items():
    row(
        "000",
        f"malformed: {_name}",
        ("review", "answers"),
        lambda answer=_answer: stage(support_answers(0.9, 0.9, 0.1, 0.8, 0.2) | {"urgent": answer}),
    )


def stage(answers: dict[str, object]) -> tuple[str, str]:
    verdict = decide_one(answers, policy()).verdict
    return str(verdict.status), str(verdict.stage)


WHOLE = support_answers(0.9, 0.9, 0.1, 0.8, 0.2)
row("000", "malformed: an id is missing", ("review", "answers"),
    lambda: stage({name: each for name, each in WHOLE.items() if name != "review"}))  # fmt: skip
row("000", "malformed: an id that was not asked", ("review", "answers"),
    lambda: stage({**WHOLE, "other": noul(0.1)}))  # fmt: skip
row("000", "0 and 1 as integers are probabilities", ("accept", ()), lambda: outcome((1, 1, 0, 1, 0)))
row("000", "an accepted decision is no number: there is no joint confidence", [],
    lambda: [name for name in product.printed(
        "check", "-", "--policy", product.written(SUPPORT, "support.toml"), "--json", given=json.dumps(WHOLE)
    ) if "confidence" in name])  # fmt: skip
row("000", "two distributions with the same marginals get the same verdict", True,
    lambda: decided(*[0.5] * 5).verdict == decided(*[0.5] * 5).verdict)  # fmt: skip


@cache
def over_http() -> tuple[int, Any]:
    return product.served(lambda url: product.post(url, REQUEST))


@cache
def by_command() -> Any:
    return product.printed("run", "--request", product.written(json.dumps(REQUEST), "request.json"), "--json")


row("000", "pull: the model is there without a download", True, lambda: default_model_path().is_dir())
row("000", "serve, and curl with the request, model name included", 200, lambda: over_http()[0])
row("000", "run --request request.json --json: the five ids", list(REQUEST["questions"]),
    lambda: list(by_command()["answers"]))  # fmt: skip
row("000", "HTTP and the command give the same answers", True,
    lambda: over_http()[1]["answers"] == by_command()["answers"])  # fmt: skip
row("000", 'each answer is read by answers[key]["noul"], from 0 to 1', True,
    lambda: all(0 <= over_http()[1]["answers"][key]["noul"] <= 1 for key in REQUEST["questions"]))  # fmt: skip
row("000", "the answer says that it took the default model for decider:2b", "decider:2b",
    lambda: over_http()[1]["x_model_asked_for"])  # fmt: skip


def exit_code(case: str) -> int:
    given = json.dumps(support_answers(*CASES[case][0]))
    return product.run(
        "check", "-", "--policy", product.written(SUPPORT, "support.toml"), given=given
    ).returncode


row("000", "the command's exit codes: 0 for accept, 3 for review", (0, 3),
    lambda: (exit_code("valid"), exit_code("implication")))  # fmt: skip
