"""One child process of the demo or the tests: started, watched until it answers, stopped by its id.

Promise: `start` returns only once the part answers, or raises with the tail of its log; whatever was started
ends with `close`, and at the latest with this process, however it ends (see guard.py).
Relies on: the command stays in the foreground and binds 127.0.0.1.
"""

import contextlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from ticketgate.streams.parts import guard
from ticketgate.streams.parts.failures import PartFailed
from ticketgate.streams.parts.ports import HOST, is_free

log = logging.getLogger(__name__)

POLL_S = 0.05


class Process:
    """A part's process. Not thread-safe; `start` blocks, so call it by `asyncio.to_thread` from a loop.

    `command` is the whole command line; `ports` are those of 127.0.0.1 that it will listen on; `log_file` takes its
    output; `temporary` folders are removed if this process dies before it has stopped the part.
    """

    def __init__(
        self,
        *,
        part: str,
        command: Sequence[str],
        ports: Sequence[int],
        log_file: Path,
        is_ready: Callable[[], bool],
        start_timeout_s: float,
        temporary: Sequence[Path] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._part = part
        self._environment = environment
        self._command = tuple(command)
        self._ports = tuple(ports)
        self._is_ready = is_ready
        self._start_timeout_s = start_timeout_s
        self._temporary = tuple(temporary)
        self._child: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self.log_file = log_file

    @property
    def pid(self) -> int:
        """The id of the running process; `RuntimeError` if none runs."""
        return self._running().pid

    @property
    def is_running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self._child is not None and self._child.poll() is None

    def launch(self) -> None:
        """Start the process without waiting for it; `wait_ready` waits. `PartFailed` if a port is taken."""
        if self.is_running:
            raise RuntimeError(f"{self._part} runs already, as process {self.pid}")
        # Else whoever listens there would answer in the part's place, and the part be taken for ready.
        for port in self._ports:
            if not is_free(port):
                raise PartFailed(
                    self._part, f"cannot listen on {HOST}:{port}: the port is taken; choose another"
                )
        self._release_guard()
        # Before the child, so that there is no moment in which a child lives unguarded.
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(guard.__file__).resolve()), *map(str, self._temporary)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        owners_folder(self.log_file.parent)
        with open_log(self.log_file) as out:
            # A session of its own: Ctrl-C at the terminal is for the worker, which drains, not its broker.
            self._child = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
            )
        told = self._guard.stdin
        if told is not None:
            told.write(b"%d\n" % self._child.pid)
            told.flush()
        log.debug("%s started as process %d, log %s", self._part, self._child.pid, self.log_file)

    def wait_ready(self) -> None:
        """Block until the part answers; `PartFailed` if it ends before, or the start time-out does."""
        deadline = time.monotonic() + self._start_timeout_s
        while not self._is_ready():
            if not self.is_running:
                code = self._child.returncode if self._child is not None else None
                self.kill()
                raise PartFailed(
                    self._part, f"ended with code {code} before it answered", log_file=self.log_file
                )
            if time.monotonic() > deadline:
                self.kill()
                reason = f"did not answer within {self._start_timeout_s:g} s"
                raise PartFailed(self._part, reason, log_file=self.log_file)
            time.sleep(POLL_S)

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM); `wait_stopped` waits. Nothing happens if none runs."""
        if self._child is not None and self.is_running:
            self.resume()  # a stopped process never sees SIGTERM
            self._child.terminate()

    def wait_stopped(self, *, deadline: float) -> None:
        """Wait until the process has ended; killed at `deadline`, in seconds of `time.monotonic`."""
        if self._child is not None and self.is_running:
            try:
                self._child.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("%s did not stop in time; killed", self._part)
        self.kill()

    def kill(self) -> None:
        """End the process at once (SIGKILL) and wait until it is gone. Nothing happens if none runs."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
        self._release_guard()

    def pause(self) -> None:
        """Stop the process in its tracks (SIGSTOP); returns once it stands still."""
        child = self._running()
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Let a paused process run on (SIGCONT)."""
        self._running().send_signal(signal.SIGCONT)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            raise RuntimeError(f"{self._part} does not run; call start()")
        return self._child

    def _release_guard(self) -> None:
        if self._guard is None:
            return
        # A guard that is gone already leaves a broken pipe: there is nothing to release then.
        with contextlib.suppress(BrokenPipeError):
            self._guard.communicate(b"x")
        self._guard = None


class Part:
    """What Kafka, Valkey and Tansu share as parts: start, stop, kill, pause, resume, and `with`.

    `own_folder` is a temporary folder that `close` removes; None if the data are the caller's to keep.
    """

    # A broker that is told to stop flushes and leaves its group; beyond this it hangs.
    STOP_GRACE_S = 20.0

    def __init__(self, process: Process, *, own_folder: Path | None) -> None:
        self.process = process
        self._own_folder = own_folder

    @property
    def pid(self) -> int:
        """The id of the running process; `RuntimeError` if none runs."""
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self.process.is_running

    @property
    def log_file(self) -> Path:
        """Where the part's standard output and error go."""
        return self.process.log_file

    def start(self) -> None:
        """Start, or start again on the same port and data; returns once the part answers."""
        self.process.launch()
        self.process.wait_ready()

    def stop(self) -> None:
        """End in order; data and port stay, for `start`."""
        deadline = time.monotonic() + self.STOP_GRACE_S
        self.process.terminate()
        self.process.wait_stopped(deadline=deadline)

    def kill(self) -> None:
        """SIGKILL; data and port stay, for `start`."""
        self.process.kill()

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing answers."""
        self.process.pause()

    def resume(self) -> None:
        """SIGCONT after `pause`."""
        self.process.resume()

    def close(self) -> None:
        """End for good: in order if the data folder is the caller's, else at once, and the data go."""
        if self._own_folder is None:
            self.stop()
            return
        self.kill()
        remove(self._own_folder)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def temporary_folder(part: str) -> Path:
    """A fresh folder for a part's data, readable by this user only."""
    return Path(tempfile.mkdtemp(prefix=f"ticketgate-{part}-"))


def owners_folder(folder: Path) -> None:
    """Make a folder for a part's data, or take one over, that nobody but its owner reads: tickets stand in it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Whose it is otherwise has to know.
    if folder.stat().st_uid == os.getuid():
        folder.chmod(0o700)


def open_log(path: Path) -> BinaryIO:
    """A part's log to append to, for its owner alone."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "ab")


def remove(folder: Path) -> None:
    """Remove a folder with all in it; what cannot be removed is left and logged."""
    shutil.rmtree(
        folder, onerror=lambda _, path, error: log.warning("%s was not removed: %s", path, error[1])
    )
