"""Addresses, URLs and paths in settings: what cannot be right is refused by its setting, before anybody connects.

Promise: a fault's words never hold a part of a password, whatever was written where: of a URL nothing is repeated but
its scheme and its option's name. Nothing is asked of the network or the disk.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

MOST_PORT = 65_535
_QUOTES = "\"'`"
# What resolvers take, with the underscores of container networks; at most 253 characters.
_HOST = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?"
)
_PLAIN_SCHEMES = ("redis", "rediss")
_SENTINEL_SCHEMES = ("redis+sentinel", "rediss+sentinel")


def _refuse_quotes(text: str, what: str) -> None:
    if text[:1] in _QUOTES or text[-1:] in _QUOTES:
        raise ValueError(
            f"{what} begins or ends with a quotation mark, which is part of it here; leave it out"
        )
    if text != text.strip():
        raise ValueError(f"{what} begins or ends with a blank; leave it out")


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _HOST.fullmatch(text) is not None
    return True


def _require_port(text: str) -> None:
    # Nothing but digits: int() takes blanks, signs and underscores too. Never told: it may be part of a password.
    if not (
        text.isascii() and text.isdigit() and len(text) <= len(str(MOST_PORT)) and 0 < int(text) <= MOST_PORT
    ):
        raise ValueError(f"the port must be a number from 1 to {MOST_PORT}")


def _require_server(text: str) -> None:
    """`host`, `host:port` or `[address]:port`."""
    if "://" in text:
        raise ValueError("a server is HOST:PORT, without a scheme")
    if "@" in text:
        raise ValueError("a server is HOST:PORT; user and password have settings of their own")
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError("an IPv6 address is written [ADDRESS]:PORT")
        port = rest[1:] if rest else None
    else:
        host, colon, after = text.partition(":")
        if ":" in after:
            raise ValueError("names one port too many; an IPv6 address is written [ADDRESS]:PORT")
        port = after if colon else None
    if not _is_host(host):
        raise ValueError("names no host before the port" if not host else "names a host that cannot be one")
    if port is not None:
        _require_port(port)


def _servers(text: str) -> str:
    """`host:port,host:port`: aiokafka would raise whatever int() does, and long after."""
    _refuse_quotes(text, "the address")
    for number, each in enumerate(text.split(","), 1):
        try:
            if not each.strip():
                raise ValueError("is empty")
            _require_server(each.strip())
        except ValueError as err:
            raise ValueError(f"server {number} of the list: {err}" if "," in text else str(err)) from err
    return text


Servers = Annotated[str, AfterValidator(_servers)]


def _redis_url(secret: SecretStr) -> SecretStr:
    url = secret.get_secret_value()
    parts = _redis_parts(url)
    if parts.scheme in _SENTINEL_SCHEMES:
        _require_sentinels(url, parts.netloc)
    elif parts.scheme in _PLAIN_SCHEMES:
        _require_redis_server(parts)
    elif not parts.path:
        raise ValueError("must name a socket, as in unix:///run/redis.sock")
    if parts.query and parts.scheme not in _SENTINEL_SCHEMES:
        _require_options(url)
    return secret


def _redis_parts(url: str) -> SplitResult:
    _refuse_quotes(url, "the URL")
    scheme = url.partition("://")[0] if "://" in url else ""
    if scheme not in (*_PLAIN_SCHEMES, *_SENTINEL_SCHEMES, "unix"):
        raise ValueError("must begin with redis://, rediss://, unix:// or redis+sentinel://")
    from ticketgate.store.sentinel import split_url

    try:
        parts = split_url(url)
    except ValueError as err:
        raise ValueError("is no URL; write what is special in a password as %40 for @, %2F for /") from err
    # An unescaped / ? or # in a password ends the host's part before the host: the client would go to 127.0.0.1.
    if parts.fragment or "@" in parts.path + parts.query or "[" in parts.netloc.rpartition("@")[0]:
        raise ValueError(
            "has a character in its password that ends it; write %40 for @, %2F for /, %23 for #, %3F for ?"
        )
    if any(char.isspace() or char in "<>\\^{|}" for char in url):
        raise ValueError("holds a blank or a character that no URL holds; escape it with %")
    return parts


def _require_redis_server(parts: SplitResult) -> None:
    where = parts.netloc.rpartition("@")[2]
    if not where:
        raise ValueError("names no host")
    _require_server(where)
    if parts.path.strip("/") and not parts.path.strip("/").isdigit():
        raise ValueError("must have the number of a database after the host, or nothing")


def _require_sentinels(url: str, netloc: str) -> None:
    from ticketgate.store.sentinel import SentinelUrl

    for each in netloc.rpartition("@")[2].split(","):
        if not each:
            raise ValueError("names a Sentinel without a host")
        _require_server(each)
    SentinelUrl.parse(url)


def _require_options(url: str) -> None:
    """Raises ValueError for an option that the client does not know, by making a connection that is never opened."""
    from redis.asyncio.connection import ConnectionPool

    try:
        ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
    except TypeError as err:
        named = re.search(r"argument '([a-z_]{1,40})'", str(err))
        raise ValueError(f"has an option {named[1] if named else 'that'} the client does not know") from None
    except Exception as err:  # noqa: BLE001 - whatever a client says of its own options, in words that quote none
        named = re.search(r"'([a-z_]{1,40})'", str(err))
        raise ValueError(f"has an option with a wrong value{': ' + named[1] if named else ''}") from None


RedisUrl = Annotated[SecretStr, AfterValidator(_redis_url)]


def _bind(text: str) -> str:
    _refuse_quotes(text, "the address")
    if not _is_host(text):
        raise ValueError(
            "must be an address to listen on, such as 127.0.0.1 or 0.0.0.0; the port is a setting of its own"
        )
    return text


Bind = Annotated[str, AfterValidator(_bind)]


def _scorer(text: str) -> str:
    kind, _, url = text.partition(":")
    if kind != "remote":
        return text
    _refuse_quotes(url, "the URL")
    try:
        parts = urlsplit(url)
        where = parts.netloc.rpartition("@")[2]
    except ValueError as err:
        raise ValueError("remote: is followed by no URL") from err
    if parts.scheme not in ("http", "https") or not where:
        raise ValueError("remote: is followed by http://HOST… or https://HOST…")
    _require_server(where)
    return text


ScorerName = Annotated[str, AfterValidator(_scorer)]


def _unset_if_empty(value: object) -> object:
    """`NAME=` in a shell or a compose file is meant as unset; a path would be the working directory."""
    return None if value == "" else value


def _path(path: Path | None) -> Path | None:
    if path is not None:
        _refuse_quotes(str(path), "the path")
        if "\0" in str(path):
            raise ValueError("holds a NUL, which no path does")
    return path


OptionalPath = Annotated[Path | None, BeforeValidator(_unset_if_empty), AfterValidator(_path)]
