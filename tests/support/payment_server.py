"""A payment provider in a process of its own: `python payment_server.py PORT DATABASE`. `payments.py` starts it.

Promise: what it answered, and what it committed without an answer, survives kill -9; each request is counted before
anything else happens. It is plain aiohttp and SQLite, with none of ticketgate's code.

The provider: `POST /transfers` under an `Idempotency-Key`, `GET /transfers/by-key/{key}`.
The evidence: `GET /authority/{actor_id}`, `POST /world`. For the tests: `GET /ledger`, `POST /control/{what}`.
Faults are lined up, for one key or for any, and each request takes the first that fits it.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from aiohttp import web

HOST = "127.0.0.1"
# Longer than any test waits: the client's own time-out ends it.
SILENCE_S = 3600.0
GLANCE_S = 0.05

SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (id INTEGER PRIMARY KEY, what TEXT, key TEXT);
CREATE TABLE IF NOT EXISTS transfers (id INTEGER PRIMARY KEY, key TEXT, content TEXT, state TEXT, at REAL);
CREATE TABLE IF NOT EXISTS faults
    (id INTEGER PRIMARY KEY, what TEXT, key TEXT, skip INTEGER, times INTEGER, do TEXT, seconds REAL, answer TEXT);
CREATE TABLE IF NOT EXISTS documents (kind TEXT, name TEXT, value TEXT, PRIMARY KEY (kind, name));
"""

COUNTED = ("posts", "served", "reads")

FAULTS = {
    "transfer": (
        "silence",  # nothing happens, no answer
        "drop",  # nothing happens, the connection breaks
        "unavailable",  # nothing happens, 503
        "refuse",  # nothing happens, 403 with a reason
        "late_commit",  # it stands `seconds` later, whether or not somebody still waits
        "overtaken",  # it is served once another request under its key was
        "commit_then_silence",
        "commit_then_drop",
        "commit_then_unavailable",
        "commit_then_late_answer",  # the answer comes `seconds` later
        "answer_twice",  # the same bytes again, on a connection that nobody asked anything more
        "serve_twice",  # something on the way delivers the request twice
    ),
    "read_back": ("silence", "drop", "unavailable", "not_found"),
    # other: another answer than what was set; null is 404.
    "authority": ("silence", "drop", "unavailable", "other", "answer_twice"),
    "world": ("silence", "drop", "unavailable", "other", "answer_twice"),
}


@dataclass(frozen=True)
class Fault:
    """What one request meets. `do` is empty where it meets nothing."""

    do: str = ""
    seconds: float = 0.0
    answer: Any = None


