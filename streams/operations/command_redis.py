"""Redis for commands: a connection that is closed, and errors that reach the person as one line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.asyncio import Redis
from redis.exceptions import RedisError
from ticketgate.store.connect import connect
from ticketgate.store.durability import ClaimsNotDurable
from ticketgate.store.ledger.entry_fields import EntryUnreadable
from ticketgate.store.servers import LookAgain
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import Unreachable


@asynccontextmanager
async def open_redis(settings: Settings) -> AsyncIterator[Redis]:
    """A connection to the settings' Redis. Raises `SettingsError`, and in it `Unreachable` for any error of Redis;
    and `CommandError` for an effect that this version cannot read."""
    try:
        redis = connect(settings.redis.get_secret_value(), timeout=settings.redis_timeout)
    except ValueError as err:
        raise SettingsError(
            "TICKETGATE_REDIS",
            str(err),
            "write it as redis://HOST:PORT/DB, or redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB",
        ) from err
    try:
        yield redis
    except LookAgain as err:
        raise CommandError(str(err)) from err
    except (RedisError, ClaimsNotDurable) as err:
        raise Unreachable("TICKETGATE_REDIS", str(err), "see what ails Redis, and try again") from err
    except EntryUnreadable as err:
        raise CommandError(str(err)) from err
    finally:
        await redis.aclose()
