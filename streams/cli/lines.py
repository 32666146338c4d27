"""Lines of a file or of standard input, as they come, with their numbers from 1 and without the newline."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TypeVar

Line = tuple[int, bytes]
T = TypeVar("T")

# What a file begins with that was packed, or is text in another encoding: no line of it can be read.
_PACKED = {
    b"\x1f\x8b": "gzip; unpack it: `gunzip -c FILE | ticketgate produce -`",
    b"\x28\xb5\x2f\xfd": "zstd; unpack it: `zstd -dc FILE | ticketgate produce -`",
    b"BZh": "bzip2; unpack it: `bunzip2 -c FILE | ticketgate produce -`",
    b"\xfd7zXZ": "xz; unpack it: `xz -dc FILE | ticketgate produce -`",
    b"PK\x03\x04": "a zip archive or a workbook; unpack it, or save it as CSV",
    b"\xff\xfe": "UTF-16; save it as UTF-8",
    b"\xfe\xff": "UTF-16; save it as UTF-8",
}

_CHUNK_BYTES = 2**16
# Bounds what is read ahead of what is sent.
_CHUNKS_AHEAD = 16


class BadLine(Exception):
    """`17: what is wrong`: a line of the input that is no record."""


def packed(line: bytes) -> str | None:
    """What a file is whose first line begins like this, and the way out; None if it may be text."""
    return next((what for magic, what in _PACKED.items() if line.startswith(magic)), None)


def is_stream(path: Path) -> bool:
    """Whether the lines come but once: from standard input or a pipe."""
    return str(path) == "-" or (path.exists() and not path.is_file())


def read_lines(path: Path) -> Iterator[Line]:
    """A file's lines. Raises OSError."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            yield number, line.removesuffix(b"\n")


async def stream_lines(path: Path, stop: asyncio.Event | None = None) -> AsyncIterator[Line]:
    """The lines of what may keep one waiting for the next; none any more once `stop` is set. Raises OSError.

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
    number, never = 0, asyncio.Event()
    while (chunk := await _unless(stop or never, chunks.get())) is not None:
        if isinstance(chunk, OSError):
            raise chunk
        for line in chunk:
            number += 1
            yield number, line


async def _unless(stop: asyncio.Event, getting: Coroutine[None, None, T]) -> T | None:
    """What is got, or None once `stop` is set."""
    got, stopped = asyncio.create_task(getting), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((got, stopped), return_when=asyncio.FIRST_COMPLETED)
        return got.result() if got.done() else None
    finally:
        got.cancel()
        stopped.cancel()


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
