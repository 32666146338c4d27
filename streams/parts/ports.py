"""Ports of 127.0.0.1 for parts: free, and no other part's."""

from __future__ import annotations

import random
import socket

from ticketgate.streams.parts.failures import PartFailed

HOST = "127.0.0.1"


# Outgoing connections take their ports from 32768 upwards (Linux) or 49152 upwards (macOS). A part that is
# killed and started again on its old port would now and then find it taken by one of them; below, never.
PORTS = range(18_000, 32_000)


_handed_out: set[int] = set()


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on and that this process has not handed out before."""
    # Random, so that two test runs on one machine do not try the same ports in the same order.
    for port in random.sample(PORTS, k=200):
        if port in _handed_out:
            continue
        if is_free(port):
            _handed_out.add(port)
            return port
    raise PartFailed(
        f"a free port on {HOST}", f"was not found in 200 tries between {PORTS[0]} and {PORTS[-1]}"
    )


def is_free(port: int) -> bool:
    """Whether nobody listens on it."""
    with socket.socket() as probe:
        # As servers do: a port whose last connection lingers in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
