"""One ticketgate worker as a part of the demo: a process of its own, with settings of its own.

Promise: nothing of the caller's settings reaches it but what is given here; `start` returns once /readyz says ready.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ticketgate.streams.config.settings import PREFIX
from ticketgate.streams.demo.ground import OUTCOME_TIMEOUT_S, POLL_S
from ticketgate.streams.parts.ports import HOST, free_port
from ticketgate.streams.parts.process import Part, Process, temporary_folder

START_TIMEOUT_S = 90.0


def environment_of(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """This process's environment with these settings and no others of ours. folder: what `close` takes away, for a
    process that is killed leaves its temporary files."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    environment |= {f"{PREFIX}{name.upper()}": value for name, value in settings.items()}
    return environment | {"TMPDIR": str(folder)}


class GateWorker(Part):
    """A worker with `settings`, by name without the prefix; its log and its temporary files go with `close`."""

    def __init__(self, settings: Mapping[str, str], *, start_timeout_s: float = START_TIMEOUT_S) -> None:
        own_folder = temporary_folder("worker")
        self.port = free_port()
        given = {**settings, "web_bind": HOST, "web_port": str(self.port)}
        super().__init__(
            Process(
                part="the worker",
                command=(sys.executable, "-m", "ticketgate.streams.cli", "worker"),
                ports=(self.port,),
                log_file=own_folder / "worker.log",
                is_ready=lambda: bool(self.readiness().get("ready")),
                start_timeout_s=start_timeout_s,
                temporary=(own_folder,),
                environment=environment_of(given, own_folder),
            ),
            own_folder=own_folder,
        )

    def readiness(self) -> dict[str, Any]:
        """What /readyz says; empty while nothing answers."""
        return json.loads(self._page("/readyz") or "{}")  # type: ignore[no-any-return]

    def count(self, metric: str, **labels: str) -> int:
        """The value of a counter by its labels, summed over all others."""
        wanted = [f'{name}="{value}"' for name, value in labels.items()]
        lines = (
            line.rsplit(" ", 1) for line in self._page("/metrics").splitlines() if line.startswith(metric)
        )
        return sum(int(float(value)) for left, value in lines if all(label in left for label in wanted))

    def _page(self, path: str) -> str:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.port}{path}", timeout=5) as response:
                return str(response.read().decode())
        except urllib.error.HTTPError as err:
            return err.read().decode()
        except OSError:
            return ""


async def has_taken(
    worker: GateWorker, topic: str, count: int, progress: Callable[[int], None] = lambda _: None
) -> bool:
    """Wait until a worker has taken so many records of a topic; False if it has not in time. progress: told how many it
    has so far."""
    deadline = time.monotonic() + OUTCOME_TIMEOUT_S
    while time.monotonic() < deadline:
        taken = await asyncio.to_thread(worker.count, "ticketgate_records_total", topic=topic)
        progress(taken)
        if taken >= count:
            return True
        await asyncio.sleep(POLL_S)
    return False
