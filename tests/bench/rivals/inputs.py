"""One file of tickets for all arms: ids from a pool with fixed answers, so that no model costs anything.

A ticket's key is its tenant and its id, so each round's tickets are of a tenant of their own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...support.deciding import LABELS, SUPPORT

POOL = 1_000


@dataclass(frozen=True, slots=True)
class Inputs:
    """The policy and its answers as files, and the settings that name them."""

    policy: Path
    answers: Path

    @property
    def settings(self) -> dict[str, str]:
        """For ticketgate."""
        return {"POLICY": str(self.policy), "SCORER": f"fixed:{self.answers}"}


def write_inputs(folder: Path) -> Inputs:
    """The policy of five questions and three rules, and answers of which most keep them."""
    dice = random.Random(19)
    answers = {}
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
    inputs = Inputs(folder / "policy.toml", folder / "answers.json")
    inputs.policy.write_text(SUPPORT)
    inputs.answers.write_text(json.dumps(answers))
    return inputs


def tickets(name: str, count: int) -> Iterator[tuple[str, bytes]]:
    """So many tickets of a round of this name, each with the id that is its key: some 250 bytes."""
    for number in range(count):
        ticket_id, tenant = f"T-{number % POOL}", f"{name}-{number // POOL}"
        state = f"Ticket {number}. " + "The card terminal shows an error when a customer pays. " * 3
        yield ticket_id, json.dumps({"id": ticket_id, "tenant": tenant, "state": state}).encode()
