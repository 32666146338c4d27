"""Effects over HTTP: POST under an idempotency key, GET of what stands under it.

    POST url              Idempotency-Key: KEY, Ticketgate-Fingerprint: SHA-256 of the canonical {arguments, tool}
                          {"tool": …, "arguments": {…}}
      200, 201            {"id": "…", "state": {…}, "replayed"?: true}     it stands
      422                 the key stands for another effect (the IETF draft of Idempotency-Key)
      408 409 425 429 5xx, redirects, anything else, no answer             not known
      other 4xx           refused; nothing was done, and never will be for this request
    GET read_back_url     200 {"id": "…", "state": {…}} · 404 nothing stands under the key · anything else: not known

Promise: what is not plainly said is not known. No redirect is followed, since it would carry the token and the effect
to someone else; no answer is read beyond a limit; nothing is sent twice by itself. Source: DESIGN section 7.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

import aiohttp
from ticketgate.agents.effects.port import (
    CannotRead,
    Collision,
    Command,
    Executed,
    ExecuteResult,
    Found,
    NotFound,
    Prepared,
    ReadBackResult,
    Refused,
    TimedOut,
)
from ticketgate.codecs.malformed import shorten
from ticketgate.codecs.strict import JsonValue, Malformed, decode, encode
from yarl import URL

KEY_HEADER: Final = "Idempotency-Key"
FINGERPRINT_HEADER: Final = "Ticketgate-Fingerprint"
MAX_ANSWER_BYTES: Final = 256 * 1024
# 409 is a request of the same key that is still at work, 425 one that came too early: neither says what becomes of it.
NOT_SAID: Final = frozenset({408, 409, 425, 429})
_MOST_SAID: Final = 120
# What every server takes as a header's value, and keeps as it is.
_KEY = re.compile(r"[!-~]{1,255}", re.ASCII)


class HttpPort:
    """A provider over HTTP. Lives in one event loop; `close` ends its connections.

    read_back_url: with {key} in it; None where nothing can be read back. settle_s: for how long after an answer, or
    after its time-out, what stands may yet be missing from what read_back_url shows. token: sent as a bearer's.
    Raises ValueError for a configuration that cannot work.
    """

    def __init__(
        self,
        *,
        url: str,
        read_back_url: str | None,
        is_idempotent_by_key: bool,
        settle_s: float,
        timeout_s: float,
        token: str | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        _check_url("url", url)
        if read_back_url is not None:
            _check_url("read_back_url", read_back_url)
            if read_back_url.count("{key}") != 1:
                raise ValueError("read_back_url needs {key}, once: where the idempotency key stands")
        if not timeout_s > 0:
            raise ValueError(f"timeout_s is {timeout_s:g}; an answer takes more than no time")
        if not settle_s >= 0:
            raise ValueError(f"settle_s is {settle_s:g}; it is 0 or more seconds")
        if max_answer_bytes < 1:
            raise ValueError(f"max_answer_bytes is {max_answer_bytes}; no answer is so short")
        self._url = url
        self._read_back_url = read_back_url
        self._is_idempotent_by_key = is_idempotent_by_key
        # A request may be on its way until its time is over, and take effect at the end of it.
        self._settle_s = timeout_s + settle_s
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._headers = {"Accept": "application/json", "Cache-Control": "no-cache"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._session: aiohttp.ClientSession | None = None

    @property
    def is_idempotent_by_key(self) -> bool:
        """As the provider is declared."""
        return self._is_idempotent_by_key

    @property
    def settle_s(self) -> float:
        """The time-out and the declared settle time: counted from when sending began."""
        return self._settle_s

    async def prepare(self, command: Command) -> Prepared | Refused:
        """Whether the key can stand in a header and a URL, and the arguments in JSON."""
        if _KEY.fullmatch(command.key) is None or not command.key.strip("."):
            # Dots alone would climb in the read-back URL.
            return Refused("the key is not 1 to 255 printable ASCII characters, or nothing but dots")
        try:
            _body(command)
        except ValueError as err:
            return Refused(f"the arguments cannot be written: {err}")
        return Prepared(command)

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        """One POST. Whatever is not a plain answer is `TimedOut`."""
        command = prepared.command
        headers = {
            KEY_HEADER: command.key,
            FINGERPRINT_HEADER: command.content,
            "Content-Type": "application/json",
        }
        answered = await self._ask("POST", self._url, headers, _body(command))
        if answered is None:
            return TimedOut()
        status, body = answered
        if status in (200, 201):
            return _executed(body, self._max_answer_bytes)
        if status == 422:
            return Collision()
        if 400 <= status < 500 and status not in NOT_SAID:
            return Refused(f"status {status}{_said(body, self._max_answer_bytes)}")
        return TimedOut()

    async def read_back(self, key: str) -> ReadBackResult:
        """One GET."""
        if self._read_back_url is None:
            return CannotRead()
        url = self._read_back_url.replace("{key}", quote(key, safe=""))
        answered = await self._ask("GET", url, {}, None)
        if answered is None:
            return CannotRead()
        status, body = answered
        if status == 404:
            return NotFound()
        found = _standing(body, self._max_answer_bytes) if status == 200 else None
        return CannotRead() if found is None else Found(found[0], found[1])

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _ask(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> tuple[int, bytes] | None:
        """Status and body; None where no whole answer came."""
        try:
            async with self._opened().request(
                method, URL(url, encoded=True), headers=headers, data=body, allow_redirects=False
            ) as response:
                content = bytearray()
                async for part in response.content.iter_any():
                    content += part
                    if len(content) > self._max_answer_bytes:
                        response.close()
                        return None
                return response.status, bytes(content)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # A connection for each request: on one that is kept, an answer that came twice would answer the next.
                # aiohttp asks a GET again by itself, which is harmless; a POST never.
                connector=aiohttp.TCPConnector(force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=self._timeout_s),
            )
        return self._session


def _body(command: Command) -> bytes:
    return encode({"tool": command.tool, "arguments": dict(command.arguments)})


def _executed(body: bytes, max_bytes: int) -> ExecuteResult:
    """What a success says; one that cannot be read says no more than that something happened."""
    value = decode(body, max_bytes=max_bytes)
    standing = _standing(body, max_bytes)
    if standing is None or not isinstance(value, dict):
        return TimedOut()
    replayed = value.get("replayed", False)
    return Executed(*standing, replayed) if isinstance(replayed, bool) else TimedOut()


def _standing(body: bytes, max_bytes: int) -> tuple[str, dict[str, JsonValue]] | None:
    """The id and the state that an answer tells of; None if it is not well formed."""
    value = decode(body, max_bytes=max_bytes)
    if isinstance(value, Malformed) or not isinstance(value, dict):
        return None
    provider_id, state = value.get("id"), value.get("state")
    if not isinstance(provider_id, str) or not 0 < len(provider_id) <= 256 or not isinstance(state, dict):
        return None
    return provider_id, state


def _said(body: bytes, max_bytes: int) -> str:
    """What a refusal says for itself, in one line, or nothing."""
    value = decode(body, max_bytes=max_bytes)
    if isinstance(value, dict):
        for name in ("error", "detail", "message", "reason", "title"):
            said = value.get(name)
            if isinstance(said, str) and said.strip():
                shown = "".join(char if char.isprintable() else " " for char in said)
                return f": {shorten(' '.join(shown.split()), _MOST_SAID)}"
    return ""


def _check_url(name: str, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{name} is no URL; write it as http://HOST:PORT/PATH")
    if "{" in parts.netloc:
        raise ValueError(f"{name} has a place in its host; a record must not choose whom we ask")
