"""`ticketgate examples`: the files of the manual's first hour, put where a person can change them."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
from ticketgate.agents.plural import counted
from ticketgate.streams.cli.output import say
from ticketgate.streams.config.usage import CommandError

_STREAMS = Path(__file__).resolve().parents[2]
_FUNNEL = _STREAMS.parent / "agents" / "funnel" / "examples"
_OF_THE_FUNNEL = ("support.toml", "support.funnel.toml", "support.jsonl", "support.undo.md")


def example_files() -> Iterator[tuple[str, Path]]:
    """Each file by its name in the folder that `examples` makes, and where it lies."""
    for path in sorted((_STREAMS / "examples").iterdir()):
        if path.is_file():
            yield path.name, path
    # The funnel file names its catalogue, and what shows that a tool may act, by paths beside it.
    for name in _OF_THE_FUNNEL:
        yield name, _FUNNEL / name


@click.command("examples")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def command(folder: Path) -> None:
    """Write the files that the manual works with into FOLDER: a policy with its cases, tickets, a table, answers, a
    request, a funnel file with evidence and a proposal, and clients in Python and Java.

    What is there and differs stays, and nothing is written then.
    """
    files = dict(example_files())
    differing = [
        name
        for name, path in files.items()
        if (folder / name).exists() and not filecmp.cmp(path, folder / name, shallow=False)
    ]
    if differing:
        raise CommandError(
            f"{folder / differing[0]}: is there, and says something else; name an empty folder, or move it away"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in files.items():
            shutil.copyfile(path, folder / name)
    except OSError as err:
        raise CommandError(f"cannot write to {folder} ({err.strerror}); name another folder") from err
    say(f"wrote {counted(len(files), 'file')} to {folder}; README.md there says what each is for")
