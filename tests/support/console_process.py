"""The console in a process of its own, for a deployment, with people who may come in."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path

from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.console.door.people import Entry, write_entries
from ticketgate.streams.console.door.tokens import hashed
from ticketgate.streams.parts.ports import free_port

from .deployment import COMMAND, Deployment

ROLES = {
    "anna": ConsoleRole.SETTLE,
    "ben": ConsoleRole.SETTLE,
    "rita": ConsoleRole.READ,
    "cleo": ConsoleRole.ADMINISTER,
}


def token_of(name: str) -> str:
    """By which that person signs in."""
    return f"the token of {name}"


class ConsoleProcess:
    """Started at once, on a port that stays the same when it is started again."""

    def __init__(self, deployment: Deployment, folder: Path, **settings: str) -> None:
        self.port, self._log = free_port(), folder / "console.log"
        users = folder / "users.json"
        write_entries(
            users,
            {name: Entry(role=role, token=hashed(token_of(name), cost=2)) for name, role in ROLES.items()},
        )
        given = {"CONSOLE_USERS": str(users), "CONSOLE_PORT": str(self.port), **settings}
        self._environment = {
            **deployment.environment,
            **{f"TICKETGATE_{name}": value for name, value in given.items()},
        }
        self.process = self._started()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Again, after it ended."""
        self.process = self._started()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.terminate()
        return self.process.wait(40)

    def log(self) -> str:
        """What it said."""
        return self._log.read_text(errors="replace")

    def server_time(self, quantile: float, routes: Iterable[str] = ()) -> dict[str, tuple[int, float]]:
        """By method and route: how many requests, and the bucket in seconds that this share of them stayed below."""
        text = self._page("/metrics")
        buckets: dict[str, dict[float, float]] = {}
        for line in text.splitlines():
            name, _, rest = line.partition("{")
            if name != "ticketgate_console_request_duration_seconds_bucket":
                continue
            inside, _, value = rest.rpartition("} ")
            label = dict(part.split("=", 1) for part in inside.replace('"', "").split(","))
            if routes and label["route"] not in routes:
                continue
            of_one = buckets.setdefault(f"{label['method']} {label['route']}", {})
            bound = float(label["le"])
            of_one[bound] = of_one.get(bound, 0.0) + float(value)
        found = {}
        for name, counts in buckets.items():
            whole = counts[float("inf")]
            below = min(bound for bound, count in counts.items() if count >= quantile * whole)
            found[name] = (int(whole), below)
        return found

    def _page(self, path: str) -> str:
        with urllib.request.urlopen(self.url + path, timeout=10) as response:  # noqa: S310 - our own console
            return str(response.read().decode())

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as out:
            process = subprocess.Popen(
                [COMMAND, "console"], env=self._environment, stdout=out, stderr=subprocess.STDOUT
            )
        deadline = time.monotonic() + 120
        while True:
            try:
                self._page("/healthz")
            except (urllib.error.URLError, OSError):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(self.log()) from None
                time.sleep(0.1)
            else:
                return process
