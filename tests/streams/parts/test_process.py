"""What is started is stopped: by the one who started it, or when that one dies."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ticketgate.streams.parts.failures import PartFailed
from ticketgate.streams.parts.ports import free_port
from ticketgate.streams.parts.process import Process

SLEEPS = (sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)")
DEADLINE_S = 15.0


def process(
    folder: Path, *, command: tuple[str, ...] = SLEEPS, is_ready: Callable[[], bool] = lambda: True
) -> Process:
    return Process(
        part="sleeper",
        command=command,
        ports=(),
        log_file=folder / "log",
        is_ready=is_ready,
        start_timeout_s=1.0,
    )


def wait_until(holds: Callable[[], bool], *, what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {DEADLINE_S} s"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_kill_leaves_no_process(tmp_path: Path) -> None:
    sleeper = process(tmp_path)
    sleeper.launch()
    pid = sleeper.pid

    sleeper.kill()

    assert not sleeper.is_running
    assert not is_alive(pid)


def test_a_process_that_ignores_sigterm_is_killed_at_the_deadline(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    sleeper = process(tmp_path, command=(sys.executable, "-c", deaf))
    sleeper.launch()
    wait_until(lambda: "up" in sleeper.log_file.read_text(), what="the process came up")

    sleeper.terminate()
    sleeper.wait_stopped(deadline=time.monotonic() + 0.1)

    assert not sleeper.is_running


def test_a_paused_process_can_be_stopped(tmp_path: Path) -> None:
    sleeper = process(tmp_path)
    sleeper.launch()
    sleeper.pause()

    sleeper.terminate()
    sleeper.wait_stopped(deadline=time.monotonic() + DEADLINE_S)

    assert not sleeper.is_running


def test_a_process_that_ends_early_is_told_with_its_last_words(tmp_path: Path) -> None:
    sleeper = process(
        tmp_path,
        command=(sys.executable, "-c", "raise SystemExit('no such port')"),
        is_ready=lambda: False,
    )
    sleeper.launch()

    with pytest.raises(PartFailed, match=r"sleeper ended with code 1 before it answered(.|\n)*no such port"):
        sleeper.wait_ready()


def test_a_process_that_never_answers_is_killed(tmp_path: Path) -> None:
    sleeper = process(tmp_path, is_ready=lambda: False)
    sleeper.launch()

    with pytest.raises(PartFailed, match="did not answer within 1 s"):
        sleeper.wait_ready()

    assert not sleeper.is_running


def test_a_process_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    sleeper = process(tmp_path)
    thread = threading.Thread(target=sleeper.launch)
    thread.start()
    thread.join()

    try:
        time_to_die = time.monotonic() + 0.3
        wait_until(lambda: time.monotonic() > time_to_die, what="time passed")
        assert sleeper.is_running
    finally:
        sleeper.kill()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_killed_starter_takes_its_part_and_data_with_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    starter = f"""
import sys, time
from pathlib import Path
from ticketgate.streams.parts.process import Process
part = Process(part="p", command={SLEEPS!r}, ports=(), log_file=Path({str(data / "log")!r}), is_ready=lambda: True,
               start_timeout_s=5.0, temporary=(Path({str(data)!r}),))
part.launch()
print(part.pid, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)

        parent.send_signal(signal.SIGKILL)

    wait_until(lambda: not is_alive(pid), what="the part died")
    wait_until(lambda: not data.exists(), what="its data went")


def test_free_ports_differ_and_lie_below_those_of_outgoing_connections() -> None:
    ports = {free_port() for _ in range(20)}

    assert len(ports) == 20
    assert max(ports) < 32_768
