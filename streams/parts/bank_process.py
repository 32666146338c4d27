"""The example bank as a part of the demo: a process of its own, and what stands in its book."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from ticketgate.streams.parts.bank import HOST, Script
from ticketgate.streams.parts.failures import PartFailed
from ticketgate.streams.parts.ports import free_port
from ticketgate.streams.parts.process import Part, Process, temporary_folder

START_TIMEOUT_S = 30.0
TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Book:
    """What the bank has done. transfers: by key, the ids of all that stand. requests: how often it was asked for a
    transfer; read_backs: how often for what stands."""

    transfers: Mapping[str, tuple[str, ...]]
    requests: int
    read_backs: int

    @property
    def count(self) -> int:
        """How many transfers stand."""
        return sum(map(len, self.transfers.values()))


class BankProcess(Part):
    """A bank with a script; `folder` takes files that go with it."""

    def __init__(self, script: Script) -> None:
        self.folder = temporary_folder("bank")
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}"
        written: Path = self.folder / "script.json"
        written.write_text(json.dumps(asdict(script)), encoding="utf-8")
        super().__init__(
            Process(
                part=f"the bank ({HOST}:{self.port})",
                command=(
                    sys.executable,
                    "-m",
                    "ticketgate.streams.parts.bank",
                    str(self.port),
                    str(written),
                ),
                ports=(self.port,),
                log_file=self.folder / "bank.log",
                is_ready=self._answers,
                start_timeout_s=START_TIMEOUT_S,
                temporary=(self.folder,),
            ),
            own_folder=self.folder,
        )

    def book(self) -> Book:
        """What it has done by now. Raises `PartFailed` if it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.url}/book", timeout=TIMEOUT_S) as response:  # noqa: S310 - our own
                told = json.loads(response.read())
        except OSError as err:
            raise PartFailed(
                "the bank", f"does not tell of its book ({err})", log_file=self.log_file
            ) from err
        transfers = {key: tuple(found) for key, found in told["transfers"].items()}
        return Book(transfers, told["requests"], told["read_backs"])

    def _answers(self) -> bool:
        try:
            self.book()
        except PartFailed:
            return False
        return True
