"""`ticketgate policy show`: a policy as sentences, and as a picture; one that was in force, by its hash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from ticketgate.streams.cli.options import TEXT, json_flag
from ticketgate.streams.cli.policy.naming import HASH, kept_policy, policy_named
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.codecs.records.in_force import InForceRecord
    from ticketgate.streams.operations.policies import KeptPolicy


@click.command("show")
@click.argument("policy", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--hash",
    "prefix",
    type=TEXT,
    metavar="HASH",
    help="Show the policy that workers had in force under this hash, or the beginning of one, as records name it.",
)
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print the picture alone, in Mermaid's language.")
@click.option(
    "--document", "as_document", is_flag=True, help="Print the policy alone, as a JSON file that can be used."
)
@click.option("--kafka", metavar="SERVERS", help="With --hash: bootstrap servers, if not TICKETGATE_KAFKA's.")
@json_flag
def command(
    policy: Path | None,
    prefix: str | None,
    as_mermaid: bool,
    as_document: bool,
    kafka: str | None,
    as_json: bool,
) -> None:
    """Show POLICY as sentences, made from what its rules mean, or as a flowchart of labels and rules. With --hash, or
    hash:HASH as POLICY, one that was in force, and by whom and when it was put in force.

    In the flowchart an arrow requires, a crossed line excludes, a hexagon is another rule and a rounded box an effect;
    a dotted line means that the label is not there.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.workbench.policy.show import mermaid, sentences
    from ticketgate.streams.cli.output import print_json

    if policy is not None and str(policy).startswith(HASH) and prefix is None:
        policy, prefix = None, str(policy).removeprefix(HASH)
    if (policy is None) is (prefix is None):
        raise CommandError("give a policy's file, or --hash of one that was in force, and not both")
    kept = None if prefix is None else kept_policy(prefix, kafka=kafka)
    loaded = kept.load() if kept is not None else policy_named(policy or Path())
    if as_json:
        print_json(
            loaded.ref.to_json()
            | {"sentences": list(sentences(loaded)), "mermaid": mermaid(loaded), "document": loaded.document}
            | ({} if kept is None else {"in_force": [each.to_json() for each in kept.in_force]})
        )
    elif as_document:
        click.echo(loaded.to_bytes())
    elif as_mermaid:
        click.echo(mermaid(loaded), nl=False)
    else:
        for sentence in sentences(loaded):
            click.echo(sentence)
        if kept is not None:
            _print_in_force(kept)


def _print_in_force(kept: KeptPolicy) -> None:
    from ticketgate.streams.cli.output import print_field

    print_field("hash", kept.hash)
    for each in kept.in_force:
        print_field("put in force", in_force(each))
    if not kept.in_force:
        print_field("put in force", "not told: the worker that wrote it ended at that moment")


def in_force(told: InForceRecord) -> str:
    """When, by whom and where, in a line."""
    by = told.by or "nobody named (TICKETGATE_POLICY_AUTHOR)"
    when = told.at.strftime("%Y-%m-%d %H:%M:%S")
    return f"{when} UTC by {by}, from {told.file} on {told.host}, namespace {told.namespace}"
