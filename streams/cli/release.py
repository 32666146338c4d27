"""`ticketgate release`: which effects of a funnel file may be automatic, and what must stand for it."""

from __future__ import annotations

from pathlib import Path

import click
from ticketgate.streams.cli.options import json_flag


@click.command("release")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_flag
def command(file: Path, as_json: bool) -> int:
    """Say of each tool of FILE what must stand before its effect may be automatic."""
    from ticketgate.agents.funnel.funnel_file import load_funnel_file

    load_funnel_file(file)
    return 0
