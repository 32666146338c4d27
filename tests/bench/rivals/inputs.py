"""One file of tickets for all arms, and what answers the policy's questions about them.

Without a model: ids from a pool with fixed answers, so that no model costs anything. With the model: texts as people
write them, no two alike, of one to eight sentences. A ticket's key is its tenant and its id, so each round's tickets
are of a tenant of their own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ticketgate.agents.scoring.shipped import default_model_path

from ...support.deciding import LABELS, SUPPORT

POOL = 1_000
Tickets = Callable[[str, int], Iterator[tuple[str, bytes]]]
SENTENCES = (
    "My card was charged twice for order {}.",
    "Please refund invoice {} today.",
    "The app closes whenever I open my account.",
    "How do I change the address on my contract?",
    "Since the update of last week, nothing that I save on my phone shows up on the computer any more.",
    "Thank you for the quick answer yesterday.",
    "The parcel with the number {} never came, although your page says that it was handed over on Monday.",
    "I cannot sign in.",
    "Your colleague promised to call me back, and I have been waiting for {} hours now.",
    "Can I pay in instalments?",
    "If this is not settled by tomorrow morning we will cancel our subscription and go to somebody else.",
    "The error says code {}.",
    "There is a mistake in the bill of March: it lists {} users and we have half of that.",
    "Where do I find the form?",
    "It was working fine before.",
    "I would like to know whether the discount also counts for the second year, and for how many people.",
)
MOST_SENTENCES = 8


@dataclass(frozen=True, slots=True)
class Inputs:
    """settings: ticketgate's, which name the policy and who answers. rival: the environment of a rival that does the
    same work. tickets: those of a round of some name, so many, each with the id that is its key."""

    policy: Path
    settings: Mapping[str, str]
    rival: Mapping[str, str]
    tickets: Tickets


def write_inputs(folder: Path, *, with_model: bool = False) -> Inputs:
    """The policy of five questions and three rules, and answers of which most keep them, or the shipped model."""
    policy = folder / "policy.toml"
    policy.write_text(SUPPORT)
    if with_model:
        return Inputs(policy, {"POLICY": str(policy)}, {"RIVAL_MODEL": str(default_model_path())}, mails)
    answers = folder / "answers.json"
    answers.write_text(json.dumps(_fixed_answers()))
    settings = {"POLICY": str(policy), "SCORER": f"fixed:{answers}"}
    return Inputs(policy, settings, {"RIVAL_ANSWERS": str(answers)}, tickets)


def tickets(name: str, count: int) -> Iterator[tuple[str, bytes]]:
    """Some 250 bytes each."""
    for number in range(count):
        ticket_id, tenant = f"T-{number % POOL}", f"{name}-{number // POOL}"
        state = f"Ticket {number}. " + "The card terminal shows an error when a customer pays. " * 3
        yield ticket_id, json.dumps({"id": ticket_id, "tenant": tenant, "state": state}).encode()


def mails(name: str, count: int) -> Iterator[tuple[str, bytes]]:
    """Texts that differ, long and short ones mixed."""
    dice = random.Random(name)
    for number in range(count):
        chosen = dice.choices(SENTENCES, k=dice.randint(1, MOST_SENTENCES))
        state = f"Request {number}. " + " ".join(each.format(dice.randrange(10_000)) for each in chosen)
        ticket_id = f"M-{number}"
        yield ticket_id, json.dumps({"id": ticket_id, "tenant": name, "state": state}).encode()


def _fixed_answers() -> dict[str, object]:
    dice = random.Random(19)
    answers: dict[str, object] = {}
    for number in range(POOL):
        is_billing, is_urgent = dice.random() < 0.5, dice.random() < 0.3
        truths = (
            is_urgent,
            is_urgent or dice.random() < 0.1,
            not is_urgent and dice.random() < 0.5,
            is_billing,
            not is_billing,
        )
        answers[f"T-{number}"] = {
            name: {
                "type": "noul",
                "noul": round(0.5 + (0.1 + 0.4 * dice.random()) * (1 if is_true else -1), 6),
            }
            for name, is_true in zip(LABELS, truths, strict=True)
        }
    return answers
