"""/readyz of several processes, and /v1 put to whichever is free."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.process.supervising.asking import Door
from ticketgate.streams.process.supervising.keeper import Keeper
from ticketgate.streams.process.supervising.pages import Pages, Place, told_of_all
from ticketgate.streams.process.web.server import WebServer

KEPT = {"pid": 7, "restarts": 0}
STATE = {
    "ready": True,
    "waiting": {},
    "guarantee": "exactly_once",
    "policy": {"hash": "a"},
    "lanes": ["tickets:0"],
}


class Kept(Keeper):
    """A keeper of a process that is there, or not."""

    def __init__(self, name: str, pid: int | None) -> None:
        async def never() -> Any:
            raise AssertionError

        super().__init__(name, start=never)
        self.found_pid, self.starts = pid, 1
        self.state = "runs" if pid is not None else "waits"

    @property
    def pid(self) -> int | None:
        return self.found_pid


class Fake:
    """The pages of one process, on a socket."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.asked: list[tuple[str, str, bytes]] = []
        self.hosts: list[str] = []
        self.answer: Callable[[web.Request], Awaitable[web.StreamResponse]] = self._answer
        self.state: dict[str, Any] = dict(STATE)
        self.records = 3

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"by": self.socket.stem}, headers={"X-Own": "kept"})

    async def _v1(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.method, request.path_qs, await request.read()))
        self.hosts.append(request.headers["Host"])
        return await self.answer(request)

    async def _readyz(self, _: web.Request) -> web.Response:
        return web.json_response(self.state, status=200 if self.state["ready"] else 503)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            text="# TYPE ticketgate_ready gauge\nticketgate_ready 1\n# TYPE ticketgate_decisions_total counter\n"
            f"ticketgate_decisions_total {self.records}\n"
        )

    @property
    def server(self) -> WebServer:
        routes = [
            web.get("/readyz", self._readyz),
            web.get("/metrics", self._metrics),
            web.route("*", "/{any:.*}", self._v1),
        ]
        return WebServer(routes, bind="", port=0, socket=self.socket)


class Port:
    """The port of two fake processes."""

    def __init__(self, fakes: list[Fake], places: list[Place], pages: Pages, url: str) -> None:
        self.fakes, self.places, self.pages, self.url = fakes, places, pages, url

    async def ask(self, method: str, path: str, **options: Any) -> tuple[int, dict[str, str], bytes]:
        """A request as a caller makes it."""
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.url + path, **options) as answer,
        ):
            return answer.status, {**answer.headers}, await answer.read()


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[Port]:
    """Two processes behind a port."""
    fakes = [Fake(tmp_path / f"{n}.sock") for n in (1, 2)]
    places = [Place(Kept(f"worker {n}", n), Door(fake.socket)) for n, fake in enumerate(fakes, start=1)]
    pages = Pages(places, Settings.model_validate({"web_max_bytes": 1024, "web_bytes_at_once": 1024}))
    server = WebServer([*pages.health, *pages.api], bind="127.0.0.1", port=0)
    async with AsyncExitStack() as stack:
        for each in (*(fake.server for fake in fakes), server):
            await each.start()
            stack.push_async_callback(each.stop)
        stack.push_async_callback(pages.close)
        yield Port(fakes, places, pages, f"http://{server.address}")


async def test_a_request_is_passed_on_as_it_came_and_so_is_its_answer(port: Port) -> None:
    status, headers, body = await port.ask(
        "POST", "/v1/systemone?x=1", data=b"{}", headers={"Host": "desk.example"}
    )

    assert (status, json.loads(body), headers["X-Own"]) == (200, {"by": "1"}, "kept")
    assert port.fakes[0].asked == [("POST", "/v1/systemone?x=1", b"{}")]
    assert port.fakes[0].hosts == ["desk.example"]


async def test_the_process_with_least_to_answer_is_asked(port: Port) -> None:
    entered, released = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        entered.set()
        await released.wait()
        return web.json_response({"by": "slow"})

    port.fakes[0].answer = slow
    first = asyncio.create_task(port.ask("GET", "/v1/models"))
    await entered.wait()

    _, _, body = await port.ask("GET", "/v1/models")

    assert json.loads(body) == {"by": "2"}
    released.set()
    assert json.loads((await first)[2]) == {"by": "slow"}


