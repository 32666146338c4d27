"""What the settings leave open, said once at start: secrets in the clear, files that others read, open ports.

Promise: nothing here stops a start, for each may be meant; each is one line that names the setting and the remedy.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from ticketgate.agents.funnel.file.funnel_specs import (
    FunnelFile,
    HttpLookup,
    HttpProvider,
    RedisLookup,
    RedisProvider,
)
from ticketgate.streams.config.settings import CONFIG_VARIABLE, Settings

log = logging.getLogger(__name__)

_READ_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH


def tell_exposures(settings: Settings, funnel: FunnelFile | None) -> None:
    """Log what a worker of these settings does not promise, and what is open to others."""
    if settings.guarantee == "at_least_once":
        log.warning("guarantee is at_least_once: a crash between sending and committing repeats a batch")
    for each in exposures(settings, funnel):
        log.warning("%s", each)


def exposures(settings: Settings, funnel: FunnelFile | None = None) -> Iterator[str]:
    """A line for each thing that is open to others."""
    if not settings.web_keys and not is_loopback(settings.web_bind):
        yield f"everybody who reaches {settings.web_bind} may ask: TICKETGATE_WEB_KEYS is not set"
    if settings.kafka_security == "sasl_plaintext":
        yield (
            "TICKETGATE_KAFKA_SECURITY is sasl_plaintext: nothing on the way to Kafka is encrypted, the password"
            " or what proves it included; sasl_ssl encrypts it"
        )
    if _is_plain(settings.redis.get_secret_value(), "redis"):
        yield (
            "TICKETGATE_REDIS: nothing on the way to Redis is encrypted, a password included; rediss:// encrypts it"
        )
    kind, _, url = settings.scorer.partition(":")
    if kind == "remote" and _is_plain(url, "http"):
        what = "tickets" if settings.scorer_key is None else "tickets and TICKETGATE_SCORER_KEY"
        yield f"TICKETGATE_SCORER: {what} travel to another host unencrypted; https:// encrypts them"
    if funnel is not None:
        yield from _of_funnel(funnel)
    yield from _of_files(settings)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_plain(url: str, scheme: str) -> bool:
    """Whether a URL leads to another host without TLS."""
    try:
        parts = urlsplit(url)
        return parts.scheme == scheme and bool(parts.hostname) and not is_loopback(parts.hostname or "")
    except ValueError:
        return False


def _of_funnel(file: FunnelFile) -> Iterator[str]:
    parts: dict[str, object] = {f"providers.{name}": each for name, each in file.providers.items()}
    if file.lookup is not None:
        parts |= {"lookup.authority": file.lookup.authority, "lookup.world": file.lookup.world}
    for name, part in parts.items():
        if isinstance(part, HttpLookup | HttpProvider) and _is_plain(part.url, "http"):
            what = "what is asked" if part.token_env is None else f"what is asked and {part.token_env}"
            yield f"{file.path}: {name}: {what} travels to another host unencrypted; https:// encrypts it"
        if isinstance(part, RedisLookup | RedisProvider):
            url = part.url if part.url is not None else os.environ.get(part.url_env or "", "")
            if _is_plain(url, "redis"):
                yield f"{file.path}: {name}: nothing on the way to Redis is encrypted; rediss:// encrypts it"


def _of_files(settings: Settings) -> Iterator[str]:
    config = os.environ.get(CONFIG_VARIABLE)
    if config and _is_read_by_others(Path(config)):
        yield f"{CONFIG_VARIABLE}: others can read {config}, in which secrets may stand; chmod 600 it"
    if settings.kafka_key is not None and _is_read_by_others(settings.kafka_key):
        yield f"TICKETGATE_KAFKA_KEY: others can read {settings.kafka_key}; chmod 600 it"


def _is_read_by_others(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & _READ_BY_OTHERS)
    except OSError:
        return False
