"""How commands speak: results on stdout, talk on stderr, bars only while a person watches.

Promise: what is piped is plain, complete lines: no colours, no bars, no table folded to a width that nobody has.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import click
from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from ticketgate.codecs.values.printable import json_text, printable
from ticketgate.codecs.values.redact import redact

# Rich takes 80 columns where there is no terminal, and would fold what a script or a log reads.
_WIDE = 250
# Only strings of JSON have such characters.
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


class Advance(Protocol):
    """Says that so many more are done."""

    def __call__(self, count: int, /) -> None: ...


class _Console(Console):
    """Leaves a reader that went away to `main`; rich would end the process with code 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Stdout; as wide as the terminal, or as the text needs."""
    return _Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDE, highlight=False)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[RenderableType]]) -> None:
    """A table on stdout. Text in it is text: no markup is read out of it."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in row))
    console().print(table)


def print_json(value: object) -> None:
    """One line of JSON on stdout."""
    text = json_text(value)
    if not text.isascii() and sys.stdout.encoding.lower().replace("-", "") != "utf8":
        # What the output's encoding lacks would be escaped in a way that JSON does not know.
        text = _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    click.echo(text)


def print_field(name: str, value: object) -> None:
    """A line `name: value` on stdout: text as it is, nothing as `none`, all else as JSON."""
    value = "none" if value is None else value
    told = printable(value) if isinstance(value, str) else json_text(value)
    click.echo(f"{name.replace('_', ' ')}: {told}")


def say(message: str) -> None:
    """Talk: a line on stderr."""
    click.echo(printable(redact(message)), err=True)


def say_error(message: str, code: int, *, as_json: bool) -> int:
    """Say why a command ends with `code`, which is returned; as data too, where data was asked for."""
    say(f"ticketgate: {message}")
    if as_json:
        print_json({"error": message, "exit_code": code})
    return code


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Advance]:
    """A bar on stderr if that is a terminal, else nothing. `total` None: only the count is shown."""
    if not sys.stderr.isatty():
        yield lambda count: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


def quiet_libraries() -> None:
    """Keep libraries' logs off stderr in commands that end: their errors reach the person as one line instead."""
    logging.getLogger().addHandler(logging.NullHandler())
