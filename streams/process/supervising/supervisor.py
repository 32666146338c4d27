"""Several worker processes from start to signal.

Promise: `supervise` returns once every process has ended: by a signal, within the drain's grace and a little; or
because all of them were refused, as by a bad policy. A process that ends takes no other along, and is started again.
If the supervisor itself is killed, its processes drain (ticketgate.streams.process.member).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from ticketgate.streams.config.overdue import Steps
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.process.exposure import tell_exposures
from ticketgate.streams.process.member import Membership
from ticketgate.streams.process.preflight import needs_funnel, port_taken, require_funnel
from ticketgate.streams.process.process_watch import ProcessWatch, end_with
from ticketgate.streams.process.serving import open_web
from ticketgate.streams.process.supervising.asking import Door
from ticketgate.streams.process.supervising.backoff import Backoff
from ticketgate.streams.process.supervising.child import Child, environment_of_children
from ticketgate.streams.process.supervising.keeper import EXIT_REFUSED, Keeper
from ticketgate.streams.process.supervising.orphans import reap_forever
from ticketgate.streams.process.supervising.pages import Pages, Place

log = logging.getLogger(__name__)

# A worker has ended this long after its grace (its own bound is 10 s); one that has not is killed.
END_BOUND_S = 12.0
# A process that is to end at once has nothing to wait for.
HURRY_S = 2.0
# Where the system's folder for temporary files has a name that no socket can have: the kernel takes 107 bytes, macOS
# 103.
_MOST_SOCKET_BYTES = 100


class Supervisor:
    """The processes and their end. `run` once; `signalled` may be called at any time meanwhile."""

    def __init__(self, *, drain_s: float, hurry_s: float = HURRY_S) -> None:
        """drain_s: within which a process that was told to drain has ended."""
        self._drain_s, self._hurry_s = drain_s, hurry_s
        self._keepers: Sequence[Keeper] = ()
        self._stop, self._hurry = asyncio.Event(), asyncio.Event()
        self._code = 0

    async def run(self, keepers: Sequence[Keeper], *, on_stop: Callable[[], None] = lambda: None) -> int:
        """Keep the processes until a signal, or until all are refused; the exit code. on_stop: told before the first is
        told to drain."""
        self._keepers = keepers
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(keeper.run(), name=f"keep {keeper.name}") for keeper in keepers]
            await self._stop.wait()
            on_stop()
            for keeper in keepers:
                keeper.close()
            await self._all_ended(running)
        return self._code

    def ended(self) -> None:
        """A process ended; where all were refused, nothing comes of starting them again."""
        if self._keepers and all(keeper.is_refused for keeper in self._keepers):
            log.error("each process was refused; the last lines of each say why; ending")
            self._code = EXIT_REFUSED
            self._stop.set()

    def signalled(self, number: int) -> None:
        """SIGTERM or SIGINT: drain. Once more: end at once."""
        if not self._stop.is_set():
            log.info("%s: draining all processes", signal.Signals(number).name)
            self._stop.set()
        elif not self._hurry.is_set():
            log.warning(
                "a second signal: ending at once; what was not committed is decided again by whoever comes next"
            )
            self._code = 128 + number
            self._hurry.set()

    def hung_up(self) -> None:
        """SIGHUP: each looks at its policy."""
        for keeper in self._keepers:
            keeper.hang_up()

    async def _all_ended(self, running: Sequence[asyncio.Task[None]]) -> None:
        ended = asyncio.create_task(_all(running), name="all processes end")
        hurried = asyncio.create_task(self._hurry.wait(), name="a second signal")
        try:
            await asyncio.wait([ended, hurried], timeout=self._drain_s, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                for keeper in self._keepers:
                    keeper.end_now()
                await asyncio.wait([ended], timeout=self._hurry_s)
            if not ended.done():
                left = [f"{keeper.name} (process {keeper.pid})" for keeper in self._keepers if keeper.pid]
                log.warning("still not ended, and killed: %s", ", ".join(left))
                for keeper in self._keepers:
                    keeper.kill()
        finally:
            hurried.cancel()
            await ended


async def _all(running: Sequence[asyncio.Task[None]]) -> None:
    if running:
        await asyncio.wait(running)


async def supervise(
    settings: Settings,
    *,
    processes: int,
    command: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    backoff: Callable[[], Backoff] = Backoff,
) -> int:
    """Run `processes` of `command` (see ticketgate.streams.process.member for what each is told) until a signal.

    Returns the exit code. Raises SettingsError if the web port is taken, before any process was started.
    """
    folder = Path(_sockets_folder())
    drain_s = settings.drain_grace.total_seconds() + END_BOUND_S
    theirs = environment_of_children(environment, threads=settings.scorer_threads)
    supervisor = Supervisor(drain_s=drain_s)

    def start_of(name: str, socket: Path) -> Callable[[], Awaitable[Child]]:
        membership = Membership(name=name, settings=settings, socket=socket, ends_within_s=drain_s)
        return lambda: Child.start(command, membership, environment=theirs, say=_say)

    places = []
    for number in range(1, processes + 1):
        name, socket = f"worker {number}", folder / f"{number}.sock"
        keeper = Keeper(name, start=start_of(name, socket), ended=supervisor.ended, backoff=backoff())
        places.append(Place(keeper, Door(socket)))
    pages = Pages(places, settings)
    server = open_web(settings, health=pages.health, api=pages.api)
    beside: list[asyncio.Task[None]] = []
    try:
        try:
            await server.start()
        except OSError as err:
            raise port_taken(settings, err) from err
        # Once, and not by each process.
        tell_exposures(settings, require_funnel(settings) if needs_funnel(settings) else None)
        _listen(supervisor)
        beside = [
            asyncio.create_task(pages.watch(), name="watch the processes"),
            asyncio.create_task(ProcessWatch(Steps()).run(), name="watch the supervisor"),
            asyncio.create_task(
                reap_forever(lambda: {place.keeper.pid for place in places}), name="reap orphans"
            ),
        ]
        for task in beside:
            task.add_done_callback(end_with)
        return await supervisor.run([place.keeper for place in places], on_stop=pages.stopping)
    finally:
        for task in beside:
            task.remove_done_callback(end_with)
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*beside, return_exceptions=True)
        await server.stop()
        await pages.close()
        shutil.rmtree(folder, ignore_errors=True)


def _listen(supervisor: Supervisor) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.signalled, number)
    loop.add_signal_handler(signal.SIGHUP, supervisor.hung_up)


def _sockets_folder() -> str:
    """A folder that its owner alone enters."""
    folder = tempfile.mkdtemp(prefix="ticketgate-")
    if len(os.fsencode(folder)) <= _MOST_SOCKET_BYTES - len("/1000.sock"):
        return folder
    Path(folder).rmdir()
    return tempfile.mkdtemp(prefix="ticketgate-", dir="/tmp")


def _say(line: str) -> None:
    """A line of a process' log."""
    # One that cannot be written is lost, as a single worker's is.
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
