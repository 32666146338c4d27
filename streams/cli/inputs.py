"""`--of tickets|proposals`: which of a deployment's inputs a command is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ticketgate.streams.inputs import InputName

Command = TypeVar("Command", bound=Callable[..., Any])

NAMES: tuple[InputName, ...] = ("tickets", "proposals")


def of_flag(purpose: str) -> Callable[[Command], Command]:
    """Give a command the option, and `of` as an argument; `purpose` is its help."""
    return click.option(
        "--of", "of", type=click.Choice(NAMES), default=NAMES[0], show_default=True, help=purpose
    )
