"""Two processes for what takes long: one core each, and always two, so that the sums are the same everywhere.

torch's gradients do not survive a fork, so whoever forks here has made none before.
"""

import os
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from torch import distributed

T = TypeVar("T")


def together(act: Callable[[], T], folder: Path) -> T:
    """What the first of two processes gives that run `act` at once, with their gradients joined by `distributed`."""
    meeting = folder / "meet"
    meeting.unlink(missing_ok=True)

    def joined(rank: int) -> T:
        distributed.init_process_group(
            "gloo", init_method=f"file://{meeting.resolve()}", rank=rank, world_size=2
        )
        return act()

    found, _ = both(lambda: joined(0), lambda: joined(1))
    return found


def both(one: Callable[[], T], other: Callable[[], T]) -> tuple[T, T]:
    """What the two give, each made in a process of its own."""
    first, second = apart([one, other])
    return first, second


def apart(acts: Sequence[Callable[[], T]]) -> list[T]:
    """What each gives, made at once, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.pt" for number in range(len(acts))]
        children = [_forked(act, file) for act, file in zip(acts, files, strict=True)]
        statuses = [os.waitpid(child, 0)[1] for child in children]
        if any(statuses):
            raise SystemExit("one of the processes failed")
        return [torch.load(file, weights_only=False) for file in files]


def _forked(act: Callable[[], T], file: Path) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        torch.save(act(), file)
        status = 0
    except BaseException:  # it ends below, before the interpreter would say why
        traceback.print_exc()
        raise
    finally:
        os._exit(status)
