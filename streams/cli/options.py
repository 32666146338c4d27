"""Options that commands share: a flag for each setting that a command reads, and `--json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from ticketgate.streams.config.settings import Settings, load_settings

Command = TypeVar("Command", bound=Callable[..., Any])


def settings_flags(*names: str, **spelled: str) -> Callable[[Command], Command]:
    """Give a command the flags of these settings, and call it with `settings`, loaded: flags over environment over
    file over defaults. `settings_flags()` without names reads the settings without giving flags; `roles="--role"`
    gives a flag another name than its setting's."""
    flag_of = {name: f"--{name.replace('_', '-')}" for name in names} | spelled

    def decorate(function: Command) -> Command:
        def with_settings(*arguments: Any, **options: Any) -> Any:
            flags = {name: options.pop(f"setting_{name}") for name in flag_of}
            return function(*arguments, settings=load_settings(flags).settings, **options)

        with_settings.__doc__ = function.__doc__
        with_settings.__name__ = function.__name__
        # Options that stand above this decorator were given to `function` already.
        with_settings.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        decorated: Any = with_settings
        for name, flag in reversed(flag_of.items()):
            decorated = click.option(flag, f"setting_{name}", help=Settings.model_fields[name].description)(
                decorated
            )
        return decorated  # type: ignore[no-any-return]

    return decorate


class _Text(click.ParamType):
    """Text that can be written. A shell passes bytes on, and those that are no UTF-8 come as lone surrogates."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail(f"{value!r} is not UTF-8", param, ctx)
        return value


TEXT = _Text()

json_flag = click.option("--json", "as_json", is_flag=True, help="Print data instead of text for people.")
