"""`ticketgate ledger`: look an effect up, have one that was stopped done after all, or rebuild what Redis lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.operations.gaps import LEFT_CLOSED, accept_gaps_flag, show_gaps
from ticketgate.streams.cli.options import TEXT, json_flag, settings_flags
from ticketgate.streams.cli.output import print_field, print_json, print_table, quiet_libraries, say
from ticketgate.streams.cli.steps import Progress, steps
from ticketgate.streams.config.settings import Settings

if TYPE_CHECKING:
    from ticketgate.codecs.records.identity import Coordinate
    from ticketgate.streams.operations.dispatching_anew import Stopped
    from ticketgate.streams.operations.ledger_rebuild import LedgerRebuild


@click.group("ledger")
def command() -> None:
    """The ledger that says how far each effect is."""


# --- show -------------------------------------------------------------------------------------------------------


@command.command("show")
@click.argument("key", type=TEXT)
@json_flag
@settings_flags("redis", "namespace")
def show(key: str, as_json: bool, settings: Settings) -> int:
    """Show the effect of KEY (a decision's effect names it): its state, and what is known of it.

    Exit code 0 if there is one, 3 if not.
    """
    found = asyncio.run(_show(settings, key))
    if as_json:
        print_json({"key": key, "effect": found})
    elif found is None:
        click.echo(f"no effect {key} is in the ledger")
    else:
        for name, value in found.items():
            print_field(name, value)
    return EXIT_FINDINGS if found is None else 0


async def _show(settings: Settings, key: str) -> dict[str, object] | None:
    from ticketgate.streams.cli.operations.reconcile import to_json
    from ticketgate.streams.operations.command_redis import open_redis
    from ticketgate.streams.roles.effects.effect_ledger import open_ledger

    async with open_redis(settings) as redis:
        entry = await open_ledger(settings, redis).read(key)
        return None if entry is None else to_json(entry)


# --- dispatch ---------------------------------------------------------------------------------------------------


@command.command("dispatch")
@click.argument("key", type=TEXT)
@click.option("--yes", is_flag=True, help="Do it; without, it only says what would come of it.")
@json_flag
@settings_flags("kafka", "redis", "namespace", "group")
def dispatch(key: str, yes: bool, as_json: bool, settings: Settings) -> None:
    """Dispatch the effect of KEY anew, which was refused before anything was sent: when its tool has become automatic,
    a permission is back, or what else stood against it is mended.

    Its record goes into `dispatch` again, with this effect alone. Workers of the role `effects`, which may be at work,
    judge it by what is true then: it is carried out once, or refused again. What was sent is never dispatched anew.
    """
    quiet_libraries()
    stopped, dispatched = asyncio.run(_dispatch(settings, key, yes))
    if as_json:
        from ticketgate.streams.cli.operations.reconcile import to_json as entry_json

        found = None if dispatched is None else str(dispatched)
        print_json({"key": key, "effect": entry_json(stopped.entry), "dispatched": found, "done": yes})
    else:
        show_dispatch(stopped, dispatched)


async def _dispatch(settings: Settings, key: str, yes: bool) -> tuple[Stopped, Coordinate | None]:
    from ticketgate.streams.operations.command_redis import open_redis
    from ticketgate.streams.operations.dispatching_anew import dispatch_anew, find_stopped

    async with open_redis(settings) as redis:
        stopped = await find_stopped(settings, redis, key)
        return stopped, await dispatch_anew(settings, stopped) if yes else None


def show_dispatch(stopped: Stopped, dispatched: Coordinate | None) -> None:
    """What it is about, why it was refused, and where it is dispatched."""
    order, verdict = stopped.entry.order, stopped.entry.verdict
    print_field("effect", stopped.entry.key)
    print_field("tool", order.command.tool)
    print_field("arguments", dict(order.command.arguments))
    print_field("of", order.subject)
    print_field("refused", None if verdict is None else ", ".join(verdict.reasons) or str(verdict.stage))
    print_field("record", str(stopped.source))
    if dispatched is None:
        say("nothing was dispatched: add --yes to do it")
    else:
        print_field("dispatched", str(dispatched))
        say("a worker of the role effects carries it out once, unless something stands against it still")


# --- rebuild ----------------------------------------------------------------------------------------------------


@command.command("rebuild")
@click.option("--dry-run", is_flag=True, help="Say what would be restored; change nothing.")
@accept_gaps_flag
@json_flag
@settings_flags("kafka", "redis", "namespace", "group")
def rebuild(dry_run: bool, accept_gaps: bool, as_json: bool, settings: Settings) -> int:
    """Restore the effects that Redis lost, out of their receipts. Lanes that refused for a lost ledger open by
    themselves afterwards; workers need not be stopped: all lanes are closed meanwhile.

    An effect that stands is never changed, and a second run changes nothing. What was about to be sent when Redis lost
    it comes back as unknown: it is read back, and not sent because nobody remembers. Exit code 3 if something
    is open afterwards whose record in dispatch is gone: should it turn out absent, a person decides; and if receipts
    cannot vouch for all that was committed: then lanes stay closed.
    """
    quiet_libraries()
    with steps() as progress:
        done = asyncio.run(_rebuild(settings, dry_run, accept_gaps, progress))
    if as_json:
        print_json(to_json(done) | {"dry_run": dry_run})
    else:
        show_rebuild(done, dry_run=dry_run, accept_gaps=accept_gaps)
    return EXIT_FINDINGS if done.without_record or (done.gaps and not accept_gaps) else 0


async def _rebuild(settings: Settings, dry_run: bool, accept_gaps: bool, progress: Progress) -> LedgerRebuild:
    from ticketgate.streams.operations.command_redis import open_redis
    from ticketgate.streams.operations.ledger_rebuild import rebuild_ledger

    async with open_redis(settings) as redis:
        return await rebuild_ledger(
            settings, redis, dry_run=dry_run, accept_gaps=accept_gaps, progress=progress
        )


def to_json(done: LedgerRebuild) -> dict[str, object]:
    """The counts and the marks."""
    return {
        "receipts": done.receipts,
        "restored": done.effects.restored,
        "open": done.effects.open,
        "present": done.effects.present,
        "expired": done.effects.expired,
        "unreadable": done.unreadable,
        "without_record": done.without_record,
        "marks": [{"partition": each, "to": offset} for each, offset in sorted(done.marks.items())],
        "gaps": [*done.gaps],
    }


def show_rebuild(done: LedgerRebuild, *, dry_run: bool, accept_gaps: bool) -> None:
    """The table for a person, and what is to be done next."""
    print_table(
        ("", "count", "meaning"),
        [
            ("receipts", f"{done.receipts:,}", "of effects, read"),
            (
                "restored",
                f"{done.effects.restored:,}",
                "effects set anew" + (" (would be)" if dry_run else ""),
            ),
            ("open", f"{done.effects.open:,}", "of these: to be read back"),
            ("present", f"{done.effects.present:,}", "effects that were there: not changed"),
            ("expired", f"{done.effects.expired:,}", "effects whose time would be over by now"),
            ("without record", f"{done.without_record:,}", "open, and gone from dispatch: never sent again"),
            ("unreadable", f"{done.unreadable:,}", "records that are no receipts: passed over"),
        ],
    )
    for partition, offset in sorted(done.marks.items()):
        click.echo(f"partition {partition}: marks to at least {offset}")
    show_gaps(done.gaps)
    if dry_run:
        say("nothing was changed")
    elif done.gaps and not accept_gaps:
        say(LEFT_CLOSED)
    elif done.effects.open:
        say("workers of the role effects read back what is open, and `ticketgate reconcile --read-back` does")
    else:
        say("lanes that refused for a lost ledger open within 10 s")
