"""From what a funnel file says to open look-ups and providers.

Promise: secrets are read here and nowhere else, from the environment or from key files. An adapter is loaded only if
the file names it. Nothing is sent yet; what was opened lives in one event loop until its `close`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from ticketgate.agents.effects.port import EffectPort
from ticketgate.agents.effects.states import States
from ticketgate.agents.funnel.file.funnel_specs import (
    FunnelFile,
    FunnelFileError,
    HttpLookup,
    HttpProvider,
    LookupSpec,
    RedisLookup,
    RedisProvider,
    SignedLookup,
)
from ticketgate.agents.funnel.lookups.sources import AuthoritySource, SourcedLookup, WorldSource
from ticketgate.agents.funnel.lookups.template import PLACES, Template
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.reading import MAX_WRITTEN_BYTES, read_file

if TYPE_CHECKING:
    from ticketgate.agents.funnel.lookups.signed import SignedRecords

Clock = Callable[[], Awaitable[datetime]]


class _Closing(Protocol):
    async def close(self) -> None: ...


class OpenProviders(Mapping[str, EffectPort]):
    """The effect ports by provider's name. `close` ends them all."""

    def __init__(self, ports: Mapping[str, EffectPort]) -> None:
        self._ports = dict(ports)

    def __getitem__(self, name: str) -> EffectPort:
        return self._ports[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ports)

    def __len__(self) -> int:
        return len(self._ports)

    async def close(self) -> None:
        """Close every port, also those behind one that cannot be closed. Raises what the first of these raised."""
        first: Exception | None = None
        for port in self._ports.values():
            try:
                await cast("_Closing", port).close()
            except Exception as err:  # noqa: BLE001 - raised below
                first = first or err
        if first is not None:
            raise first


async def _own_clock() -> datetime:
    return datetime.now(UTC)


def open_lookup(file: FunnelFile, *, now: Clock = _own_clock) -> SourcedLookup:
    """The look-up that the file declares. Raises FunnelFileError.

    now: the clock that signed records expire by, and nothing else goes by it. A worker gives Redis'; the process' own
    is for who has no other.
    """
    specs = file.lookup
    if specs is None:
        raise FunnelFileError(str(file.path), "no lookup", "add lookup.authority and lookup.world")
    with _refusing(file, "lookup.authority"):
        authority = _authority_source(file, specs.authority, now)
    with _refusing(file, "lookup.world"):
        world = _world_source(file, specs.world, now)
    return SourcedLookup(authority, world)


def open_providers(file: FunnelFile) -> OpenProviders:
    """The ports of the providers that the file declares, by name. Raises FunnelFileError."""
    ports: dict[str, EffectPort] = {}
    for name, spec in file.providers.items():
        with _refusing(file, f"providers.{name}"):
            ports[name] = _port(spec, file.states)
    return OpenProviders(ports)


class _Unusable(ValueError):
    """What the file names cannot be used: what, and the way out."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.remedy = remedy


@contextmanager
def _refusing(file: FunnelFile, place: str) -> Iterator[None]:
    """Say where in which file stands what cannot be used."""
    try:
        yield
    except ValueError as err:
        remedy = err.remedy if isinstance(err, _Unusable) else "mend it in the funnel file"
        raise FunnelFileError(str(file.path), f"{place}: {err}", remedy) from err


def _authority_source(file: FunnelFile, spec: LookupSpec, now: Clock) -> AuthoritySource:
    if isinstance(spec, HttpLookup):
        from ticketgate.agents.funnel.lookups.http import HttpAuthority

        return HttpAuthority(
            url=Template.read(spec.url, must=("actor_id",)),
            timeout_s=spec.timeout_s,
            max_bytes=spec.max_bytes,
            token=_secret(spec.token_env),
        )
    if isinstance(spec, RedisLookup):
        from ticketgate.agents.funnel.lookups.redis import RedisAuthority

        return RedisAuthority(
            url=_redis_url(spec),
            key=Template.read(spec.key, must=("actor_id",)),
            timeout_s=spec.timeout_s,
            max_bytes=spec.max_bytes,
        )
    from ticketgate.agents.funnel.lookups.signed import SignedAuthority

    return SignedAuthority(_records(file, spec, now))


def _world_source(file: FunnelFile, spec: LookupSpec, now: Clock) -> WorldSource:
    if isinstance(spec, HttpLookup):
        from ticketgate.agents.funnel.lookups.http import HttpWorld

        return HttpWorld(
            url=spec.url,
            timeout_s=spec.timeout_s,
            max_bytes=spec.max_bytes,
            token=_secret(spec.token_env),
        )
    if isinstance(spec, RedisLookup):
        from ticketgate.agents.funnel.lookups.redis import RedisWorld

        return RedisWorld(
            url=_redis_url(spec),
            key=Template.read(spec.key, may=(*PLACES, "values.")),
            timeout_s=spec.timeout_s,
            max_bytes=spec.max_bytes,
        )
    from ticketgate.agents.funnel.lookups.signed import SignedWorld

    return SignedWorld(_records(file, spec, now))


def _records(file: FunnelFile, spec: SignedLookup, now: Clock) -> SignedRecords:
    from ticketgate.agents.funnel.lookups.signed import SignedRecords

    keys = [_key(file.path.parent / name) for name in spec.key_files]
    if (secret := _secret(spec.key_env)) is not None:
        keys.append(secret.encode())
    return SignedRecords(
        keys=keys,
        algorithms=spec.algorithms,
        now=now,
        max_lifetime_s=spec.max_lifetime_s,
        issuer=spec.issuer,
        audience=spec.audience,
    )


def _port(spec: HttpProvider | RedisProvider, states: Mapping[str, States]) -> EffectPort:
    if isinstance(spec, RedisProvider):
        from ticketgate.agents.effects.adapters.redis import RedisPort

        return RedisPort(url=_redis_url(spec), prefix=spec.prefix, timeout_s=spec.timeout_s, states=states)
    from ticketgate.agents.effects.adapters.http import HttpPort

    return HttpPort(
        url=spec.url,
        read_back_url=spec.read_back_url,
        is_idempotent_by_key=spec.idempotent_by_key,
        settle_s=spec.settle_s or 0.0,
        timeout_s=spec.timeout_s,
        token=_secret(spec.token_env),
    )


def _key(path: Path) -> bytes:
    try:
        return read_file(
            path, kind=f"key file {path}", remedy="name a readable PEM file", max_bytes=MAX_WRITTEN_BYTES
        )
    except FileFault as err:
        raise _Unusable(err.what, err.remedy) from err


def _redis_url(spec: RedisLookup | RedisProvider) -> str:
    if spec.url is not None:
        return spec.url
    url = _secret(spec.url_env) or ""
    if not url.startswith(("redis://", "rediss://", "unix://")):
        # Not shown: it may carry the password.
        raise _Unusable(f"{spec.url_env} holds no URL of a Redis", "write it as redis://HOST:PORT/DB")
    return url


def _secret(variable: str | None) -> str | None:
    if variable is None:
        return None
    value = os.environ.get(variable, "").strip()
    if not value or not value.isprintable():
        raise _Unusable(f"the environment variable {variable} is not set to one line of text", "set it")
    return value
