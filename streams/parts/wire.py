"""Ask a Kafka-compatible broker who belongs to its cluster, with one hand-made request.

A broker accepts connections before it is unfenced, and refuses to create topics until then. So "it answers"
means: its metadata name as many brokers as were started. Synchronous, without a client library: parts are
started by code that may or may not have an event loop. Source: the Kafka protocol, Metadata version 4.
"""

import socket
import struct

METADATA, VERSION, CORRELATION = 3, 4, 1


def broker_ids(host: str, port: int, *, timeout_s: float = 1.0) -> tuple[int, ...]:
    """The ids of the brokers that the one at host:port knows to be alive; empty if it does not answer."""
    header = struct.pack(">hhih", METADATA, VERSION, CORRELATION, -1)
    body = struct.pack(">i?", 0, False)  # no topics, create none
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            (size,) = struct.unpack(">i", _read(connection, 4))
            return _brokers(_read(connection, size))
    except (OSError, struct.error):
        return ()


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionResetError(f"closed after {len(parts)} of {size} bytes")
        parts += part
    return bytes(parts)


def _brokers(response: bytes) -> tuple[int, ...]:
    _, _, count = struct.unpack_from(">iii", response)
    at, found = 12, []
    for _ in range(count):
        node, host_size = struct.unpack_from(">ih", response, at)
        at += 6 + host_size + 4  # the port
        (rack_size,) = struct.unpack_from(">h", response, at)
        at += 2 + max(rack_size, 0)
        found.append(node)
    return tuple(sorted(found))
