"""What a worker needs before it starts: a policy, a scorer, a broker and a Redis that answer.

Promise: what is wrong is one line that names the setting and the remedy, before anything was taken from a topic.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from redis.exceptions import NoPermissionError, RedisError
from ticketgate.agents.funnel.file.funnel_file import (
    FunnelFile,
    FunnelFileError,
    load_funnel_file,
    open_lookup,
    open_providers,
)
from ticketgate.agents.funnel.file.release import require_release
from ticketgate.agents.policy import Policy, PolicyError, load_policy
from ticketgate.agents.scoring import ScorerError
from ticketgate.agents.settling.console_keys import ConsoleKeysError
from ticketgate.codecs.values.redact import redact
from ticketgate.store.conditions import CLUSTER, CLUSTER_REMEDY
from ticketgate.store.connect import connect
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.kafka.broker_limits import require_within_limits
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.operations.review.keys_in_force import KeysInForce
from ticketgate.streams.roles.decide.model_decider import ModelDecider
from ticketgate.streams.roles.decide.scorers import require_scorer

REDIS_FORMS = "write it as redis://HOST:PORT/DB, or redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB"

STARTUP_ERRORS = (
    SettingsError,
    PolicyError,
    ScorerError,
    FunnelFileError,
    ConsoleKeysError,
    Unreachable,
)
"""What keeps a worker from starting; the message of each is made for people."""


def require_policy(settings: Settings) -> Policy:
    """The policy that the settings name. Raises `SettingsError` or `PolicyError`."""
    return load_policy(require_policy_path(settings))


def require_policy_path(settings: Settings) -> Path:
    """The policy's file. Raises `SettingsError`."""
    if settings.policy is None:
        raise SettingsError("TICKETGATE_POLICY", "not set", "name the policy file to decide by")
    return settings.policy


def needs_policy(settings: Settings) -> bool:
    """Whether a role of these settings judges by the policy."""
    return not {"decide", "settle"}.isdisjoint(settings.roles)


def needs_funnel(settings: Settings) -> bool:
    """Whether a role of these settings works by the funnel file."""
    return not {"propose", "effects"}.isdisjoint(settings.roles)


def require_keys_in_force(settings: Settings) -> KeysInForce:
    """The keys that settlements may be signed by, as their files say. Raises `SettingsError` or `ConsoleKeysError`."""
    if settings.console_keys is None:
        raise SettingsError(
            "TICKETGATE_CONSOLE_KEYS",
            "not set, and needed to tell who may settle",
            "name the file of the consoles' keys",
        )
    return KeysInForce(settings.console_keys)


def require_funnel(settings: Settings) -> FunnelFile:
    """The funnel file that the settings name, good for their roles. Raises `SettingsError` or `FunnelFileError`."""
    if settings.funnel is None:
        roles = " and ".join(role for role in settings.roles if role in ("propose", "effects"))
        raise SettingsError("TICKETGATE_FUNNEL", f"not set, and needed for {roles}", "name the funnel file")
    file = load_funnel_file(settings.funnel)
    if "propose" in settings.roles and file.catalogue is None:
        raise FunnelFileError(
            str(file.path), "no catalogue, and calls are judged by one", "add catalogue and lookup"
        )
    if "effects" in settings.roles and not file.tools:
        raise FunnelFileError(
            str(file.path), "no tools, so there is no effect to carry out", "add tools and their providers"
        )
    if "effects" in settings.roles:
        require_release(file)
    return file


async def require_what_a_funnel_names(settings: Settings) -> None:
    """The funnel file's variables and key files can be used; those of providers by who sends to them. Nobody is asked.

    Raises `SettingsError` or `FunnelFileError`.
    """
    file = require_funnel(settings)
    if file.lookup is not None:
        await open_lookup(file).close()
    if "effects" in settings.roles:
        await open_providers(file).close()


def open_decider(settings: Settings, telemetry: Telemetry) -> ModelDecider:
    """Policy and scorer, ready to decide. Raises `STARTUP_ERRORS`."""
    return ModelDecider(
        policy=require_policy(settings),
        scorer=require_scorer(settings),
        telemetry=telemetry,
        timeout_s=settings.scorer_timeout.total_seconds(),
    )


async def require_dependencies(settings: Settings) -> None:
    """Broker and Redis answer, and let us in. Raises `Unreachable`, or `SettingsError` where a setting must change."""
    # Both to their end: of two that fail, one would be told by asyncio with a traceback.
    outcomes = await asyncio.gather(
        require_within_limits(connection_of(settings), settings),
        require_redis(settings),
        return_exceptions=True,
    )
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


async def require_redis(settings: Settings) -> None:
    """Redis answers. Raises `Unreachable` or `SettingsError`."""
    try:
        redis = connect(settings.redis.get_secret_value(), timeout=settings.redis_timeout)
    except ValueError as err:
        raise SettingsError("TICKETGATE_REDIS", redact(str(err)), REDIS_FORMS) from err
    try:
        info = await redis.info()
        _refuse_kind(info)
    except NoPermissionError as err:
        raise SettingsError(
            "TICKETGATE_REDIS",
            str(err),
            "allow the worker's Redis user the commands and keys that `ticketgate manual runbook` lists",
        ) from err
    except (RedisError, OSError) as err:
        where = without_password(settings.redis.get_secret_value())
        raise Unreachable(
            "TICKETGATE_REDIS", f"no Redis answers at {where} ({err})", "start it, or set its URL"
        ) from err
    finally:
        await redis.aclose()


def _refuse_kind(info: Mapping[str, object]) -> None:
    if int(str(info.get("cluster_enabled", 0))):
        raise SettingsError("TICKETGATE_REDIS", CLUSTER, CLUSTER_REMEDY)
    # Valkey's name for it, and Redis'.
    if "sentinel" in (info.get("server_mode"), info.get("redis_mode")):
        raise SettingsError(
            "TICKETGATE_REDIS",
            "it leads to a Sentinel and not to Redis",
            "write redis+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB",
        )


def without_password(url: str) -> str:
    """Redis' URL without what is secret in it."""
    return redact(url).rpartition("://")[2].rpartition("@")[2].partition("?")[0]


def port_taken(settings: Settings, err: OSError) -> SettingsError:
    """What is said where nobody can listen on a port."""
    # asyncio names the address in its own words, and the system's are behind them.
    said = os.strerror(err.errno) if err.errno else str(err)
    where = f"{settings.web_bind}:{settings.web_port}"
    return SettingsError(
        "TICKETGATE_WEB_PORT", f"cannot listen on {where} ({said})", "set another port, or 0 for a free one"
    )
