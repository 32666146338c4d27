"""Lines of a file or of standard input, as they come, with their numbers from 1 and without the newline."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import CancelledError
from pathlib import Path

Line = tuple[int, bytes]

_CHUNK_BYTES = 2**16
# Bounds what is read ahead of what is sent.
_CHUNKS_AHEAD = 16


def is_stream(path: Path) -> bool:
    """Whether the lines come but once: from standard input or a pipe."""
    return str(path) == "-" or (path.exists() and not path.is_file())


def read_lines(path: Path) -> Iterator[Line]:
    """A file's lines. Raises OSError."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            yield number, line.removesuffix(b"\n")


async def stream_lines(path: Path) -> AsyncIterator[Line]:
    """The lines of what may keep one waiting for the next. Raises OSError.

    A thread reads, so that records go out meanwhile. Nobody waits for it at the end, so that Ctrl-C is not kept
    waiting for a line.
    """
    # A descriptor of its own: at its end the interpreter would want the lock of sys.stdin, which a read holds.
    source = os.dup(sys.stdin.fileno()) if str(path) == "-" else os.open(path, os.O_RDONLY)
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[list[bytes] | OSError | None] = asyncio.Queue(_CHUNKS_AHEAD)

    def hand_over(chunk: list[bytes] | OSError | None) -> None:
        if not loop.is_closed():
            asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()

    def read() -> None:
        try:
            for lines in _split(source):
                hand_over(lines)
            hand_over(None)
        except OSError as err:
            hand_over(err)
        except (RuntimeError, CancelledError):
            # The loop has ended: nobody reads any more.
            pass
        finally:
            os.close(source)

    threading.Thread(target=read, name="lines", daemon=True).start()
    number = 0
    while (chunk := await chunks.get()) is not None:
        if isinstance(chunk, OSError):
            raise chunk
        for line in chunk:
            number += 1
            yield number, line


def _split(source: int) -> Iterator[list[bytes]]:
    """The lines that each read completes, as soon as it does."""
    begun: list[bytes] = []
    while chunk := os.read(source, _CHUNK_BYTES):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        if others:
            lines = [b"".join(begun), *others[:-1]]
            begun = [others[-1]]
            yield lines
    if last := b"".join(begun):
        yield [last]
