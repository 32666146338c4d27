"""`ticketgate check`: the verdict on given answers; no model, no broker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.files import named, read_json
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.agents.deciding.decide import Decision


@click.command("check")
@click.argument("answers", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option(
    "--policy", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The policy to judge by."
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as one JSON object.")
def command(answers: Path, policy: Path, as_json: bool) -> int:
    """Give the verdict on ANSWERS, a JSON file (- for standard input), under a policy.

    ANSWERS is an object from question id to answer, a System One response, or a decision record; with
    "attributes" and "state" if the policy asks for them. Exit code 0 for accept, 3 for anything else.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.policy import load_policy
    from ticketgate.agents.workbench.policy.check import CheckInputError, check
    from ticketgate.codecs.values.printable import json_text
    from ticketgate.codecs.verdict import Status

    given = read_json(answers)
    try:
        decision = check(given, policy=load_policy(policy))
    except CheckInputError as err:
        raise CommandError(f"{named(answers)}: {err}") from err
    click.echo(json_text(to_json(decision)) if as_json else to_text(decision))
    return 0 if decision.verdict.status is Status.ACCEPT else EXIT_FINDINGS


def to_json(decision: Decision) -> dict[str, object]:
    """What a decision record says of a decision, without a record's envelope."""
    verdict = decision.verdict
    return {
        "verdict": {
            "status": verdict.status,
            "stage": verdict.stage,
            "reasons": list(verdict.reasons),
            "next_step": verdict.next_step,
        },
        "selected": list(decision.selected),
        **({"values": dict(decision.values)} if decision.values else {}),
        "violations": [{"rule": each.rule, "message": each.message} for each in decision.violations],
        "probabilities": dict(decision.probabilities),
        "effects": [{"tool": each.tool, "arguments": each.arguments} for each in decision.effects],
    }


def to_text(decision: Decision) -> str:
    """A few lines for a person."""
    from ticketgate.codecs.values.printable import json_text

    verdict = decision.verdict
    lines = [
        f"{verdict.status} at {verdict.stage}",
        f"  selected: {', '.join(decision.selected) or 'none'}",
        *(f"  reason: {reason}" for reason in verdict.reasons),
        *(f"  effect: {each.tool} {json_text(each.arguments)}" for each in decision.effects),
        f"  next: {verdict.next_step}",
    ]
    return "\n".join(lines)
