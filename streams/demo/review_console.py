"""A console as a part of the demo: a process of its own, with one person who may come in."""

from __future__ import annotations

import sys
import urllib.request
from collections.abc import Mapping

from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.console.door.people import Entry, write_entries
from ticketgate.streams.console.door.tokens import hashed, new_token
from ticketgate.streams.demo.person import PERSON
from ticketgate.streams.demo.worker import START_TIMEOUT_S, environment_of
from ticketgate.streams.parts.ports import HOST, free_port
from ticketgate.streams.parts.process import Part, Process, temporary_folder


class ReviewConsole(Part):
    """A console with `settings`, by name without the prefix. token: by which PERSON signs in."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        own_folder = temporary_folder("console")
        self.port, self.token = free_port(), new_token()
        users = own_folder / "users.json"
        write_entries(users, {PERSON: Entry(role=ConsoleRole.SETTLE, token=hashed(self.token))})
        given = {
            **settings,
            "console_port": str(self.port),
            "console_users": str(users),
            "review_view": str(own_folder / "view.sqlite3"),
        }
        super().__init__(
            Process(
                part="the console",
                command=(sys.executable, "-m", "ticketgate.streams.cli", "console"),
                ports=(self.port,),
                log_file=own_folder / "console.log",
                is_ready=self._answers,
                start_timeout_s=START_TIMEOUT_S,
                temporary=(own_folder,),
                environment=environment_of(given, own_folder),
            ),
            own_folder=own_folder,
        )

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://{HOST}:{self.port}"

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as response:  # noqa: S310 - our own console
                return bool(response.status == 200)
        except OSError:
            return False
