"""From what a funnel file says to open look-ups and providers.

Promise: secrets are read here and nowhere else, from the environment or from key files. An adapter is loaded only if
the file names it. Nothing is sent yet; what was opened lives in one event loop until its `close`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, cast

from ticketgate.agents.effects.port import EffectPort
from ticketgate.agents.funnel.funnel_specs import (
    FunnelFile,
    FunnelFileError,
    HttpLookup,
    HttpProvider,
    LookupSpecs,
    RedisLookup,
    RedisProvider,
    SignedLookup,
)
from ticketgate.agents.funnel.lookups.sources import AuthoritySource, SourcedLookup, WorldSource
from ticketgate.agents.funnel.lookups.template import PLACES, Template

if TYPE_CHECKING:
    from ticketgate.agents.funnel.lookups.signed import SignedRecords

Clock = Callable[[], datetime]


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


def _utc_now() -> datetime:
    return datetime.now(UTC)


def open_lookup(file: FunnelFile, *, now: Clock = _utc_now) -> SourcedLookup:
    """The look-up that the file declares. now: the clock that signed records expire by. Raises FunnelFileError."""
    specs = file.lookup
    if specs is None:
        raise FunnelFileError(str(file.path), "no lookup", "add lookup.authority and lookup.world")
    return SourcedLookup(_authority_source(file, specs, now), _world_source(file, specs, now))


def open_providers(file: FunnelFile) -> OpenProviders:
    """The ports of the providers that the file declares, by name. Raises FunnelFileError."""
    return OpenProviders({name: _port(file, name, spec) for name, spec in file.providers.items()})


def _authority_source(file: FunnelFile, specs: LookupSpecs, now: Clock) -> AuthoritySource:
    spec, place = specs.authority, "lookup.authority"
    if isinstance(spec, HttpLookup):
        from ticketgate.agents.funnel.lookups.http import HttpAuthority

        return HttpAuthority(
            url=Template.read(spec.url, must=("actor_id",)),
            timeout_s=spec.timeout_s,
            max_bytes=spec.max_bytes,
            token=_secret(file, place, spec.token_env),
        )
    if isinstance(spec, RedisLookup):
        from ticketgate.agents.funnel.lookups.redis import RedisAuthority

        return RedisAuthority(
            url=_redis_url(file, place, spec),
            key=Template.read(spec.key, must=("actor_id",)),
            timeout_s=spec.timeout_s,
            max_bytes=spec.max_bytes,
        )
    from ticketgate.agents.funnel.lookups.signed import SignedAuthority

    return SignedAuthority(_records(file, place, spec, now))


def _world_source(file: FunnelFile, specs: LookupSpecs, now: Clock) -> WorldSource:
    spec, place = specs.world, "lookup.world"
    if isinstance(spec, HttpLookup):
        from ticketgate.agents.funnel.lookups.http import HttpWorld

        return HttpWorld(
            url=spec.url,
            timeout_s=spec.timeout_s,
            max_bytes=spec.max_bytes,
            token=_secret(file, place, spec.token_env),
        )
    if isinstance(spec, RedisLookup):
        from ticketgate.agents.funnel.lookups.redis import RedisWorld

        return RedisWorld(
            url=_redis_url(file, place, spec),
            key=Template.read(spec.key, may=(*PLACES, "values.")),
            timeout_s=spec.timeout_s,
            max_bytes=spec.max_bytes,
        )
    from ticketgate.agents.funnel.lookups.signed import SignedWorld

    return SignedWorld(_records(file, place, spec, now))


def _records(file: FunnelFile, place: str, spec: SignedLookup, now: Clock) -> SignedRecords:
    try:
        from ticketgate.agents.funnel.lookups.signed import SignedRecords, UnusableKey
    except ModuleNotFoundError as err:
        raise _refused(file, place, f"{err.name} is not installed", "install ticketgate anew") from err
    keys = [_key(file, place, name) for name in spec.key_files]
    if (secret := _secret(file, place, spec.key_env)) is not None:
        keys.append(secret.encode())
    try:
        return SignedRecords(
            keys=keys,
            algorithms=spec.algorithms,
            now=now,
            max_lifetime_s=spec.max_lifetime_s,
            issuer=spec.issuer,
            audience=spec.audience,
        )
    except UnusableKey as err:
        raise _refused(file, place, str(err), "name a key of the listed algorithms") from err


def _port(file: FunnelFile, name: str, spec: HttpProvider | RedisProvider) -> EffectPort:
    place = f"providers.{name}"
    if isinstance(spec, RedisProvider):
        from ticketgate.agents.effects.redis import RedisPort

        return RedisPort(url=_redis_url(file, place, spec), prefix=spec.prefix)
    from ticketgate.agents.effects.http import HttpPort

    return HttpPort(
        url=spec.url,
        read_back_url=spec.read_back_url,
        is_idempotent_by_key=spec.idempotent_by_key,
        settle_s=spec.settle_s or 0.0,
        timeout_s=spec.timeout_s,
        token=_secret(file, place, spec.token_env),
    )


def _key(file: FunnelFile, place: str, name: str) -> bytes:
    path = file.path.parent / name
    try:
        return path.read_bytes()
    except OSError as err:
        what = f"the key file {path} cannot be read: {err.strerror or err}"
        raise _refused(file, place, what, "name a readable PEM file") from err


def _redis_url(file: FunnelFile, place: str, spec: RedisLookup | RedisProvider) -> str:
    if spec.url is not None:
        return spec.url
    url = _secret(file, place, spec.url_env) or ""
    if not url.startswith(("redis://", "rediss://", "unix://")):
        # Not shown: it may carry the password.
        raise _refused(
            file, place, f"{spec.url_env} holds no URL of a Redis", "write it as redis://HOST:PORT/DB"
        )
    return url


def _secret(file: FunnelFile, place: str, variable: str | None) -> str | None:
    if variable is None:
        return None
    value = os.environ.get(variable, "")
    if not value.strip() or not value.isprintable():
        raise _refused(
            file, place, f"the environment variable {variable} is not set to one line of text", "set it"
        )
    return value.strip()


def _refused(file: FunnelFile, place: str, what: str, remedy: str) -> FunnelFileError:
    return FunnelFileError(str(file.path), f"{place}: {what}", remedy)
