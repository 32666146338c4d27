"""An example provider of the demo: a bank that schedules transfers, and that answers for who may do so.

    POST /transfers                Idempotency-Key: KEY, {"tool": …, "arguments": {…}}
      201, 200                     {"id": …, "state": {…}, "replayed": …}: it stands; 200 if it stood before
      422                          another transfer stands under the key
    GET /transfers/by-key/{key}    200 {"id": …, "state": {…}}, or 404
    GET /authority/{actor_id}      200 {"actor_id": …, "tools": …, …}, or 404
    POST /world                    {"case_id": …, …}: 200 {"facts": {…}, …}
    GET /book                      what stands, and how often it was asked

Promise: one key has one transfer, whatever comes twice, unless the script says otherwise. Everything is in memory and
goes with the process. It shares no code with what talks to it. bank_process.py starts it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What the bank is told before it opens. authority: by actor; world: by case. unanswered: keys whose first transfer
    is committed and never answered. pays_twice: a fault, that whoever counts transfers must find."""

    authority: Mapping[str, Any] = field(default_factory=dict)
    world: Mapping[str, Any] = field(default_factory=dict)
    unanswered: tuple[str, ...] = ()
    pays_twice: bool = False


@dataclass(frozen=True, slots=True)
class Transfer:
    """One transfer as it stands, and what asked for it."""

    transfer_id: str
    asked: Mapping[str, Any]

    @property
    def state(self) -> dict[str, Any]:
        """What a reader sees."""
        return {**self.asked["arguments"], "status": "scheduled"}


class Bank:
    """The bank on the network."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._unanswered = set(script.unanswered)
        self._transfers: dict[str, list[Transfer]] = {}
        self._count = self._requests = self._read_backs = 0

    def routes(self) -> list[web.AbstractRouteDef]:
        """All pages."""
        return [
            web.post("/transfers", self._transfer),
            web.get("/transfers/by-key/{key}", self._read_back),
            web.get("/authority/{actor_id}", self._authority),
            web.post("/world", self._world),
            web.get("/book", self._book),
        ]

    async def _transfer(self, request: web.Request) -> web.Response:
        self._requests += 1
        key, body = request.headers.get("Idempotency-Key"), await request.json()
        asked = {"tool": body.get("tool"), "arguments": body.get("arguments")}
        if not key or not isinstance(asked["tool"], str) or not isinstance(asked["arguments"], dict):
            raise web.HTTPBadRequest(text="a transfer has an Idempotency-Key, a tool and arguments")
        standing = self._transfers.get(key)
        if standing and standing[0].asked != asked:
            return _error(422, "another transfer stands under the key")
        if not standing:
            self._commit(key, asked)
        if self._script.pays_twice:
            self._commit(key, asked)
        if key in self._unanswered:
            self._unanswered.remove(key)
            # For as long as the client will wait, and longer.
            await asyncio.Event().wait()
        first = self._transfers[key][0]
        answer = {"id": first.transfer_id, "state": first.state, "replayed": bool(standing)}
        return web.json_response(answer, status=200 if standing else 201)

    def _commit(self, key: str, asked: Mapping[str, Any]) -> None:
        self._count += 1
        self._transfers.setdefault(key, []).append(Transfer(f"tr_{self._count:04d}", asked))

    async def _read_back(self, request: web.Request) -> web.Response:
        self._read_backs += 1
        standing = self._transfers.get(request.match_info["key"])
        if not standing:
            return _error(404, "nothing stands under the key")
        return web.json_response({"id": standing[0].transfer_id, "state": standing[0].state})

    async def _authority(self, request: web.Request) -> web.Response:
        return _document(self._script.authority.get(request.match_info["actor_id"]))

    async def _world(self, request: web.Request) -> web.Response:
        return _document(self._script.world.get((await request.json())["case_id"]))

    async def _book(self, request: web.Request) -> web.Response:
        transfers = {key: [each.transfer_id for each in found] for key, found in self._transfers.items()}
        return web.json_response(
            {"transfers": transfers, "requests": self._requests, "read_backs": self._read_backs}
        )


def _document(value: object) -> web.Response:
    return _error(404, "not known") if value is None else web.json_response(value)


def _error(status: int, what: str) -> web.Response:
    return web.json_response({"error": what}, status=status)


def main() -> None:
    """Serve until the process is ended: `python -m ticketgate.streams.parts.bank PORT SCRIPT`."""
    script = Script(**json.loads(Path(sys.argv[2]).read_bytes()))
    app = web.Application()
    app.add_routes(Bank(script).routes())
    web.run_app(app, host=HOST, port=int(sys.argv[1]), print=None, shutdown_timeout=0.1)


if __name__ == "__main__":
    main()
