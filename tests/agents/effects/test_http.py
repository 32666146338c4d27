"""The HTTP adapter against a real server: every status, and every way of losing an answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from aiohttp.helpers import calculate_timeout_when
from ticketgate.agents.effects.adapters.http import HttpPort
from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.ledger import Command, Entry
from ticketgate.agents.effects.port import (
    LATEST_START_S,
    CannotRead,
    Collision,
    Executed,
    Found,
    NotFound,
    Prepared,
    Refused,
    TimedOut,
)
from ticketgate.codecs.records.receipt import EffectState, EffectStatus
from ticketgate.streams.parts.ports import free_port

from ...support.effects import LANE, order

COMMAND = Command("pay", {"amount_gbp": "600.00"}, "key/1 ?#".replace(" ", "+"))
GOOD = {"id": "tr_1", "state": {"amount_gbp": "600.00"}}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """A server whose pages a test sets, and what it was asked."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.page: Handler = self._nothing

    async def serve(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.asked.append((request.method, request.raw_path, headers, await request.read()))
        return await self.page(request)

    def says(self, body: Any = None, status: int = 200, *, raw: bytes | None = None, **headers: str) -> None:
        """Answer so."""
        content = json.dumps(body).encode() if raw is None else raw

        async def page(request: web.Request) -> web.StreamResponse:
            return web.Response(body=content, status=status, headers=headers)

        self.page = page

    async def _nothing(self, request: web.Request) -> web.StreamResponse:
        raise AssertionError("nothing is served")


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    port = free_port()
    made = Server(port)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield made
    await runner.cleanup()


@pytest.fixture
async def port(server: Server) -> AsyncIterator[HttpPort]:
    made = new_port(server)
    yield made
    await made.close()


def new_port(server: Server, **changed: Any) -> HttpPort:
    defaults: dict[str, Any] = {
        "url": f"{server.url}/transfers",
        "read_back_url": f"{server.url}/by-key/{{key}}",
        "is_idempotent_by_key": True,
        "settle_s": 30.0,
        "timeout_s": 5.0,
        "token": "secret",
    }
    return HttpPort(**{**defaults, **changed})


async def test_a_command_goes_out_under_its_key_with_what_it_says(server: Server, port: HttpPort) -> None:
    server.says(GOOD, 201)

    found = await port.execute(Prepared(COMMAND))

    assert found == Executed("tr_1", {"amount_gbp": "600.00"}, is_replay=False)
    ((method, path, headers, body),) = server.asked
    assert (method, path) == ("POST", "/transfers")
    assert headers["idempotency-key"] == COMMAND.key
    assert headers["ticketgate-fingerprint"] == COMMAND.content
    assert headers["authorization"] == "Bearer secret"
    assert json.loads(body) == {"tool": "pay", "arguments": {"amount_gbp": "600.00"}}


async def test_a_replay_is_told(server: Server, port: HttpPort) -> None:
    server.says({**GOOD, "replayed": True, "more": 1})

    assert await port.execute(Prepared(COMMAND)) == Executed("tr_1", GOOD["state"], is_replay=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (422, {}, Collision()),
        (400, {"error": "bad\namount"}, Refused("status 400: bad amount")),
        (403, {"detail": "x" * 500}, Refused(f"status 403: {'x' * 120}… (500 characters)")),
        (404, {}, Refused("status 404")),
        *((status, {}, TimedOut()) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        *((status, GOOD, TimedOut()) for status in (202, 204, 206, 301, 302, 307, 308)),
    ],
)
async def test_each_status_means_one_thing(
    server: Server, port: HttpPort, status: int, body: Any, expected: object
) -> None:
    server.says(body, status, Location=f"{server.url}/elsewhere")

    assert await port.execute(Prepared(COMMAND)) == expected
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"not json",
        b'{"id": "a", "id": "b", "state": {}}',
        b'{"id": 1, "state": {}}',
        b'{"id": "", "state": {}}',
        b'{"id": "a", "state": []}',
        b'{"id": "a"}',
        b'{"id": "a", "state": {}, "replayed": 1}',
        b'{"id": "a", "state": {"n": NaN}}',
        b'["id"]',
    ],
)
async def test_a_success_that_cannot_be_read_is_an_unknown_outcome(
    server: Server, port: HttpPort, raw: bytes
) -> None:
    server.says(raw=raw)

    assert await port.execute(Prepared(COMMAND)) == TimedOut()
    if b"replayed" not in raw:
        assert await port.read_back("k") == CannotRead()


async def test_a_huge_answer_is_not_read(server: Server) -> None:
    port = new_port(server, max_answer_bytes=1_000)
    server.says({**GOOD, "more": "x" * 10_000})

    assert await port.execute(Prepared(COMMAND)) == TimedOut()
    assert await port.read_back("k") == CannotRead()
    await port.close()


async def test_an_answer_that_breaks_off_is_an_unknown_outcome(server: Server, port: HttpPort) -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "500"})
        await response.prepare(request)
        await response.write(b'{"id": "tr_1",')
        assert request.transport is not None
        request.transport.abort()
        return response

    server.page = page

    assert await port.execute(Prepared(COMMAND)) == TimedOut()
    assert await port.read_back("k") == CannotRead()


async def test_a_lost_answer_is_an_unknown_outcome_and_nothing_is_posted_again(
    server: Server, port: HttpPort
) -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    server.page = page

    assert await port.execute(Prepared(COMMAND)) == TimedOut()
    assert await port.read_back("k") == CannotRead()
    assert [each[0] for each in server.asked].count("POST") == 1


