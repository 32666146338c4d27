"""`ticketgate policy diff`: what changes from one policy to another, over all assignments and recorded decisions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.files import json_lines
from ticketgate.streams.cli.options import json_flag
from ticketgate.streams.cli.policy.naming import policy_named
from ticketgate.streams.cli.policy.turned import print_kinds

if TYPE_CHECKING:
    from ticketgate.agents.workbench.policy.compare import Comparison, Turned
    from ticketgate.agents.workbench.policy.rejudge import Rejudged


@click.command("diff")
@click.argument("old", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("new", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--decisions",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    help="Judge these recorded decisions by both: JSON lines, as `ticketgate consume` prints them.",
)
@json_flag
def command(old: Path, new: Path, decisions: Path | None, as_json: bool) -> int:
    """Show the assignments whose verdict changes from OLD to NEW, counted, with examples, and what else changes.
    Each is a file, or hash:HASH for a policy that workers had in force.

    Recorded decisions are judged anew by both policies, from the answers that they record. Exit code 0 if nothing
    changes, 3 if something does.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.workbench.policy.compare import compare
    from ticketgate.agents.workbench.policy.rejudge import rejudge

    before, after = policy_named(old), policy_named(new)
    comparison = compare(before, after)
    judged = None if decisions is None else rejudge(json_lines(decisions), before, after)
    if as_json:
        from ticketgate.streams.cli.output import print_json

        print_json(
            {
                "assignments": comparison.assignments
                if comparison.assignments < 2**63
                else str(comparison.assignments),
                "no_longer_accepted": comparison.no_longer_accepted.to_json(),
                "newly_accepted": comparison.newly_accepted.to_json(),
                "changes": list(comparison.changes),
                "notes": list(comparison.notes),
                "decisions": None if judged is None else judged.to_json(),
            }
        )
    else:
        _print(comparison, judged)
    is_same = comparison.is_same and (judged is None or not judged.turned)
    return 0 if is_same else EXIT_FINDINGS


def _print(comparison: Comparison, judged: Rejudged | None) -> None:
    for change in comparison.changes:
        click.echo(change)
    click.echo(f"of {counted(comparison.assignments, 'assignment')}")
    _print_turned("no longer accepted", comparison.no_longer_accepted)
    _print_turned("newly accepted", comparison.newly_accepted)
    for note in comparison.notes:
        click.echo(f"note: {note}")
    if judged is None:
        return
    click.echo(f"of {counted(judged.compared, 'recorded decision')} {judged.turned.total():,} would change")
    print_kinds(judged)
    for why, count in judged.not_judged.items():
        click.echo(f"  {count:,} not judged: {why}")
    if judged.by_another_policy:
        click.echo(f"  {judged.by_another_policy:,} recorded under another policy than the old one")


def _print_turned(what: str, turned: Turned) -> None:
    if turned.count is not None:
        count = f"{turned.count:,}"
    else:
        count = "some, too many to count" if turned.examples else "not known"
    click.echo(f"  {what}: {count}")
    for example in turned.examples:
        click.echo(f"    {', '.join(example) or 'no label at all'}")
