"""The payment provider of the delivery tests: a real HTTP server in a process of its own (payment_server.py)."""

from __future__ import annotations

import http.client
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ticketgate.streams.parts.ports import HOST, free_port
from ticketgate.streams.parts.process import Part, Process

from . import payment_server

Kind = Literal["transfer", "read_back", "authority", "world"]
START_TIMEOUT_S = 20.0
TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Account:
    """What the provider has seen and done under one key. served: requests that it committed, or found to stand."""

    posts: int = 0
    served: int = 0
    reads: int = 0
    transfers: Sequence[str] = field(default_factory=list)


class PaymentServer(Part):
    """The provider; start, stop, kill, pause and resume as the other parts. What it committed survives them all."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        self._authorities: dict[str, Mapping[str, Any]] = {}
        self._confirmed: dict[str, dict[str, Mapping[str, Any]]] = {}
        super().__init__(
            Process(
                part=f"the payment server ({HOST}:{self.port})",
                command=(
                    sys.executable,
                    str(Path(payment_server.__file__)),
                    str(self.port),
                    str(folder / "bank.sqlite"),
                ),
                ports=(self.port,),
                log_file=folder / "bank.log",
                is_ready=lambda: self._call("GET", "/healthz")[0] == 200,
                start_timeout_s=START_TIMEOUT_S,
            ),
            own_folder=None,
        )

    def fail(
        self,
        do: str,
        *,
        on: Kind = "transfer",
        key: str | None = None,
        skip: int = 0,
        times: int = 1,
        seconds: float = 0.0,
        answer: object = None,
    ) -> None:
        """Line a fault up for `times` requests, after `skip` of them, under `key` (an actor's id for evidence) or under
        any. `answer`: what `other` evidence says."""
        fault = {"do": do, "what": on, "key": key, "skip": skip, "times": times}
        self._control("fault", {**fault, "seconds": seconds, "answer": answer})

    def heal(self) -> None:
        """Forget every fault that was not met."""
        self._control("heal", {})

    def behave(self, **mode: bool | float) -> None:
        """`idempotent_by_key` (True unless told), `read_lag_s`: how long a commit is hidden from reading back."""
        self._control("mode", mode)

    def delegate(self, authority: Mapping[str, Any]) -> None:
        """What an actor may do, from now on. What they `confirm` is added, unless they have confirmed nothing."""
        self._authorities[authority["actor_id"]] = authority
        self._tell(authority["actor_id"])

    def confirm(self, request: Mapping[str, Any]) -> None:
        """The actor of a request says yes to just what it asks for, under its key, by an event of its own."""
        actor_id, key = request["actor_id"], request.get("control", {}).get("idempotency_key")
        if request["operation"] != "schedule" or key is None:
            return
        bound = {**request["values"], **request.get("conditions", {}), "idempotency_key": key}
        self._confirmed.setdefault(actor_id, {})[f"yes-to-{key}"] = bound
        if actor_id in self._authorities:
            self._tell(actor_id)

    def _tell(self, actor_id: str) -> None:
        authority = self._authorities[actor_id]
        confirmations = list(authority.get("confirmations", ()))
        given = [
            {**confirmations[0], "event_id": event_id, "operation": "schedule", "bound": bound}
            for event_id, bound in self._confirmed.get(actor_id, {}).items()
            if confirmations
        ]
        value = {**authority, "confirmations": confirmations + given} if given else authority
        self._control("authority", {"name": actor_id, "value": value})

    def revoke(self, actor_id: str) -> None:
        """Nothing is known of the actor any more."""
        self._authorities.pop(actor_id, None)
        self._control("authority", {"name": actor_id, "value": None})

    def set_world(self, world: Mapping[str, Any], *, actor_id: str = "") -> None:
        """How the world stands for requests of an actor, or of any for whom nothing else was set."""
        self._control("world", {"name": actor_id, "value": world})

    def alter(self, key: str, **values: object) -> None:
        """Somebody changes what stands under a key."""
        self._control("alter", {"key": key, "values": values})

    def account(self, key: str) -> Account:
        """What was seen and done under a key."""
        return self.ledger().get(key, Account())

    def ledger(self) -> dict[str, Account]:
        """What was seen and done under each key."""
        status, found = self._call("GET", "/ledger")
        assert status == 200, found
        return {key: Account(**each) for key, each in found.items()}

    def transfer(
        self, key: str, arguments: Mapping[str, Any], *, timeout_s: float = TIMEOUT_S
    ) -> tuple[int, Any]:
        """As any client asks for a transfer: status and answer, status 0 without an answer."""
        asked = {"tool": "pay", "arguments": arguments}
        return self._call("POST", "/transfers", asked, key=key, timeout_s=timeout_s)

    def read_back(self, key: str, *, timeout_s: float = TIMEOUT_S) -> tuple[int, Any]:
        """As any client reads back."""
        return self._call("GET", f"/transfers/by-key/{key}", timeout_s=timeout_s)

    def look_up(self, kind: Literal["authority", "world"], actor_id: str) -> tuple[int, Any]:
        """As any client looks evidence up."""
        if kind == "authority":
            return self._call("GET", f"/authority/{actor_id}")
        return self._call("POST", "/world", {"request": {"actor_id": actor_id}})

    def _control(self, what: str, value: object) -> None:
        status, answer = self._call("POST", f"/control/{what}", value)
        assert status == 200, answer

    def _call(
        self, method: str, path: str, value: object = None, *, key: str = "", timeout_s: float = TIMEOUT_S
    ) -> tuple[int, Any]:
        request = urllib.request.Request(  # noqa: S310 - our own server
            self.url + path,
            data=None if value is None else json.dumps(value).encode(),
            headers={"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as response:  # noqa: S310
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as err:
            with err:
                return err.code, err.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, None
