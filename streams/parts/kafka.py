"""Apache Kafka in KRaft mode from a folder of jars, without Docker: one broker, or a cluster of three.

Promise: `start` returns once every broker is a member of the cluster; `stop` and `kill` keep port and data.
Relies on: Java 17 or newer and the jars that `make kafka-jars` fetches (java.py).
"""

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from ticketgate.streams.parts.broker_properties import JVM_OPTIONS, LOG4J, Address, properties_of
from ticketgate.streams.parts.failures import PartFailed
from ticketgate.streams.parts.java import find_jars, find_java
from ticketgate.streams.parts.ports import HOST, free_port
from ticketgate.streams.parts.process import Part, Process, open_log, owners_folder, remove, temporary_folder
from ticketgate.streams.parts.wire import broker_ids

# The same for all: a folder given again must hold the cluster that its meta.properties name.
CLUSTER_ID = "dGlja2V0Z2F0ZS1sb2NhbA"
# Three JVMs need 6 s on two idle cores, and many times that on busy ones. A wrong setting fails at once.
START_TIMEOUT_S = 90.0
FORMAT_TIMEOUT_S = 60.0


class KafkaNode(Part):
    """One broker, controller as well, of a cluster whose members are all started here."""

    FORMAT_OPTIONS: ClassVar[Sequence[str]] = ()
    """Further arguments of the tool that formats the storage."""

    def __init__(
        self,
        address: Address,
        *,
        members: Sequence[Address],
        folder: Path,
        own_folder: Path | None,
        properties: Mapping[str, str],
        jars: Path,
        start_timeout_s: float,
    ) -> None:
        folder = folder.resolve()
        self.port = address.port
        self.node_id = address.node
        self._folder = folder
        self._members = len(members)
        self._properties = properties_of(address, members, folder / "data") | dict(properties)
        self._java = (
            str(find_java()),
            *JVM_OPTIONS,
            "-cp",
            f"{jars}/*",
            f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}",
        )
        super().__init__(
            Process(
                part=f"Kafka broker {address.node} ({HOST}:{address.port})",
                command=(*self._java, "kafka.Kafka", str(self._configuration)),
                ports=(address.port, address.controller_port),
                log_file=folder / "broker.log",
                is_ready=self._is_member,
                start_timeout_s=start_timeout_s,
                temporary=() if own_folder is None else (own_folder,),
            ),
            own_folder=own_folder,
        )

    @property
    def bootstrap(self) -> str:
        """What a client's `bootstrap_servers` takes: this broker's "127.0.0.1:PORT"."""
        return f"{HOST}:{self.port}"

    def start(self) -> None:
        """Format the storage if it is new, start, and wait until all members are known here."""
        self.begin()
        self.process.wait_ready()

    def begin(self) -> None:
        """Format the storage if it is new, and start; returns before the broker answers."""
        self._write_configuration()
        if not (self._folder / "data" / "meta.properties").exists():
            self._format()
        self.process.launch()

    def wait_ready(self) -> None:
        """Block until all members of the cluster are known here; `PartFailed` if that does not come."""
        self.process.wait_ready()

    @property
    def _configuration(self) -> Path:
        return self._folder / "server.properties"

    def _is_member(self) -> bool:
        return len(broker_ids(HOST, self.port)) == self._members

    def _write_configuration(self) -> None:
        owners_folder(self._folder)
        owners_folder(self._folder / "data")
        (self._folder / "log4j2.properties").write_text(LOG4J)
        lines = (f"{name}={value}\n" for name, value in self._properties.items())
        self._configuration.write_text("".join(lines))

    def _format(self) -> None:
        command = (
            *self._java,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            CLUSTER_ID,
            "-c",
            str(self._configuration),
            *self.FORMAT_OPTIONS,
        )
        with open_log(self.log_file) as out:
            code = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=FORMAT_TIMEOUT_S,
                check=False,
                umask=0o077,
            ).returncode
        if code != 0:
            raise PartFailed("Kafka's storage", f"was not formatted (code {code})", log_file=self.log_file)


class Kafka(KafkaNode):
    """One broker of Apache Kafka, its own controller, on 127.0.0.1.

    `data` is a folder to keep (made if missing; given again, with the same records); without it the data are
    temporary and go with `close`. `properties` are Kafka's own and go over QUICK.
    Raises `PartMissing` (no Java, no jars) when made, `PartFailed` with the log's tail if it does not start.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        jars: Path | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        jars = find_jars(jars)
        find_java()
        address = Address(1, port or free_port(), free_port())
        own_folder = temporary_folder("kafka") if data is None else None
        super().__init__(
            address,
            members=(address,),
            folder=data or own_folder or Path(),
            own_folder=own_folder,
            properties=properties or {},
            jars=jars,
            start_timeout_s=start_timeout_s,
        )


class KafkaCluster:
    """Several brokers, each a controller too, on 127.0.0.1; topics have a replica on each of the first three.

    `nodes[i]` can be killed, paused and started again alone. A topic made with replication 3 takes acks=all
    writes while two of its replicas live. Arguments and errors as with `Kafka`.
    """

    def __init__(
        self,
        *,
        nodes: int = 3,
        data: Path | None = None,
        properties: Mapping[str, str] | None = None,
        jars: Path | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        jars = find_jars(jars)
        find_java()
        addresses = [Address(number, free_port(), free_port()) for number in range(1, nodes + 1)]
        self._own_folder = temporary_folder("kafka-cluster") if data is None else None
        folder = data or self._own_folder or Path()
        self.nodes = tuple(
            KafkaNode(
                address,
                members=addresses,
                folder=folder / f"node-{address.node}",
                own_folder=None if self._own_folder is None else folder / f"node-{address.node}",
                properties=properties or {},
                jars=jars,
                start_timeout_s=start_timeout_s,
            )
            for address in addresses
        )

    @property
    def bootstrap(self) -> str:
        """All brokers, as a client's `bootstrap_servers` takes them."""
        return ",".join(node.bootstrap for node in self.nodes)

    def start(self) -> None:
        """Start all brokers that do not run; returns once each knows all."""
        idle = [node for node in self.nodes if not node.is_running]
        for node in idle:
            node.begin()
        for node in idle:
            node.wait_ready()

    def stop(self) -> None:
        """End all brokers in order; data and ports stay, for `start`."""
        # All at once: one that is told last would wait for a quorum that is gone.
        deadline = time.monotonic() + Part.STOP_GRACE_S
        for node in self.nodes:
            node.process.terminate()
        for node in self.nodes:
            node.process.wait_stopped(deadline=deadline)

    def close(self) -> None:
        """End all for good; temporary data go."""
        for node in self.nodes:
            node.close()
        if self._own_folder is not None:
            remove(self._own_folder)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
