"""`ticketgate release`: which effects of a funnel file may be automatic, and what must stand for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.options import json_flag
from ticketgate.streams.cli.output import print_json

if TYPE_CHECKING:
    from ticketgate.agents.funnel.file.funnel_file import FunnelFile
    from ticketgate.agents.funnel.file.release import ReleaseFinding, ToolRelease


@click.command("release")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@json_flag
def command(file: Path, as_json: bool) -> int:
    """Hold each tool of FILE, a funnel file, to the release grid.

    For each tool: what must stand before its effect may be automatic, and what shows it. Where the catalogue, the
    look-ups and the provider show it, no claim is asked for; where they show the contrary, none is taken. Exit code 3
    if a tool is declared automatic and may not be, 2 if the file cannot be used. A worker of the role effects
    refuses such a file.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.funnel.file.funnel_file import load_funnel_file
    from ticketgate.agents.funnel.file.release import check_release, tool_releases

    loaded = load_funnel_file(file)
    findings, tools = check_release(loaded), tool_releases(loaded)
    if as_json:
        print_json(
            {
                "source": str(file),
                "tools": [each.to_json() for each in tools],
                "unprovided": list(loaded.unprovided),
                "findings": [each.to_json() for each in findings],
            }
        )
    else:
        click.echo("\n".join(_lines(loaded, tools, findings)))
    return EXIT_FINDINGS if findings else 0


def _lines(file: FunnelFile, tools: Sequence[ToolRelease], findings: Sequence[ReleaseFinding]) -> list[str]:
    lines: list[str] = []
    for each in tools:
        how = "automatic" if each.automatic else "not automatic"
        lines.append(f"{each.tool}: {each.contribution}, {each.consequence}, by {each.provider}: {how}")
        if each.never:
            lines.append(f"  never   {each.never}")
        if each.remove_the_model:
            lines.append(f"  remove  the model: {each.remove_the_model}")
        for one in each.standings:
            if one.fault:
                lines.append(f"  lacks   {one.requirement:20}  {one.fault}; {one.remedy}")
                lines.append(f"{'':32}({one.says})")
            else:
                lines.append(f"  stands  {one.requirement:20}  {', '.join(one.shown_by)}")
    lines += [f"{name}: nobody carries it out; add tools.{name}" for name in file.unprovided]
    lines += [
        f"FINDING {found.tool}: {found.what} [{found.code}]\n  {found.remedy}"
        for found in findings
        if found.code not in ("missing", "contradicted")
    ]
    automatic = sum(each.automatic for each in tools)
    lines.append(
        f"{file.path.name}: {counted(len(tools), 'tool')}, {automatic} automatic, {counted(len(findings), 'finding')}"
    )
    return lines
