"""`--of tickets|proposals|settlements`: which of a deployment's inputs a command is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from ticketgate.streams.operations.inputs import InputName

Command = TypeVar("Command", bound=Callable[..., Any])

NAMES: tuple[InputName, ...] = ("tickets", "proposals", "settlements")


def of_flag(purpose: str, *others: str) -> Callable[[Command], Command]:
    """Give a command the option, and `of` as an argument; `purpose` is its help, `others` what it knows besides."""
    choice = click.Choice([*NAMES, *others])
    return click.option("--of", "of", type=choice, default=NAMES[0], show_default=True, help=purpose)
