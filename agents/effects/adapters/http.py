"""Effects over HTTP: POST under an idempotency key, GET of what stands under it.

    POST url              Idempotency-Key: KEY, Ticketgate-Fingerprint: SHA-256 of the canonical {arguments, tool}
                          {"tool": …, "arguments": {…}}
      200, 201            {"id": "…", "state": {…}, "replayed"?: true}     it stands
      422                 the key stands for another effect (the IETF draft of Idempotency-Key)
      408 409 425 429 5xx, redirects, anything else, no answer             not known
      other 4xx           refused; nothing was done, and never will be for this request
    GET read_back_url     200 {"id": "…", "state": {…}} · 404 nothing stands under the key · anything else: not known

Promise: what is not plainly said is not known, and a redirect says nothing. How it is asked: agents/http_asking.py.
"""

from __future__ import annotations

import logging
import re
from typing import Final
from urllib.parse import quote, urlsplit

from ticketgate.agents.effects.port import (
    LATEST_START_S,
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
from ticketgate.agents.http_asking import HttpAsker, NoAnswer
from ticketgate.codecs.values.limits import MAX_DEPTH
from ticketgate.codecs.values.malformed import shorten
from ticketgate.codecs.values.redact import redact
from ticketgate.codecs.values.strict import JsonValue, Malformed, decode, encode, is_within_depth

log = logging.getLogger(__name__)

KEY_HEADER: Final = "Idempotency-Key"
FINGERPRINT_HEADER: Final = "Ticketgate-Fingerprint"
MAX_ANSWER_BYTES: Final = 256 * 1024
# 409 is a request of the same key that is still at work, 425 one that came too early: neither says what becomes of it.
NOT_SAID: Final = frozenset({408, 409, 425, 429})
_MOST_SAID: Final = 120
# What a person who wrote the provider needs to hear: all else looks like a provider that is away.
_NOT_WELL_FORMED: Final = 'a body that is no {"id": text, "state": object} of the length allowed'
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
        # A request may leave so late, be on its way until its time is over, and take effect at the end of it.
        self._settle_s = LATEST_START_S + timeout_s + settle_s
        self._max_answer_bytes = max_answer_bytes
        self._asker = HttpAsker(timeout_s=timeout_s, max_bytes=max_answer_bytes, token=token)

    @property
    def is_idempotent_by_key(self) -> bool:
        """As the provider is declared."""
        return self._is_idempotent_by_key

    @property
    def settle_s(self) -> float:
        """The latest start, the time-out and the declared settle time: counted from when sending was written down."""
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
        headers = {KEY_HEADER: command.key, FINGERPRINT_HEADER: command.content}
        try:
            status, body = await self._asker.ask("POST", self._url, headers=headers, body=_body(command))
        except NoAnswer as err:
            _tell_unclear(command.key, "POST", self._url, str(err))
            return TimedOut()
        if status in (200, 201):
            executed = _executed(body, self._max_answer_bytes)
            if isinstance(executed, TimedOut):
                _tell_unclear(command.key, "POST", self._url, f"status {status} with {_NOT_WELL_FORMED}")
            return executed
        if status == 422:
            return Collision()
        if 400 <= status < 500 and status not in NOT_SAID:
            return Refused(f"status {status}{_said(body, self._max_answer_bytes)}")
        _tell_unclear(command.key, "POST", self._url, f"status {status}")
        return TimedOut()

    async def read_back(self, key: str) -> ReadBackResult:
        """One GET."""
        if self._read_back_url is None:
            return CannotRead()
        url = self._read_back_url.replace("{key}", quote(key, safe=""))
        try:
            status, body = await self._asker.ask("GET", url)
        except NoAnswer as err:
            _tell_unclear(key, "GET", self._read_back_url, str(err))
            return CannotRead()
        if status == 404:
            return NotFound()
        found = _standing(body, self._max_answer_bytes) if status == 200 else None
        if found is None:
            what = f" with {_NOT_WELL_FORMED}" if status == 200 else ""
            _tell_unclear(key, "GET", self._read_back_url, f"status {status}{what}")
            return CannotRead()
        return Found(found[0], found[1])

    async def close(self) -> None:
        """Close the connections."""
        await self._asker.close()


def _tell_unclear(key: str, method: str, url: str, why: str) -> None:
    log.warning("effect %s: %s %s leaves open whether it stands: %s", key, method, redact(url), why)


def _body(command: Command) -> bytes:
    return encode({"tool": command.tool, "arguments": dict(command.arguments)})


def _executed(body: bytes, max_bytes: int) -> ExecuteResult:
    """What a success says; one that cannot be read says no more than that something happened."""
    value = decode(body, max_bytes=max_bytes, is_our_own=True)
    standing = _standing(body, max_bytes)
    if standing is None or not isinstance(value, dict):
        return TimedOut()
    replayed = value.get("replayed", False)
    return Executed(*standing, replayed) if isinstance(replayed, bool) else TimedOut()


def _standing(body: bytes, max_bytes: int) -> tuple[str, dict[str, JsonValue]] | None:
    """The id and the state that an answer tells of; None if it is not well formed."""
    value = decode(body, max_bytes=max_bytes, is_our_own=True)
    if isinstance(value, Malformed) or not isinstance(value, dict):
        return None
    provider_id, state = value.get("id"), value.get("state")
    if not isinstance(provider_id, str) or not 0 < len(provider_id) <= 256 or not isinstance(state, dict):
        return None
    # What stands at a provider goes into our receipts, which must be read again.
    return (provider_id, state) if is_within_depth(state, MAX_DEPTH) else None


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
