"""`ticketgate reconcile`: what outcomes are open; read them back, or settle one by a person's word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import click
from ticketgate.streams.cli import EXIT_FINDINGS, CommandError
from ticketgate.streams.cli.options import TEXT, json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, print_table, quiet_libraries, say
from ticketgate.streams.settings import Settings

if TYPE_CHECKING:
    from redis.asyncio import Redis
    from ticketgate.agents.effects.ledger import Entry, Open
    from ticketgate.agents.effects.reconcile import Reconciler
    from ticketgate.codecs.receipt import EffectReceipt
    from ticketgate.store.entry_fields import EntryUnreadable
    from ticketgate.store.ledger import Ledger

SETTLED_AS = ("committed", "absent", "rejected")


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
    quiet_libraries()
    _require_sense(read_back=read_back, is_all=is_all, key=key, given=(state, actor, reason))
    if key is not None:
        entry = asyncio.run(_settle(settings, key, str(state), str(actor), str(reason)))
        _show([entry], as_json=as_json, count=0, oldest_s=0.0)
        return 0
    looked, held, unreadable, found = asyncio.run(_look(settings, read_back, is_all, limit))
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


async def _look(
    settings: Settings, read_back: bool, is_all: bool, limit: int
) -> tuple[Sequence[Entry], Sequence[Entry], Sequence[EntryUnreadable], Open]:
    """What was read back; what is open then, what of it cannot be read, and how much that is in all."""
    from ticketgate.streams.cli.redis import open_redis
    from ticketgate.streams.effect_ledger import open_ledger

    async with open_redis(settings) as redis:
        ledger = open_ledger(settings, redis)
        looked: list[Entry] = []
        if read_back:
            async with _reconciler(settings, redis, ledger, has_providers=True) as reconciler:
                if is_all:
                    looked = await reconciler.look_at(await ledger.held(limit))
                else:
                    looked = await reconciler.run_once(limit)
        found = await ledger.count_open()
        held, unreadable = await ledger.listed(limit)
        return looked, held, unreadable, found


async def _settle(settings: Settings, key: str, state: str, actor: str, reason: str) -> Entry:
    from ticketgate.agents.effects.executor import ProviderMissing
    from ticketgate.agents.effects.reconcile import NotHeld
    from ticketgate.codecs.receipt import EffectState
    from ticketgate.streams.cli.redis import open_redis
    from ticketgate.streams.effect_ledger import open_ledger

    async with open_redis(settings) as redis:
        ledger = open_ledger(settings, redis)
        # That nothing was done can be said only after the provider's settle time, which the funnel file has.
        async with _reconciler(settings, redis, ledger, has_providers=state != "committed") as reconciler:
            try:
                return await reconciler.settle(key, EffectState(state), actor=actor, reason=reason)
            except NotHeld as err:
                raise CommandError(f"{err}; `ticketgate reconcile` lists what is open") from err
            except ProviderMissing as err:
                raise CommandError(str(err)) from err


@asynccontextmanager
async def _reconciler(
    settings: Settings, redis: Redis, ledger: Ledger, *, has_providers: bool
) -> AsyncIterator[Reconciler]:
    """A reconciler that sends nothing; with the providers of the funnel file, where it needs them. Errors of the broker
    become `Unreachable` or `KafkaRefused`: what was settled is in the ledger then, and a worker announces it."""
    from ticketgate.agents.effects.executor import Executor
    from ticketgate.agents.effects.reconcile import Reconciler
    from ticketgate.agents.funnel.funnel_file import FunnelFileError, load_funnel_file, open_providers
    from ticketgate.streams.case_records import ReceiptWriter
    from ticketgate.streams.conditions import require_namespace
    from ticketgate.streams.effects_role import receipts_producer
    from ticketgate.streams.kafka_connection import connection_of
    from ticketgate.streams.reconciling import ReceiptSender
    from ticketgate.streams.records import output_topics
    from ticketgate.streams.scanning import broker_errors

    providers = None
    if has_providers:
        if settings.funnel is None:
            raise CommandError("no funnel file names the providers; set TICKETGATE_FUNNEL, or give --funnel")
        try:
            providers = open_providers(load_funnel_file(settings.funnel))
        except FunnelFileError as err:
            raise CommandError(str(err)) from err
    writer = ReceiptWriter(output_topics(settings), settings.max_record_bytes)
    sender = ReceiptSender(writer, lambda: receipts_producer(settings))

    is_ours = False

    async def require_ours() -> None:
        nonlocal is_ours
        if is_ours:
            return
        await require_namespace(settings, redis, "effects")
        is_ours = True

    async def announce(receipts: Sequence[EffectReceipt]) -> None:
        # A receipt on another cluster would count as told, and the ledger's own would lack it.
        await require_ours()
        await sender.announce(receipts)

    try:
        async with broker_errors(connection_of(settings)):
            if has_providers:
                await require_ours()
            yield Reconciler(
                ledger,
                Executor(ledger, providers or {}),
                judge_again=None,
                announce=announce,
                may_send=lambda _: False,
            )
    finally:
        await sender.close()
        if providers is not None:
            await providers.close()


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
