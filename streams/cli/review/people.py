"""`ticketgate review forget`: whom a pseudonym stands for, erased."""

from __future__ import annotations

import click
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.options import TEXT, settings_flags
from ticketgate.streams.cli.output import say
from ticketgate.streams.config.settings import Settings


@click.command("forget")
@click.argument("name", type=TEXT)
@settings_flags("console_keys", "console_key", "review_view")
def forget(name: str, settings: Settings) -> int:
    """Erase whom NAME's pseudonym stands for, on this machine. Records keep the pseudonym, which tells nothing.

    It needs a key with the role administer. Exit code 3 if nobody of that name is known.
    """
    from ticketgate.agents.settling.console_keys import ConsoleRole
    from ticketgate.streams.operations.review.desk import require_key
    from ticketgate.streams.operations.review.people import forget as erase

    require_key(settings, ConsoleRole.ADMINISTER)
    if not erase(settings.people_file, name):
        say(f"nobody of that name is in {settings.people_file}")
        return EXIT_FINDINGS
    say("erased; the next time that name settles it gets another pseudonym")
    return 0
