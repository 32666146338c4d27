"""One bar for work in steps, each of a size of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with a step's name, how much of it is done, and how much there is."""


@contextmanager
def steps() -> Iterator[Progress]:
    """A function that tells of a step how much is done and how much there is; bars on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda step, done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def update(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total)
            bars.update(tasks[step], completed=done, total=total)

        yield update
