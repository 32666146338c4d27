"""The door that `faust -A ticketgate.streams.app worker` looks for; the Faust app is in process/app.py.

Promise: `app` is made from the environment's settings when it is asked for, and not before.
"""

from __future__ import annotations

from typing import Any

from ticketgate.streams.process import app as process_app


def __getattr__(name: str) -> Any:
    """`app`, and nothing else."""
    if name != "app":
        raise AttributeError(name)
    return process_app.app
