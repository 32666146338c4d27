"""`ticketgate worker` that may have half a gigabyte more than it has once it is loaded, as a container's limit does."""

from __future__ import annotations

import resource
from pathlib import Path

from ticketgate.streams.cli import main
from ticketgate.streams.process import app

ROOM = 512 * 2**20


def limit_memory() -> None:
    """From here on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    assert app
    limit_memory()
    main()
