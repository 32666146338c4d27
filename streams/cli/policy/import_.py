"""`ticketgate policy import`: a policy out of a GLiNER2.5 classification schema."""

from __future__ import annotations

from pathlib import Path

import click
from ticketgate.streams.cli.files import named, read_json
from ticketgate.streams.config.usage import CommandError


@click.command("import")
@click.argument("schema", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--name", default="imported", show_default=True, help="The policy's name.")
@click.option("--version", default="1", show_default=True, help="The policy's version.")
def command(schema: Path, name: str, version: str) -> None:
    """Print a policy, as JSON, with the questions and rules of SCHEMA (- for standard input).

    SCHEMA is what ClassificationSchema.to_json() of the package gliner2 writes. A task of exactly one label becomes a
    choice, or a score if it is ordered; of any other task each label becomes a noul.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.policy import parse_policy
    from ticketgate.agents.workbench.policy.gliner import ImportRefusedError, policy_document
    from ticketgate.codecs.values.printable import json_text

    try:
        document = policy_document(read_json(schema), name=name, version=version)
    except (ImportRefusedError, KeyError, TypeError) as err:
        what = str(err) if isinstance(err, ImportRefusedError) else f"not a whole schema: {err!r}"
        raise CommandError(f"{named(schema)}: {what}") from err
    text = json_text(document, indent=2)
    # What this command prints is a policy, or it says here why it is none.
    parse_policy(text, source=named(schema))
    click.echo(text)
