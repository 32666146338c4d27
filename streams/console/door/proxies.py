"""A proxy that says who asks: believed only from a stated address, and with the secret.

Promise: a header that names a person counts for nothing from anywhere else, and that it was there is told.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from aiohttp import web
from pydantic import SecretStr
from ticketgate.streams.console.refusals import PageRefusal

log = logging.getLogger(__name__)

SECRET_HEADER = "X-Ticketgate-Proxy-Secret"  # noqa: S105 - the header's name
# A log that each request of a stranger writes to is filled by strangers.
TELL_EVERY_S = 60.0

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Said:
    """What is known of where a request comes from. client: whose it is. name: the person that the proxy names, None
    if none does. is_secure: the proxy says that it came by https."""

    client: str
    name: str | None = None
    is_secure: bool = False


class Proxies:
    """The stated ones; none: nobody's word is taken."""

    def __init__(self, networks: Iterable[str], *, secret: SecretStr | None, user_header: str) -> None:
        self._networks = [ipaddress.ip_network(each, strict=False) for each in networks]
        self._secret = b"" if secret is None else secret.get_secret_value().encode()
        self._header = user_header
        self._told_at = -TELL_EVERY_S

    def read(self, request: web.Request) -> Said:
        """What is so. Raises PageRefusal where a stated proxy names two people."""
        peer = peer_of(request)
        named = request.headers.getall(self._header, [])
        if not self._is_one(request, peer):
            if named or SECRET_HEADER in request.headers:
                self._tell(peer)
            return Said(client=str(peer))
        if len(named) > 1:
            raise PageRefusal(
                400,
                f"The proxy sent {self._header} more than once.",
                next_step="It has to take away what a browser sends before it adds its own.",
            )
        return Said(
            client=_forwarded_for(request) or str(peer),
            name=named[0].strip() if named else None,
            is_secure=_last(request, "X-Forwarded-Proto") == "https",
        )

    def _is_one(self, request: web.Request, peer: Address | None) -> bool:
        if not self._secret or peer is None or not any(peer in each for each in self._networks):
            return False
        given = request.headers.getall(SECRET_HEADER, [])
        return len(given) == 1 and hmac.compare_digest(
            given[0].encode("utf-8", "surrogateescape"), self._secret
        )

    def _tell(self, peer: Address | None) -> None:
        now = time.monotonic()
        if now - self._told_at < TELL_EVERY_S:
            return
        self._told_at = now
        log.warning(
            "a request from %s has %s or %s and is not believed: TICKETGATE_CONSOLE_PROXY does not name that address,"
            " or the secret is another than TICKETGATE_CONSOLE_PROXY_SECRET",
            peer,
            self._header,
            SECRET_HEADER,
        )


def peer_of(request: web.Request) -> Address | None:
    """The address that the connection comes from; None of what is none, such as a socket in the file system."""
    found = request.transport.get_extra_info("peername") if request.transport is not None else None
    try:
        address = ipaddress.ip_address(str(found[0]).partition("%")[0]) if found else None
    except (ValueError, IndexError):
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def _forwarded_for(request: web.Request) -> str | None:
    """The last one, which the proxy itself wrote."""
    try:
        return str(ipaddress.ip_address(_last(request, "X-Forwarded-For")))
    except ValueError:
        return None


def _last(request: web.Request, header: str) -> str:
    given = request.headers.getall(header, [])
    return given[-1].rpartition(",")[2].strip().lower() if given else ""
