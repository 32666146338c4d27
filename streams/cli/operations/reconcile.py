"""`ticketgate reconcile`: what outcomes are open; read them back, or settle one by a person's word."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import click
from ticketgate.store.ledger.entries import SETTLED_AS
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.options import TEXT, json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, print_table, quiet_libraries, say
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.agents.effects.ledger import Entry
    from ticketgate.store.ledger.entry_fields import EntryUnreadable


@click.command("reconcile")
@click.option(
    "--read-back", is_flag=True, help="Ask the providers now about what is due, and settle what they show."
)
@click.option("--all", "is_all", is_flag=True, help="With --read-back: about all that is open, due or not.")
@click.option("--settle", "key", type=TEXT, metavar="KEY", help="Settle the effect of this key by your word.")
@click.option("--as", "state", type=click.Choice(SETTLED_AS), help="With --settle: what became of it.")
@click.option("--by", "actor", type=TEXT, metavar="WHO", help="With --settle: who says so.")
@click.option("--reason", type=TEXT, metavar="TEXT", help="With --settle: how they know.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=1_000, show_default=True, help="At most so many."
)
@json_flag
@settings_flags("kafka", "redis", "namespace", "group", "funnel")
def command(
    read_back: bool,
    is_all: bool,
    key: str | None,
    state: str | None,
    actor: str | None,
    reason: str | None,
    limit: int,
    as_json: bool,
    settings: Settings,
) -> int:
    """List the effects whose outcome is open: sent, and not yet known to stand or not; or known not to stand, and
    nobody has taken note.

    A worker of the role `effects` reads them back by itself, ever more seldom. With --read-back it is done now; nothing
    is sent by this command. What no reading settles a person settles, with a reason that goes into the receipt: as
    absent or rejected once its provider's settle time is over, for it may be on its way till then. So does who carried
    out by hand what was refused before it was sent: with --as committed, its key has its effect.

    Exit code 0 if nothing is open (any more), 3 if something is.
    """
    from ticketgate.streams.operations.open_effects import look, settle

    quiet_libraries()
    _require_sense(read_back=read_back, is_all=is_all, key=key, given=(state, actor, reason))
    if key is not None:
        entry = asyncio.run(settle(settings, key, str(state), str(actor), str(reason)))
        _show([entry], as_json=as_json, count=0, oldest_s=0.0)
        return 0
    looked, held, unreadable, found = asyncio.run(look(settings, read_back, is_all, limit))
    if read_back:
        settled = [entry for entry in looked if not entry.is_open]
        say(f"{len(looked)} read back, {len(settled)} settled")
        held = (*settled, *held)
    _show(held, as_json=as_json, count=found.count, oldest_s=found.oldest_s, unreadable=unreadable)
    return EXIT_FINDINGS if found.count else 0


def _require_sense(*, read_back: bool, is_all: bool, key: str | None, given: tuple[str | None, ...]) -> None:
    if key is not None and read_back:
        raise CommandError("--read-back and --settle: do one after the other")
    if is_all and not read_back:
        raise CommandError("--all says what --read-back reads; give it too")
    if key is None and any(each is not None for each in given):
        raise CommandError("--as, --by and --reason belong to --settle KEY")
    if key is not None and not all(each and each.strip() for each in given):
        raise CommandError(
            f"--settle {key} needs --as {'|'.join(SETTLED_AS)}, --by WHO and --reason TEXT: it is a person's word"
        )


def to_json(entry: Entry) -> dict[str, object]:
    """An open or settled effect as data: its receipt, and for how long it has been sent."""
    from ticketgate.agents.effects.executor import receipt_of

    return {**receipt_of(entry).to_json(), "age_s": round(entry.age_s, 3), "is_open": entry.is_open}


def _show(
    entries: Sequence[Entry],
    *,
    as_json: bool,
    count: int,
    oldest_s: float,
    unreadable: Sequence[EntryUnreadable] = (),
) -> None:
    if as_json:
        effects = [to_json(entry) for entry in entries]
        others = [{"idempotency_key": each.key, "why": each.why} for each in unreadable]
        print_json({"open": count, "oldest_s": round(oldest_s, 3), "effects": effects, "unreadable": others})
        return
    rows = [_row(entry) for entry in entries]
    rows += [(each.key, "unreadable", *"-----", each.why) for each in unreadable]
    if rows:
        print_table(("effect", "state", "tool", "provider", "of", "sends", "sent before", "why"), rows)
    if count:
        oldest = timedelta(seconds=round(oldest_s))
        click.echo(f"{count} open, the oldest for {oldest}")
        say(
            "workers read them back by themselves; --read-back does it now, and --settle KEY takes a person's word"
        )
    elif not entries:
        click.echo("nothing is open")


def _row(entry: Entry) -> tuple[str, ...]:
    order = entry.order
    reasons = () if entry.verdict is None else entry.verdict.reasons
    if entry.settled_by is not None:
        reasons = (*reasons, f"{entry.settled_by.actor}: {entry.settled_by.reason}")
    return (
        entry.key,
        str(entry.state),
        order.command.tool,
        order.provider,
        order.subject or "-",
        str(entry.sends),
        str(timedelta(seconds=round(entry.age_s))),
        ", ".join(reasons) or "-",
    )
