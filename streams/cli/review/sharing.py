"""What the commands of `review` share: the person, the view, and the log of what was read."""

from __future__ import annotations

import asyncio
import getpass
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from ticketgate.streams.cli.options import TEXT
from ticketgate.streams.cli.steps import steps
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.streams.operations.review.rows import Case
    from ticketgate.streams.operations.review.view import View

Command = TypeVar("Command", bound=Callable[..., Any])

as_flag = click.option(
    "--as",
    "person",
    type=TEXT,
    metavar="NAME",
    help="Who you are; records bear a pseudonym.  [default: your login]",
)


def person_of(settings: Settings, person: str | None) -> str:
    """The pseudonym of who is at the terminal. Raises `CommandError`."""
    from ticketgate.streams.operations.review.people import pseudonym_of

    return pseudonym_of(settings.people_file, person or getpass.getuser())


@contextmanager
def fed_view(settings: Settings) -> Iterator[View]:
    """The view, up to date; a damaged one is made anew. Raises `Unreachable`, `ConditionFailed` and `CommandError`."""
    from ticketgate.streams.operations.review.tables import is_broken, take_away

    path = settings.review_view
    try:
        try:
            view = _fed(settings)
        except sqlite3.DatabaseError as err:
            if not is_broken(err):
                raise
            take_away(path)
            view = _fed(settings)
        except OSError as err:
            raise CommandError(
                f"TICKETGATE_REVIEW_VIEW: {path} cannot be written ({err.strerror}); name another file"
            ) from err
        with view:
            yield view
    except sqlite3.DatabaseError as err:
        raise view_fault(path, err) from err


def view_fault(path: Path, err: sqlite3.DatabaseError) -> CommandError:
    """What a person is told of a view that SQLite cannot use; one that is damaged is taken away."""
    from ticketgate.streams.operations.review.tables import is_broken, take_away

    if is_broken(err):
        take_away(path)
        what = "was damaged, and was taken away; run the command again, which makes it anew from the topics"
        return CommandError(f"TICKETGATE_REVIEW_VIEW: {path} {what}")
    remedy = "make room or free it, or name another file"
    return CommandError(f"TICKETGATE_REVIEW_VIEW: {path} cannot be used ({err}); {remedy}")


def _fed(settings: Settings) -> View:
    from ticketgate.streams.operations.review.feeding import open_view

    with steps() as progress:
        return asyncio.run(open_view(settings, settings.review_view, progress=progress))


def log_texts(settings: Settings, by: str, command: str, cases: list[str]) -> None:
    """Write down whose text is about to be shown. Raises `CommandError`: what cannot be logged is not shown."""
    from ticketgate.streams.operations.review.people import log_reading

    log_reading(settings.reading_log, at=datetime.now(UTC), by=by, command=command, tickets=cases)


def one_case(view: View, name: str, now_ms: int) -> Case:
    """The ticket's newest decision in review, by its key or id. Raises `CommandError`."""
    from ticketgate.streams.operations.review.rows import Kind

    found = view.find(name, now_ms=now_ms)
    if not found:
        raise CommandError(f"no ticket {name!r} lies in review; give its id or its idempotency key")
    decisions = [each for each in found if each.kind is Kind.DECISION] or found
    if len({each.key for each in decisions}) > 1:
        keys = ", ".join(sorted({each.key for each in decisions}))
        raise CommandError(
            f"several tickets have the id {name!r}, of other tenants; give one of the keys {keys}"
        )
    return decisions[0]
