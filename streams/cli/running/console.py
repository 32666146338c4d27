"""`ticketgate console`: the web page on which people settle what lies in review, and who may come in."""

from __future__ import annotations

import getpass

import click
from ticketgate.streams.cli.options import settings_flags
from ticketgate.streams.cli.output import say
from ticketgate.streams.cli.running.console_users import user
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings


@click.group("console", invoke_without_command=True)
@click.pass_context
@settings_flags(
    "kafka",
    "namespace",
    "policy",
    "console_keys",
    "console_key",
    "console_users",
    "console_bind",
    "console_port",
    "review_view",
    "log_level",
)
def command(context: click.Context, settings: Settings) -> None:
    """Open the console, until SIGTERM or Ctrl-C: what waits for a person, the whole case of a ticket, and settling it.

    Without TICKETGATE_CONSOLE_USERS one person may come in, from this machine alone, by a token that is told here.
    """
    if context.invoked_subcommand is not None:
        return
    import asyncio
    import os

    from ticketgate.streams.config.logs import configure_logging
    from ticketgate.streams.console.app import run_console
    from ticketgate.streams.console.door.people import People
    from ticketgate.streams.console.door.tokens import hashed, new_token
    from ticketgate.streams.process.exposure import is_loopback

    configure_logging(settings.log_level)
    token: str | None = None
    only: tuple[str, str] | None = None
    if settings.console_users is None:
        if not is_loopback(settings.console_bind):
            raise SettingsError(
                "TICKETGATE_CONSOLE_BIND",
                f"{settings.console_bind} is reached from elsewhere, and TICKETGATE_CONSOLE_USERS names nobody who may"
                " come in",
                "make the file by `ticketgate console user add NAME --role settle`, or bind 127.0.0.1",
            )
        token = new_token()
        only = (getpass.getuser(), hashed(token))
    people = People(settings, only=only)

    def opened(address: str) -> None:
        say(f"the console is open: http://{address}")
        if not is_loopback(settings.console_bind):
            say("it speaks http, tokens and tickets included: put what ends TLS before it")
        if token is not None and only is not None:
            say(f"sign in as {only[0]} with the token {token}, which holds until the console ends")

    try:
        asyncio.run(run_console(settings, people, opened=opened))
    except OSError as err:
        said = os.strerror(err.errno) if err.errno else str(err)
        raise SettingsError(
            "TICKETGATE_CONSOLE_PORT",
            f"cannot listen on {settings.console_bind}:{settings.console_port} ({said})",
            "set another port, or 0 for a free one",
        ) from err


command.add_command(user)