async def test_an_answer_that_comes_too_late_is_an_unknown_outcome(server: Server) -> None:
    port = new_port(server, timeout_s=0.2)
    is_over = asyncio.Event()

    async def page(request: web.Request) -> web.StreamResponse:
        await is_over.wait()
        return web.json_response(GOOD)

    server.page = page

    assert await port.execute(Prepared(COMMAND)) == TimedOut()
    assert await port.read_back("k") == CannotRead()
    is_over.set()
    await port.close()


async def test_a_server_that_is_away_is_an_unknown_outcome() -> None:
    port = new_port(Server(free_port()))

    assert await port.execute(Prepared(COMMAND)) == TimedOut()
    assert await port.read_back("k") == CannotRead()
    await port.close()


async def test_what_leaves_an_outcome_open_is_logged_with_its_reason(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"{server.url.replace('//', '//me:secret@')}/transfers?key=secret"
    port = new_port(server, url=url, token=None)
    for body, status in (({"id": "tr_1"}, 201), ({"error": "secret"}, 409)):
        server.says(body, status)
        await port.execute(Prepared(COMMAND))
    for body, status in (([], 200), (None, 503)):
        server.says(body, status)
        await port.read_back(COMMAND.key)
    await port.close()

    told = [record.getMessage() for record in caplog.records]

    shown = server.url.replace("//", "//********@")
    post = f"effect {COMMAND.key}: POST {shown}/transfers?******** leaves open whether it stands: "
    get = f"effect {COMMAND.key}: GET {server.url}/by-key/{{key}} leaves open whether it stands: "
    malformed = 'a body that is no {"id": text, "state": object} of the length allowed'
    assert told == [
        f"{post}status 201 with {malformed}",
        f"{post}status 409",
        f"{get}status 200 with {malformed}",
        f"{get}status 503",
    ]


async def test_reading_back_asks_for_the_key_and_nothing_else(server: Server, port: HttpPort) -> None:
    server.says(GOOD)

    assert await port.read_back("a/b?c#d%") == Found("tr_1", {"amount_gbp": "600.00"})

    ((method, path, headers, body),) = server.asked
    assert (method, path, body) == ("GET", "/by-key/a%2Fb%3Fc%23d%25", b"")
    assert headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("status", [201, 204, 301, 302, 400, 401, 403, 410, 429, 500, 503])
async def test_only_200_and_404_say_what_stands(server: Server, port: HttpPort, status: int) -> None:
    server.says(GOOD, status)
    assert await port.read_back("k") == CannotRead()

    server.says({}, 404)
    assert await port.read_back("k") == NotFound()


async def test_without_an_address_nothing_is_read_back(server: Server) -> None:
    port = new_port(server, read_back_url=None)

    assert await port.read_back("k") == CannotRead()
    assert server.asked == []


async def test_the_settle_time_counts_from_the_latest_end_of_the_time_out(server: Server) -> None:
    assert new_port(server, settle_s=30.0, timeout_s=6.0).settle_s == LATEST_START_S + 6.0 + 30.0
    assert new_port(server, settle_s=0.0, timeout_s=10.0).settle_s == LATEST_START_S + 10.0


async def test_no_request_outlives_the_timeout_that_the_settle_time_counts_on(server: Server) -> None:
    port = new_port(server, timeout_s=6.2)
    try:
        timeout = port._asker._opened().timeout
        in_time = calculate_timeout_when(100.5, 6.2, timeout.ceil_threshold)
    finally:
        await port.close()

    assert (timeout.total, in_time) == (6.2, 106.7)


@pytest.mark.parametrize("key", ["", ".", "..", "a b", "a\nb", "a\r\nX: 1", "ключ", "x" * 256, "\x7f"])
async def test_a_key_that_no_header_or_path_carries_is_refused_before_sending(
    server: Server, port: HttpPort, key: str
) -> None:
    assert isinstance(await port.prepare(Command("pay", {}, key)), Refused)
    assert isinstance(await port.prepare(COMMAND), Prepared)
    assert isinstance(await port.prepare(Command("pay", {"n": float("nan")}, "k")), Refused)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"url": "ftp://x/"}, "url is no URL"),
        ({"url": "http:///x"}, "url is no URL"),
        ({"read_back_url": "http://x/by-key"}, "needs {key}"),
        ({"read_back_url": "http://{key}/x"}, "in its host"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"settle_s": -1}, "settle_s"),
        ({"max_answer_bytes": 0}, "max_answer_bytes"),
    ],
)
async def test_a_configuration_that_cannot_work_is_refused_at_once(
    server: Server, changed: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        new_port(server, **changed)


async def test_an_effect_whose_answer_is_lost_is_found_by_reading_back(
    server: Server, port: HttpPort
) -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        return web.json_response({"id": "tr_1", "state": order().command.arguments})

    server.page = page
    executor = Executor(LedgerInMemory(), {"bank": port})
    (prepared,) = await executor.prepare([order()], token=LANE, claimed=1)
    assert isinstance(prepared, Entry)

    entry = await executor.carry_out(prepared, token=LANE)

    assert (entry.state, entry.status) == (EffectState.COMMITTED, EffectStatus.VERIFIED_BY_READBACK)
    assert [each[0] for each in server.asked] == ["POST", "GET"]
