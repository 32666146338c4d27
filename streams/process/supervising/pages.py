"""The web port of several processes: health, readiness and metrics of all, and /v1 by whichever is free.

Promise: /readyz is ready exactly when each process runs and is ready, and says of each why it is not. /v1 holds the
limits of one port, however many processes there are; a request whose process ends meanwhile is put to another, for
scoring changes nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from multidict import CIMultiDict
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from ticketgate.codecs.systemone.protocol import PATH
from ticketgate.codecs.values.redact import redact
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.process.supervising.asking import Answer, Door
from ticketgate.streams.process.supervising.keeper import Keeper
from ticketgate.streams.process.supervising.merging import MergedMetrics
from ticketgate.streams.process.web.admission import Admission, room_for
from ticketgate.streams.process.web.auth import Keys
from ticketgate.streams.process.web.bodies import read_body, require_size
from ticketgate.streams.process.web.errors import refusal

# How often each is asked: what it counted since then is lost if it is killed.
POLL_S = 1.0
# A process that is not there answers at once that it is not; after an answer that did not come, a caller may ask again.
RETRY_AFTER_S = 1
_READY = "ticketgate_ready"
# Of one connection, and not of the request.
_OF_THE_HOP = (
    "Connection",
    "Keep-Alive",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
    "Expect",
    "Content-Length",
)


@dataclass(frozen=True, slots=True)
class Place:
    """One process: who keeps it, and where its pages are."""

    keeper: Keeper
    door: Door

    @property
    def name(self) -> str:
        """As logs, /readyz and metrics have it."""
        return self.keeper.name


class Pages:
    """What the port shows. `watch` must run beside it; `close` ends it."""

    def __init__(self, places: Sequence[Place], settings: Settings, *, poll_s: float = POLL_S) -> None:
        self._places, self._settings, self._poll_s = places, settings, poll_s
        self._merged = MergedMetrics()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._is_stopping = self._is_ready = False
        self._keys = Keys(settings.web_keys)
        self._admission = Admission(
            most_bytes=settings.web_bytes_at_once,
            most_of_one=settings.web_requests_a_key,
            rate=settings.web_rate,
        )
        self._timeout_s = settings.web_timeout.total_seconds()

    @property
    def health(self) -> Sequence[web.AbstractRouteDef]:
        """/healthz, /readyz and /metrics."""
        return [
            web.get("/healthz", self._healthz),
            web.get("/readyz", self._readyz),
            web.get("/metrics", self._metrics),
        ]

    @property
    def api(self) -> Sequence[web.AbstractRouteDef]:
        """What a worker's scorer answers, where its roles have one."""
        if "decide" not in self._settings.roles:
            return []
        return [
            web.post(PATH, self._score),
            web.get("/v1/models", self._forward),
            web.get("/openapi.json", self._forward),
        ]

    def stopping(self) -> None:
        """Be ready no more."""
        self._is_stopping = True

    async def watch(self) -> None:
        """Ask each process every second, until cancelled: what it counted, and whether it became ready."""
        while True:
            await asyncio.gather(self._states(), self._counts())
            await asyncio.sleep(self._poll_s)

    async def close(self) -> None:
        """Ask nothing more."""
        for place in self._places:
            await place.door.close()

    def collect(self) -> Iterator[Metric]:
        """For prometheus_client: what the processes said when they were asked last, and how they are."""
        # Not theirs: one that is away says nothing, and is not ready.
        yield from (family for family in self._merged.collect() if family.name != _READY)
        yield GaugeMetricFamily(_READY, "1 if /readyz says ready", value=float(self._is_ready))
        up = GaugeMetricFamily("ticketgate_process_up", "1 if a worker process runs", labels=["process"])
        restarts = CounterMetricFamily(
            "ticketgate_process_restarts", "Worker processes started again after an end", labels=["process"]
        )
        for place in self._places:
            up.add_metric([place.name], float(place.keeper.pid is not None))
            restarts.add_metric([place.name], place.keeper.restarts)
        yield up
        yield restarts

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _: web.Request) -> web.Response:
        told = self._told(await self._states())
        return web.Response(
            text=redact(json.dumps(told)) + "\n",
            status=200 if told["ready"] else 503,
            content_type="application/json",
        )

    def _told(self, states: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
        told = told_of_all(
            [
                (
                    place.name,
                    {"pid": place.keeper.pid, "restarts": place.keeper.restarts},
                    place.keeper.why_not(),
                    state,
                )
                for place, state in zip(self._places, states, strict=True)
            ]
        )
        if self._is_stopping:
            told["ready"], told["waiting"] = False, {"worker": "stopping", **told["waiting"]}
        return told

    async def _metrics(self, _: web.Request) -> web.Response:
        states = (await asyncio.gather(self._states(), self._counts()))[0]
        self._is_ready = self._told(states)["ready"]
        return web.Response(
            body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
        )

    async def _states(self) -> list[Mapping[str, Any] | None]:
        return await asyncio.gather(*map(self._state, self._places))

    async def _state(self, place: Place) -> Mapping[str, Any] | None:
        """/readyz of one; None where it does not answer."""
        number = place.keeper.starts
        answer = await place.door.get("/readyz")
        state = None if answer is None else _object(answer.body)
        if state is not None and state.get("ready") is True and place.keeper.starts == number:
            place.keeper.seen_ready()
        return state

    async def _counts(self) -> None:
        await asyncio.gather(*map(self._count, self._places))

    async def _count(self, place: Place) -> None:
        number = place.keeper.starts
        answer = await place.door.get("/metrics")
        if answer is None or answer.status != 200 or place.keeper.starts != number:
            if place.keeper.pid is None:
                self._merged.gone(place.name, number)
            return
        self._merged.take(place.name, number, answer.body.decode("utf-8", "replace"))

    async def _score(self, request: web.Request) -> web.Response:
        caller = self._keys.require(request)
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        most = self._settings.web_max_bytes
        require_size(request, most)
        with self._admission.enter(caller, room_for(request.content_length, most)):
            body = await read_body(request, max_bytes=most, deadline=deadline, timeout_s=self._timeout_s)
            return await self._put(request, body)

    async def _forward(self, request: web.Request) -> web.Response:
        return await self._put(request, None)

    async def _put(self, request: web.Request, body: bytes | None) -> web.Response:
        """The answer of the process that has least to answer; of another, where it ended meanwhile."""
        headers = _without_hop(request.headers)
        for place in sorted(self._places, key=lambda place: place.door.under_way):
            if place.keeper.pid is None:
                continue
            asked = place.door.ask(request.method, request.path_qs, headers=headers, body=body)
            try:
                # It has a limit of its own, begun later than the caller's.
                async with asyncio.timeout(2 * self._timeout_s):
                    answer = await asked
            except TimeoutError:
                continue
            if answer is not None:
                return _passed_on(answer)
        what = "no worker process answers at present"
        raise refusal(503, "unavailable_error", what, retry_after=str(RETRY_AFTER_S))


def told_of_all(
    processes: Sequence[tuple[str, Mapping[str, Any], str, Mapping[str, Any] | None]],
) -> dict[str, Any]:
    """/readyz of all from that of each: name, what its keeper says of it, why it does not run, and its own /readyz.

    What all say alike (the policy, the model) is told once. `lanes` are those of all.
    """
    waiting: dict[str, str] = {}
    told: dict[str, dict[str, Any]] = {}
    for name, kept, why_not, state in processes:
        if why_not:
            waiting[name] = why_not
        elif state is None:
            waiting[name] = "does not answer"
        own = dict(state or {})
        for part, reason in own.pop("waiting", {}).items():
            waiting[f"{name}: {part}"] = str(reason)
        own.setdefault("ready", False)
        told[name] = {**kept, **own}
    lanes = sorted({lane for each in told.values() for lane in each.get("lanes", ())})
    answering = [told[name] for name, *_, state in processes if state is not None]
    common = {
        key: value
        for key, value in (answering[0].items() if answering else ())
        if key not in ("pid", "restarts", "ready", "lanes")
        and all(each.get(key) == value for each in answering)
    }
    for each in told.values():
        for key in common:
            each.pop(key, None)
    ready = not waiting and all(each["ready"] is True for each in told.values())
    return {"ready": ready, "waiting": waiting, **common, "lanes": lanes, "processes": told}


def _object(body: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _without_hop(headers: Mapping[str, str]) -> CIMultiDict[str]:
    kept = CIMultiDict(headers)
    for name in _OF_THE_HOP:
        kept.popall(name, None)
    return kept


def _passed_on(answer: Answer) -> web.Response:
    headers = _without_hop(answer.headers)
    for name in ("Date", "Server"):
        headers.popall(name, None)
    return web.Response(status=answer.status, reason=answer.reason, headers=headers, body=answer.body)
