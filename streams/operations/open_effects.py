"""The effects whose outcome is open, for who looks after a deployment: list them, read them back, settle one.

Promise: nothing is sent. What was settled is in the ledger, and a worker announces it if this process cannot.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from redis.asyncio import Redis
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.faults import ProviderMissing
from ticketgate.agents.effects.ledger import Entry, Open
from ticketgate.agents.effects.reconcile import NotHeld, Reconciler
from ticketgate.agents.funnel.file.funnel_file import FunnelFileError, load_funnel_file, open_providers
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.store.ledger.entry_fields import EntryUnreadable
from ticketgate.store.ledger.ledger import Ledger
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.scanning import broker_errors
from ticketgate.streams.lane.opening.conditions import require_namespace
from ticketgate.streams.lane.taking.records import output_topics
from ticketgate.streams.operations.command_redis import open_redis
from ticketgate.streams.roles.case_records import ReceiptWriter
from ticketgate.streams.roles.effects.effect_ledger import open_ledger
from ticketgate.streams.roles.effects.effects_role import receipts_producer
from ticketgate.streams.roles.effects.reconciling import ReceiptSender


async def look(
    settings: Settings, read_back: bool, is_all: bool, limit: int
) -> tuple[Sequence[Entry], Sequence[Entry], Sequence[EntryUnreadable], Open]:
    """What was read back; what is open then, what of it cannot be read, and how much that is in all."""
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


async def settle(settings: Settings, key: str, state: str, actor: str, reason: str) -> Entry:
    """Settle the effect of `key` by a person's word. Raises `CommandError`, `Unreachable` and `SettingsError`."""
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
    providers, file = None, None
    if has_providers:
        if settings.funnel is None:
            raise CommandError("no funnel file names the providers; set TICKETGATE_FUNNEL, or give --funnel")
        try:
            file = load_funnel_file(settings.funnel)
            providers = open_providers(file)
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
                Executor(ledger, providers or {}, states={} if file is None else file.states),
                judge_again=None,
                announce=announce,
                may_send=lambda _: False,
            )
    finally:
        await sender.close()
        if providers is not None:
            await providers.close()
