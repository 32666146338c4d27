"""One started process: its line, on which it is told things, its log, and its end.

Promise: what the process writes comes out under its name, a whole line at a time, as long as it has a place to go.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence

from ticketgate.streams.process.member import DRAIN, END_NOW, Membership

# A line that goes on for longer is given out in pieces.
MOST_LINE_BYTES = 64 * 1024
# What is still in the pipes of a process that ended; a grandchild that holds them open is not waited for.
LAST_WORDS_S = 1.0

Say = Callable[[str], None]


class Child:
    """A process that was started; `wait` must be awaited, and gives its exit code."""

    def __init__(self, process: Process, relays: Sequence[asyncio.Task[None]]) -> None:
        self._process, self._relays = process, relays

    @classmethod
    async def start(
        cls, command: Sequence[str], membership: Membership, *, environment: Mapping[str, str], say: Say
    ) -> Child:
        """Start `command` and tell it `membership`. say: takes each line of its log. Raises OSError."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=dict(environment),
            # Ctrl-C at the terminal is for the supervisor, which tells it to drain.
            start_new_session=True,
        )
        relays = [
            asyncio.create_task(_relay(stream, say, membership.name), name=f"log of {membership.name}")
            for stream in (process.stdout, process.stderr)
            if stream is not None
        ]
        child = cls(process, relays)
        child._tell(membership.to_bytes())
        return child

    @property
    def pid(self) -> int:
        """The process' id."""
        return self._process.pid

    async def wait(self) -> int:
        """Until it has ended; its exit code, or the negative number of the signal that ended it."""
        code = await self._process.wait()
        await asyncio.wait(self._relays, timeout=LAST_WORDS_S)
        for relay in self._relays:
            relay.cancel()
        return code

    def drain(self) -> None:
        """Have it drain and end."""
        self._tell(DRAIN)

    def end_now(self) -> None:
        """Have it end at once."""
        self._tell(END_NOW)

    def kill(self) -> None:
        """SIGKILL."""
        self._send(signal.SIGKILL)

    def hang_up(self) -> None:
        """SIGHUP: a worker looks at its policy."""
        self._send(signal.SIGHUP)

    def _tell(self, content: bytes) -> None:
        if self._process.stdin is not None:
            # One that has ended or closed its line hears nothing more; its end is told by `wait`.
            with contextlib.suppress(OSError, RuntimeError):
                self._process.stdin.write(content)

    def _send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)


async def _relay(stream: asyncio.StreamReader, say: Say, name: str) -> None:
    rest = b""
    while part := await stream.read(MOST_LINE_BYTES):
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            say(f"[{name}] {_text(line)}")
        if len(rest) >= MOST_LINE_BYTES:
            say(f"[{name}] {_text(rest)}")
            rest = b""
    if rest:
        say(f"[{name}] {_text(rest)}")


def _text(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")


def how_it_ended(code: int) -> str:
    """`with code 70`, `by SIGKILL`."""
    if code >= 0:
        return f"with code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


# Each by which a library chooses how many threads it starts: for as many cores as there are, if none says otherwise.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")


def environment_of_children(environment: Mapping[str, str] = os.environ, *, threads: int) -> dict[str, str]:
    """The environment in which no process starts threads for the cores of the others, unless it says so itself.

    threads: of one inference; 1 keeps the tokenizers in the thread that asks them, too.
    """
    wanted: dict[str, str] = dict.fromkeys(_THREADS, str(threads))
    wanted["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
    return {**wanted, **environment}