async def test_a_request_whose_process_ends_is_put_to_another(port: Port) -> None:
    async def dies(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    port.fakes[0].answer = dies

    status, _, body = await port.ask("POST", "/v1/systemone", data=b"{}")

    assert (status, json.loads(body)) == (200, {"by": "2"})


async def test_without_a_process_the_port_says_so(port: Port) -> None:
    for place in port.places:
        place.keeper.found_pid = None  # type: ignore[attr-defined]

    status, headers, body = await port.ask("POST", "/v1/systemone", data=b"{}")

    assert status == 503
    assert headers["Retry-After"] == "1"
    assert b"no worker process answers" in body


async def test_a_body_that_is_too_large_reaches_no_process(port: Port) -> None:
    status, _, _ = await port.ask("POST", "/v1/systemone", data=b"x" * 1025)

    assert status == 413
    assert not port.fakes[0].asked


async def test_all_bodies_together_have_the_limit_of_one_port(port: Port) -> None:
    entered, released = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        entered.set()
        await released.wait()
        return web.Response()

    port.fakes[0].answer = slow
    first = asyncio.create_task(port.ask("POST", "/v1/systemone", data=b"x" * 600))
    await entered.wait()

    status, _, body = await port.ask("POST", "/v1/systemone", data=b"x" * 600)

    assert status == 503
    assert b"overloaded" in body
    released.set()
    await first


async def test_the_port_is_ready_when_each_process_is(port: Port) -> None:
    assert (await port.ask("GET", "/readyz"))[0] == 200

    port.fakes[1].state |= {"ready": False, "waiting": {"redis": "no answer"}}

    status, _, body = await port.ask("GET", "/readyz")
    assert status == 503
    assert json.loads(body)["waiting"] == {"worker 2: redis": "no answer"}
    assert (await port.ask("GET", "/healthz"))[0] == 200


async def test_metrics_are_asked_for_when_they_are_asked_for(port: Port) -> None:
    port.fakes[1].records = 39

    _, _, body = await port.ask("GET", "/metrics")

    assert b"ticketgate_decisions_total 42.0" in body
    assert b'ticketgate_process_up{process="worker 1"} 1.0' in body
    assert b'ticketgate_process_restarts_total{process="worker 2"} 0.0' in body


async def test_the_metric_of_readiness_is_that_of_all(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"ticketgate_ready 1.0" in (await port.ask("GET", "/metrics"))[2]

    # One that is away says nothing, and the other still says 1.
    monkeypatch.setattr(port.places[1].keeper, "state", "waits")

    assert b"ticketgate_ready 0.0" in (await port.ask("GET", "/metrics"))[2]


async def test_a_process_that_says_nonsense_is_told_of_and_changes_nothing(port: Port) -> None:
    port.fakes[0].records = "much"  # type: ignore[assignment]

    status, _, body = await port.ask("GET", "/metrics")

    assert status == 200
    assert b"ticketgate_decisions_total 3.0" in body


async def test_a_port_that_ends_is_not_ready(port: Port) -> None:
    port.pages.stopping()

    status, _, body = await port.ask("GET", "/readyz")

    assert status == 503
    assert json.loads(body)["waiting"] == {"worker": "stopping"}


def test_what_all_say_alike_is_told_once() -> None:
    other = {**STATE, "lanes": ["tickets:1"], "policy_error": "line 3"}

    told = told_of_all([("worker 1", KEPT, "", STATE), ("worker 2", KEPT, "", other)])

    assert told == {
        "ready": True,
        "waiting": {},
        "guarantee": "exactly_once",
        "policy": {"hash": "a"},
        "lanes": ["tickets:0", "tickets:1"],
        "processes": {
            "worker 1": {**KEPT, "ready": True, "lanes": ["tickets:0"]},
            "worker 2": {**KEPT, "ready": True, "lanes": ["tickets:1"], "policy_error": "line 3"},
        },
    }


def test_a_process_that_is_away_is_named_with_the_reason() -> None:
    told = told_of_all(
        [
            ("worker 1", KEPT, "", STATE),
            (
                "worker 2",
                {"pid": None, "restarts": 3},
                "ended with code 70, 4 times in a row; starts again in 8 s",
                None,
            ),
            ("worker 3", KEPT, "", None),
        ]
    )

    assert told["ready"] is False
    assert told["waiting"] == {
        "worker 2": "ended with code 70, 4 times in a row; starts again in 8 s",
        "worker 3": "does not answer",
    }
    assert told["processes"]["worker 2"] == {"pid": None, "restarts": 3, "ready": False}