class Bank:
    """The state, all of it in SQLite and synced at each commit."""

    def __init__(self, database: Path) -> None:
        # Each statement is a transaction of its own, unless one is begun.
        self._db = sqlite3.connect(database, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA)

    def count(self, what: str, key: str) -> None:
        """One more request."""
        self._db.execute("INSERT INTO calls (what, key) VALUES (?, ?)", (what, key))

    def transfer(self, key: str, content: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Commit a transfer, or find the one that stands under the key; HTTP status and answer."""
        written = json.dumps(content, sort_keys=True)
        standing = self.standing(key) if self.mode["idempotent_by_key"] else None
        if standing is not None:
            transfer_id, found, state, _ = standing
            if found != written:
                return 422, {"error": "the key stands for another transfer"}
            return 200, {"id": transfer_id, "state": state, "replayed": True}
        state = {**content["arguments"], "status": "scheduled"}
        row = self._db.execute(
            "INSERT INTO transfers (key, content, state, at) VALUES (?, ?, ?, ?)",
            (key, written, json.dumps(state), time.time()),
        )
        return 201, {"id": _transfer_id(row.lastrowid or 0), "state": state, "replayed": False}

    def standing(self, key: str) -> tuple[str, str, dict[str, Any], float] | None:
        """The first transfer under a key: its id, content, state, and when it was committed."""
        row = self._db.execute(
            "SELECT id, content, state, at FROM transfers WHERE key = ? ORDER BY id LIMIT 1", (key,)
        ).fetchone()
        return None if row is None else (_transfer_id(row[0]), row[1], json.loads(row[2]), row[3])

    def read_back(self, key: str) -> dict[str, Any] | None:
        """What a reader sees under a key: nothing until the mode's lag has passed since the commit."""
        standing = self.standing(key)
        if standing is None or time.time() < standing[3] + self.mode["read_lag_s"]:
            return None
        return {"id": standing[0], "state": standing[2]}

    def alter(self, key: str, values: dict[str, Any]) -> None:
        """Somebody changes what stands under a key."""
        standing = self.standing(key)
        if standing is not None:
            state = json.dumps({**standing[2], **values})
            self._db.execute("UPDATE transfers SET state = ? WHERE key = ?", (state, key))

    def line_up(
        self, what: str, key: str | None, skip: int, times: int, do: str, seconds: float, answer: object
    ) -> None:
        """A fault for the `times` requests of a kind that come after the next `skip`."""
        if do not in FAULTS.get(what, ()):
            raise ValueError(f"{what} has no fault {do!r}; there are {FAULTS}")
        self._db.execute(
            "INSERT INTO faults (what, key, skip, times, do, seconds, answer) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (what, key, skip, times, do, seconds, json.dumps(answer)),
        )

    def heal(self) -> None:
        """Forget every fault."""
        self._db.execute("DELETE FROM faults")

    def meet(self, what: str, key: str) -> Fault:
        """What this request meets; it is taken off the line."""
        row = self._db.execute(
            "SELECT id, skip, do, seconds, answer FROM faults "
            "WHERE what = ? AND times > 0 AND (key IS NULL OR key = ?) ORDER BY id LIMIT 1",
            (what, key),
        ).fetchone()
        if row is None:
            return Fault()
        number, skip, do, seconds, answer = row
        if skip:
            self._db.execute("UPDATE faults SET skip = skip - 1 WHERE id = ?", (number,))
            return Fault()
        self._db.execute("UPDATE faults SET times = times - 1 WHERE id = ?", (number,))
        return Fault(do, seconds, json.loads(answer))

    @property
    def mode(self) -> dict[str, Any]:
        """How the provider behaves."""
        return {"idempotent_by_key": True, "read_lag_s": 0.0, **(self.document("mode", "") or {})}

    def document(self, kind: str, name: str) -> dict[str, Any] | None:
        """What was put under a name."""
        row = self._db.execute(
            "SELECT value FROM documents WHERE kind = ? AND name = ?", (kind, name)
        ).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, kind: str, name: str, value: dict[str, Any] | None) -> None:
        """Put a document in the place of what was there; None removes it."""
        self._db.execute(
            "INSERT OR REPLACE INTO documents (kind, name, value) VALUES (?, ?, ?)",
            (kind, name, json.dumps(value)),
        )

    def ledger(self) -> dict[str, dict[str, Any]]:
        """For each key: requests to transfer, those that were served, reads, and the ids of what was committed."""
        found: dict[str, dict[str, Any]] = {}

        def account(key: str) -> dict[str, Any]:
            return found.setdefault(key, {**dict.fromkeys(COUNTED, 0), "transfers": []})

        for what, key in self._db.execute("SELECT what, key FROM calls"):
            if what in COUNTED:
                account(key)[what] += 1
        for row, key in self._db.execute("SELECT id, key FROM transfers ORDER BY id"):
            account(key)["transfers"].append(_transfer_id(row))
        return found


def _transfer_id(row: int) -> str:
    return f"tr_{row:04d}"


