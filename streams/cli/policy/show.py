"""`ticketgate policy show`: a policy as sentences, and as a picture."""

from __future__ import annotations

from pathlib import Path

import click
from ticketgate.streams.cli.options import json_flag


@click.command("show")
@click.argument("policy", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print the picture alone, in Mermaid's language.")
@json_flag
def command(policy: Path, as_mermaid: bool, as_json: bool) -> None:
    """Show POLICY as sentences, made from what its rules mean, or as a flowchart of labels and rules.

    In the flowchart an arrow requires, a crossed line excludes, a hexagon is another rule and a rounded box an effect;
    a dotted line means that the label is not there.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.policy import load_policy
    from ticketgate.agents.workbench.policy.show import mermaid, sentences
    from ticketgate.streams.cli.output import print_json

    loaded = load_policy(policy)
    if as_json:
        print_json({"sentences": list(sentences(loaded)), "mermaid": mermaid(loaded)})
    elif as_mermaid:
        click.echo(mermaid(loaded), nl=False)
    else:
        for sentence in sentences(loaded):
            click.echo(sentence)
