"""One request to a System One server over HTTP, tried until it is known what became of it.

Promise: what `ask` gives is what the server said about this request; anything that may pass by itself was tried again,
with the pause that the server asked for, up to a ceiling. A 200 that is no answer (a page, an error object, half a
body) is a failure like any other. No redirect is followed, since it would carry the key and the ticket to someone else;
no response is read beyond a limit.
"""

import asyncio
import random
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from ticketgate.agents.scoring.scorer import ScorerError, ScorerUnavailable
from ticketgate.codecs.systemone.protocol import PATH
from ticketgate.codecs.values.redact import redact
from ticketgate.codecs.values.strict import JsonValue, Malformed, decode

SETTING: Final = "TICKETGATE_SCORER"

# 255 options in each of many questions are a few hundred kilobytes.
MAX_RESPONSE_BYTES: Final = 8 * 2**20
# As many requests to one server at once; a local one answers one after the other, a hosted one counts them.
MOST_AT_ONCE: Final = 8

TRIES: Final = 4
# The first pause and the longest, where the server asks for none.
PAUSE_FIRST_S: Final = 0.25
PAUSE_MOST_S: Final = 4.0

# 429 too many requests, 503 not now, 529 overloaded (the protocol's); 502 and 504 are a proxy before a server that is
# away.
BUSY: Final = frozenset({429, 502, 503, 504, 529})
# It is the configuration that is refused, whatever the ticket.
NOT_ADMITTED: Final = {
    401: "the key is refused: set TICKETGATE_SCORER_KEY",
    402: "the account has no means left",
    403: "the key is refused: set TICKETGATE_SCORER_KEY",
    407: "a proxy wants to be authenticated to",
}
_MOST_SAID = 300


# A server that asks for more is asked again after this: a Retry-After of years is a mistake, and nobody mends it here.
PAUSE_CEILING_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Answered:
    """Status 200, and the response, which has an object "answers" that is not empty."""

    response: Mapping[str, JsonValue]
    answers: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Refused:
    """The server refuses the request (4xx). `said` is its message in one line."""

    status: int
    said: str


@dataclass(frozen=True, slots=True)
class Faltered:
    """The server failed on it each time it was asked: 500, a connection that broke, no answer in time."""

    said: str


Outcome = Answered | Refused | Faltered


@dataclass(frozen=True, slots=True)
class _NoAnswer:
    """No answer in time."""

    said: str


@dataclass(frozen=True, slots=True)
class _Away:
    """No connection, or the server is busy."""

    said: str


class RemoteClient:
    """A session with one server. Lives in one event loop; `close` ends it."""

    def __init__(self, url: str, *, key: str | None, request_timeout_s: float) -> None:
        self._url = url
        self._timeout_s = request_timeout_s
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=MOST_AT_ONCE),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=request_timeout_s),
        )
        self._not_before = 0.0
        self._asked_to_wait_s = 0.0

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    async def ask(self, body: bytes, *, tries: int = TRIES) -> Outcome:
        """What the server says to this request, asked up to `tries` times.

        Raises ScorerUnavailable if it is away, overloaded or admits nobody. The caller limits the time that all
        tries together may take.
        """
        attempt = 0
        while True:
            await self._wait_as_asked()
            found = await self._once(body)
            # A second time-out is no chance, and each costs as much as the first.
            is_hung = isinstance(found, _NoAnswer) and attempt > 0
            if is_hung or attempt >= tries - 1:
                break
            if isinstance(found, (Answered, Refused)):
                return found
            pause = min(PAUSE_MOST_S, PAUSE_FIRST_S * 2**attempt)
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - only to spread
            attempt += 1
        match found:
            case _Away(said=said):
                pause = self._pause_left()
                wait = f"; it {self._told_wait(pause)}" if pause > self._timeout_s else ""
                raise ScorerUnavailable(f"{self._url}: {said}{wait}", retry_after_s=pause or None)
            case _NoAnswer(said=said):
                return Faltered(said)
            case _:
                return found

    async def _once(self, body: bytes) -> "Answered | Refused | Faltered | _NoAnswer | _Away":
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                content = await _limited(response)
        except (aiohttp.ClientConnectorError, ssl.SSLError) as err:
            return _Away(f"no connection ({_one_line(str(err))})")
        except TimeoutError:
            return _NoAnswer(f"no answer in {self._timeout_s:g} s")
        except (aiohttp.ClientError, OSError) as err:
            return Faltered(f"the connection broke ({type(err).__name__})")
        self._heed(response.headers)
        return self._judged(response.status, content)

    def _judged(self, status: int, content: bytes | None) -> "Answered | Refused | Faltered | _Away":
        if content is None:
            return Faltered("the response is too large")
        if status == 200:
            return _answered(content)
        said = message(content)
        if status in NOT_ADMITTED:
            raise ScorerUnavailable(f"{self._url} answers {status}: {NOT_ADMITTED[status]} ({said})")
        if status < 400:
            raise ScorerUnavailable(
                f"{self._url} answers {status}, where 200 is expected; no redirect is followed"
            )
        if status in BUSY:
            return _Away(f"status {status}: {said}")
        return Refused(status, said) if status < 500 else Faltered(f"status {status}: {said}")

    def _heed(self, headers: Mapping[str, str]) -> None:
        """Ask nothing more before the time that the server named; for all requests, since it counts them all."""
        if (pause := retry_after_s(headers)) is not None:
            self._asked_to_wait_s = pause
            until = asyncio.get_running_loop().time() + min(pause, PAUSE_CEILING_S)
            self._not_before = max(self._not_before, until)

    def _pause_left(self) -> float:
        return max(0.0, self._not_before - asyncio.get_running_loop().time())

    def _told_wait(self, pause: float) -> str:
        return f"asks to wait for {self._asked_to_wait_s:.0f} s, and is asked again in {pause:.0f} s"

    async def _wait_as_asked(self) -> None:
        pause = self._pause_left()
        if pause > self._timeout_s:
            raise ScorerUnavailable(f"{self._url} {self._told_wait(pause)}", retry_after_s=pause)
        if pause:
            await asyncio.sleep(pause)


