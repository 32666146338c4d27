"""`ticketgate policy rescore`: what another model makes of recorded tickets, under a policy as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_FINDINGS, EXIT_UNREACHABLE
from ticketgate.streams.cli.files import json_lines
from ticketgate.streams.cli.options import json_flag, settings_flags
from ticketgate.streams.cli.policy.naming import policy_named
from ticketgate.streams.cli.policy.turned import print_kinds
from ticketgate.streams.config.settings import Settings

if TYPE_CHECKING:
    from ticketgate.agents.workbench.policy.rescore import Moved, Rescored
    from ticketgate.codecs.values.strict import JsonValue

_FILE = click.Path(dir_okay=False, path_type=Path, allow_dash=True)


@click.command("rescore")
@click.argument("policy", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--decisions",
    required=True,
    type=_FILE,
    help="Recorded decisions: JSON lines, as `ticketgate consume` prints them.",
)
@click.option(
    "--tickets",
    type=_FILE,
    help="Their tickets, as JSON lines, for records that hold none (dispatch, unless a setting asks).",
)
@json_flag
@settings_flags("scorer", "model")
def command(policy: Path, decisions: Path, tickets: Path | None, as_json: bool, settings: Settings) -> int:
    """Ask a model about the tickets of recorded decisions, and show what changes under POLICY, a file, or hash:HASH for
    one that workers had in force.

    For each noul: how many its threshold selected and selects, and from which threshold on it would select as many as
    before. Then the decisions that come out otherwise, with examples. Exit code 0 if none does, 3 if some do.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.scoring import ScorerUnavailable
    from ticketgate.agents.scoring.scorer import Closable
    from ticketgate.agents.workbench.policy.rescore import rescore
    from ticketgate.streams.cli.output import print_json, say
    from ticketgate.streams.roles.decide.scorers import require_scorer

    judged_by = policy_named(policy)
    known = {} if tickets is None else _by_id(tickets)
    scorer = require_scorer(settings)
    try:
        found = rescore(json_lines(decisions), policy=judged_by, scorer=scorer, tickets=known)
    except ScorerUnavailable as err:
        say(f"ticketgate: {settings.scorer}: {err}")
        return EXIT_UNREACHABLE
    finally:
        if isinstance(scorer, Closable):
            scorer.close()
    if as_json:
        model = {"id": scorer.model.id, "hash": scorer.model.hash}
        print_json({"model": model, **found.to_json()})
    else:
        _print(found)
        say(f"model {scorer.model.id}")
    return EXIT_FINDINGS if found.turned else 0


def _by_id(path: Path) -> dict[str, dict[str, JsonValue]]:
    """Tickets by id; a line may be the envelope that `consume` prints. Of several with one id the last."""
    found = {}
    for line in json_lines(path):
        value = line.get("value", line) if isinstance(line, dict) and "state" not in line else line
        if isinstance(value, dict) and isinstance(value.get("id"), str):
            found[str(value["id"])] = value
    return found


def _print(found: Rescored) -> None:
    for name, moved in found.nouls.items():
        if moved.before:
            click.echo(_told(name, moved))
    click.echo(
        f"of {counted(found.compared, 'recorded ticket')} {found.turned.total():,} would come out otherwise"
    )
    print_kinds(found)
    for why, count in found.not_asked.items():
        click.echo(f"  {count:,} not asked: {why}")
    if found.by_another_policy:
        click.echo(f"  {found.by_another_policy:,} recorded under another policy than this")
    if found.by_this_model:
        click.echo(f"  {found.by_this_model:,} recorded by this very model")


def _told(name: str, moved: Moved) -> str:
    share = moved.same_share_from
    return (
        f"{name}: of {len(moved.before):,} the threshold {moved.threshold!r} selected"
        f" {moved.selected(moved.before):,}, selects {moved.selected(moved.after):,}"
        f" ({moved.newly:,} newly, {moved.no_longer:,} no longer)"
        + ("" if share is None else f"; as many as before from {share!r} on")
    )