class Pages:
    """The bank on the network."""

    def __init__(self, bank: Bank) -> None:
        self._bank = bank

    def routes(self) -> list[web.AbstractRouteDef]:
        """All of them."""
        return [
            web.get("/healthz", self.health),
            web.post("/transfers", self.transfer),
            web.get("/transfers/by-key/{key}", self.read_back),
            web.get("/authority/{actor_id}", self.authority),
            web.post("/world", self.world),
            web.get("/ledger", self.ledger),
            web.post("/control/{what}", self.control),
        ]

    async def health(self, request: web.Request) -> web.Response:
        return web.json_response({})

    async def transfer(self, request: web.Request) -> web.StreamResponse:
        key = request.headers.get("Idempotency-Key", "")
        content = await request.json()
        # Kept as it came but for the order of names; what else a client sends is no part of the transfer.
        content = {"tool": content.get("tool"), "arguments": content.get("arguments")}
        self._bank.count("posts", key)
        if not key or not isinstance(content["tool"], str) or not isinstance(content["arguments"], dict):
            raise web.HTTPBadRequest(text="a transfer has an Idempotency-Key, a tool and arguments")
        fault = self._bank.meet("transfer", key)
        await _before(request, fault)
        if fault.do == "overtaken":
            await self._other_served(key)
        status, answer = self._bank.transfer(key, content)
        self._bank.count("served", key)
        if fault.do == "serve_twice":
            self._bank.count("posts", key)
            status, answer = self._bank.transfer(key, content)
            self._bank.count("served", key)
        await _after(request, fault)
        response = web.json_response(answer, status=status)
        if fault.do == "answer_twice":
            return await _answer_twice(request, response)
        return response

    async def _other_served(self, key: str) -> None:
        while not self._bank.ledger()[key]["served"]:  # noqa: ASYNC110 - what is waited for is a row
            await asyncio.sleep(GLANCE_S)

    async def read_back(self, request: web.Request) -> web.Response:
        key = request.match_info["key"]
        self._bank.count("reads", key)
        fault = self._bank.meet("read_back", key)
        await _before(request, fault)
        found = None if fault.do == "not_found" else self._bank.read_back(key)
        if found is None:
            return web.json_response({"error": "nothing stands under the key"}, status=404)
        return web.json_response(found)

    async def authority(self, request: web.Request) -> web.StreamResponse:
        actor_id = request.match_info["actor_id"]
        self._bank.count("authority", actor_id)
        fault = self._bank.meet("authority", actor_id)
        await _before(request, fault)
        return await _evidence(request, fault, self._bank.document("authority", actor_id))

    async def world(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        actor_id = str(asked["request"]["actor_id"])
        self._bank.count("world", actor_id)
        fault = self._bank.meet("world", actor_id)
        await _before(request, fault)
        world = self._bank.document("world", actor_id) or self._bank.document("world", "") or {}
        return await _evidence(request, fault, world)

    async def ledger(self, request: web.Request) -> web.Response:
        return web.json_response(self._bank.ledger())

    async def control(self, request: web.Request) -> web.Response:
        asked = await request.json()
        match request.match_info["what"]:
            case "fault":
                self._bank.line_up(**asked)
            case "heal":
                self._bank.heal()
            case "mode":
                self._bank.put("mode", "", {**self._bank.mode, **asked})
            case "authority" | "world" as kind:
                self._bank.put(kind, asked["name"], asked["value"])
            case "alter":
                self._bank.alter(asked["key"], asked["values"])
            case other:
                raise web.HTTPNotFound(text=f"no control {other!r}")
        return web.json_response({})


async def _before(request: web.Request, fault: Fault) -> None:
    """What happens in the place of serving a request, or before it."""
    match fault.do:
        case "silence":
            await asyncio.sleep(SILENCE_S)
        case "drop":
            _drop(request)
        case "unavailable":
            raise web.HTTPServiceUnavailable
        case "refuse":
            raise web.HTTPForbidden(text=json.dumps({"error": "the account is frozen"}))
        case "late_commit":
            # A handler goes on when its client has gone: aiohttp cancels it only where that is asked for.
            await asyncio.sleep(fault.seconds)


async def _after(request: web.Request, fault: Fault) -> None:
    """What happens between the commit and the answer."""
    match fault.do:
        case "commit_then_silence":
            await asyncio.sleep(SILENCE_S)
        case "commit_then_drop":
            _drop(request)
        case "commit_then_unavailable":
            raise web.HTTPServiceUnavailable
        case "commit_then_late_answer":
            await asyncio.sleep(fault.seconds)


def _drop(request: web.Request) -> NoReturn:
    if request.transport is not None:
        request.transport.abort()
    # Nobody reads this.
    raise web.HTTPInternalServerError


async def _answer_twice(request: web.Request, response: web.Response) -> web.StreamResponse:
    transport = request.transport
    await response.prepare(request)
    await response.write_eof()
    body = response.body
    if transport is not None and isinstance(body, bytes):
        head = f"HTTP/1.1 {response.status} OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        transport.write(head.encode() + body)
    return response


async def _evidence(
    request: web.Request, fault: Fault, document: dict[str, Any] | None
) -> web.StreamResponse:
    document = fault.answer if fault.do == "other" else document
    if document is None:
        return web.json_response({"error": "not known"}, status=404)
    response = web.json_response(document)
    return await _answer_twice(request, response) if fault.do == "answer_twice" else response


def main() -> None:
    """Serve until SIGTERM."""
    port, database = int(sys.argv[1]), Path(sys.argv[2])
    app = web.Application()
    app.add_routes(Pages(Bank(database)).routes())
    web.run_app(app, host=HOST, port=port, print=None, shutdown_timeout=0.1)


if __name__ == "__main__":
    main()