def _answered(content: bytes) -> Answered | Faltered:
    """The answers, or why there are none. Who gets such a response asks again: it may be a proxy's, or a half one."""
    response = decode(content, max_bytes=MAX_RESPONSE_BYTES)
    if isinstance(response, Malformed):
        return Faltered(f"the response cannot be read: {response.reason}")
    answers = response.get("answers") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(answers, dict):
        said = _one_line(_said(response))
        return Faltered('the response has no object "answers"' + (f": {said}" if said else ""))
    return Answered(response, answers) if answers else Faltered("the response answers nothing")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """What `retry-after-ms` or `retry-after` asks, in seconds; None for a date or nonsense."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            pause = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if 0 <= pause < float("inf"):
            return pause
    return None


def message(body: bytes) -> str:
    """The message of an error in any of the shapes that servers use, in one line.

    Never what it repeats of the input: that would carry a ticket's text into reasons and logs.
    """
    value = decode(body, max_bytes=MAX_RESPONSE_BYTES)
    if isinstance(value, Malformed):
        return _one_line(body[: 4 * _MOST_SAID].decode("utf-8", "replace")) or "no message"
    return _one_line(_said(value)) or "no message"


def _said(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(_said(each) for each in value[:8])
    if not isinstance(value, dict):
        return ""
    for name in ("detail", "error", "message", "msg"):
        if said := _said(value.get(name)):
            place = value.get("loc")
            return f"{'.'.join(map(str, place))}: {said}" if isinstance(place, list) else said
    return ""


def _one_line(text: str) -> str:
    said = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return said if len(said) <= _MOST_SAID else f"{said[:_MOST_SAID]}…"


async def _limited(response: aiohttp.ClientResponse) -> bytes | None:
    """The body, or None if it is longer than is taken."""
    content = bytearray()
    async for part in response.content.iter_any():
        content += part
        if len(content) > MAX_RESPONSE_BYTES:
            response.close()
            return None
    return bytes(content)


def endpoint_of(url: str) -> str:
    """Where to post, for a server's root or the endpoint itself."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # What it says of the URL quotes the URL, and the password in it.
        raise _no_url(f"remote:{redact(url)} is no URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise _no_url("the remote scorer's URL must be http://HOST… or https://HOST…")
    if "@" in parts.netloc:
        raise _no_url("the remote scorer's URL holds a password; it belongs into TICKETGATE_SCORER_KEY")
    if parts.query or parts.fragment:
        raise _no_url("the remote scorer's URL has a query or fragment")
    root = url.rstrip("/")
    return root if root.endswith(PATH) else root + PATH


def _no_url(what: str) -> ScorerError:
    return ScorerError(what, remedy="write it as remote:https://HOST:PORT", setting=SETTING)
