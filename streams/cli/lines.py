"""Lines of a file or of standard input, as they come, with their numbers from 1 and without the newline."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from typing import TypeVar

from ticketgate.streams.cli.packed import GZIP_MAGIC, InputFault, Unpacked, unpacked

Line = tuple[int, bytes]
T = TypeVar("T")

_CHUNK_BYTES = 2**16
# Bounds what is read ahead of what is sent.
_CHUNKS_AHEAD = 16
# The largest request that is sent, in base64. Without it a device of zeros takes all memory.
_MOST_LINE_BYTES = 192 * 2**20
_TOO_LONG = f"more than the {_MOST_LINE_BYTES} bytes that a line may have; end it with a newline"


class BadLine(Exception):
    """`17: what is wrong`: a line of the input that is no record."""


def is_stream(path: Path) -> bool:
    """Whether the lines come but once: from standard input or a pipe."""
    return str(path) == "-" or (path.exists() and not path.is_file())


def read_lines(path: Path) -> Iterator[Line]:
    """A file's lines, unpacked if it is a gzip. Raises `BadLine` and OSError."""
    with path.open("rb") as file:
        if (packed := unpacked(file)) is not None:
            yield from _unpacked_lines(packed)
            return
        for number, line in enumerate(iter(partial(file.readline, _MOST_LINE_BYTES + 1), b""), 1):
            if len(line) > _MOST_LINE_BYTES:
                raise BadLine(f"{number}: {_TOO_LONG}")
            yield number, line.removesuffix(b"\n")


def _unpacked_lines(packed: Unpacked) -> Iterator[Line]:
    number = 0
    try:
        for number, line in enumerate(packed.lines(), 1):
            yield number, line.removesuffix(b"\n")
    except InputFault as err:
        raise BadLine(f"{number + 1}: {err}") from err


async def stream_lines(path: Path, stop: asyncio.Event | None = None) -> AsyncIterator[Line]:
    """The lines of what may keep one waiting for the next, unpacked if it is a gzip; none any more once `stop` is set.
    Raises `BadLine` and OSError.

    A thread reads, so that records go out meanwhile. Nobody waits for it at the end, so that Ctrl-C is not kept
    waiting for a line.
    """
    # A descriptor of its own: at its end the interpreter would want the lock of sys.stdin, which a read holds.
    source = os.dup(sys.stdin.fileno()) if str(path) == "-" else os.open(path, os.O_RDONLY)
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[list[bytes] | Exception | None] = asyncio.Queue(_CHUNKS_AHEAD)

    def hand_over(chunk: list[bytes] | Exception | None) -> None:
        if not loop.is_closed():
            asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()

    def read() -> None:
        try:
            for lines in _split(_reading(source)):
                hand_over(lines)
            hand_over(None)
        except (OSError, InputFault) as err:
            hand_over(err)
        except (RuntimeError, CancelledError):
            # The loop has ended: nobody reads any more.
            pass
        finally:
            os.close(source)

    threading.Thread(target=read, name="lines", daemon=True).start()
    number, never = 0, asyncio.Event()
    while (chunk := await _unless(stop or never, chunks.get())) is not None:
        for line in _lines_of(chunk, number + 1):
            number += 1
            yield number, line


def _lines_of(chunk: list[bytes] | Exception, number: int) -> list[bytes]:
    """The lines that came, or what stands in their place raised; `number` is the first one's."""
    if isinstance(chunk, InputFault):
        raise BadLine(f"{number}: {chunk}") from chunk
    if isinstance(chunk, Exception):
        raise chunk
    return chunk


async def _unless(stop: asyncio.Event, getting: Coroutine[None, None, T]) -> T | None:
    """What is got, or None once `stop` is set."""
    got, stopped = asyncio.create_task(getting), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((got, stopped), return_when=asyncio.FIRST_COMPLETED)
        return got.result() if got.done() else None
    finally:
        got.cancel()
        stopped.cancel()


def _reading(source: int) -> Callable[[int], bytes]:
    """How to read what comes from a descriptor, unpacked if it begins as a gzip does."""
    begins = os.read(source, _CHUNK_BYTES)
    # A pipe may give the first byte alone.
    while begins and len(begins) < len(GZIP_MAGIC) and GZIP_MAGIC.startswith(begins):
        if not (more := os.read(source, _CHUNK_BYTES)):
            break
        begins += more
    coming = _Begun(begins, source)
    return Unpacked(coming).some if begins.startswith(GZIP_MAGIC) else lambda size: coming.read(size) or b""


class _Begun(io.RawIOBase):
    """What was read of a descriptor, and then the rest of it, as it comes."""

    def __init__(self, begins: bytes, source: int) -> None:
        super().__init__()
        self._begins, self._source = begins, source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed names a wider buffer
        part = self._begins[: len(buffer)] or os.read(self._source, len(buffer))
        self._begins = self._begins[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def _split(read: Callable[[int], bytes]) -> Iterator[list[bytes]]:
    """The lines that each read completes, as soon as it does. Raises `InputFault` for a line without an end."""
    begun, begun_bytes = list[bytes](), 0
    while chunk := read(_CHUNK_BYTES):
        first, *others = chunk.split(b"\n")
        begun.append(first)
        begun_bytes += len(first)
        if begun_bytes > _MOST_LINE_BYTES:
            raise InputFault(_TOO_LONG)
        if others:
            lines = [b"".join(begun), *others[:-1]]
            begun, begun_bytes = [others[-1]], len(others[-1])
            yield lines
    if last := b"".join(begun):
        yield [last]
