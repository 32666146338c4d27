"""A proxy before one broker of Apache Kafka: which request a frame is, and a listener that leads clients to the proxy.

Relies on: Kafka's framing, the same for all versions: size, api key, api version, correlation id; a broker answers the
requests of a connection in their order.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence

from ticketgate.streams.parts.kafka import KafkaNode
from ticketgate.streams.parts.ports import HOST, free_port

from .faults import Request
from .proxy import Proxy

# Kafka's protocol guide, "Api Keys".
NAMES = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    18: "ApiVersions",
    22: "InitProducerId",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    28: "TxnOffsetCommit",
}
TRANSACTIONAL = ("Produce", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")
"""The requests of a transaction, in their order."""

LISTENER = "PROXIED"


class KafkaWire:
    """Kafka's frames on one connection."""

    async def read_request(self, client: asyncio.StreamReader) -> Request:
        """As `Wire`. An api key without a name here is "api 37"."""
        data = await _frame(client)
        (key,) = struct.unpack_from(">h", data, 4)
        return Request(NAMES.get(key, f"api {key}"), data)

    async def read_reply(self, server: asyncio.StreamReader) -> bytes:
        """As `Wire`."""
        return await _frame(server)

    def replies_to(self, request: Request) -> int:
        """One; a Produce with acks=0 has none, and nobody here sends such."""
        return 1

    def is_reply_to(self, request: Request, reply: bytes) -> bool:
        """By the correlation id."""
        return reply[4:8] == request.data[8:12]

    def greeting(self) -> Sequence[Request]:
        """None: a plaintext listener takes any request first."""
        return ()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(struct.unpack(">i", size)[0])


class KafkaProxy(Proxy):
    """A proxy before a broker that was not started yet. Clients that begin at `bootstrap` are led back to the proxy by
    what the broker advertises to them; those at the broker's own address pass it by. Of a cluster, each broker needs a
    proxy of its own."""

    def __init__(self, broker: KafkaNode) -> None:
        upstream_port, port = free_port(), free_port()
        super().__init__(upstream_port, port=port, new_wire=KafkaWire)
        _add_listener(broker, port=upstream_port, advertised_port=port)

    @property
    def bootstrap(self) -> str:
        """What a client's `bootstrap_servers` takes."""
        return f"{HOST}:{self.port}"


def _add_listener(broker: KafkaNode, *, port: int, advertised_port: int) -> None:
    if broker.is_running:
        raise RuntimeError("the broker runs already: it takes a listener only at its start")
    more = {
        "listeners": f"{LISTENER}://{HOST}:{port}",
        "advertised.listeners": f"{LISTENER}://{HOST}:{advertised_port}",
        "listener.security.protocol.map": f"{LISTENER}:PLAINTEXT",
    }
    for name, value in more.items():
        broker._properties[name] += f",{value}"
