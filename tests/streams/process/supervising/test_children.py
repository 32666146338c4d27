"""What surrounds the processes: their environment, the port before them, orphans."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.process.supervising.child import environment_of_children, how_it_ended
from ticketgate.streams.process.supervising.orphans import reap_orphans
from ticketgate.streams.process.supervising.supervisor import supervise


def test_no_process_starts_threads_for_the_cores_of_others() -> None:
    found = environment_of_children({"PATH": "/bin", "OMP_NUM_THREADS": "3"}, threads=1)

    assert found["OPENBLAS_NUM_THREADS"] == found["RAYON_NUM_THREADS"] == "1"
    assert found["TOKENIZERS_PARALLELISM"] == "false"
    # What somebody set holds.
    assert found["OMP_NUM_THREADS"] == "3"
    assert found["PATH"] == "/bin"


def test_threads_that_were_asked_for_are_there() -> None:
    found = environment_of_children({}, threads=4)

    assert found["OMP_NUM_THREADS"] == "4"
    assert found["TOKENIZERS_PARALLELISM"] == "true"


@pytest.mark.parametrize(
    ("code", "said"), [(70, "with code 70"), (-signal.SIGKILL, "by SIGKILL"), (-99, "by signal 99")]
)
def test_an_end_is_said_as_people_know_it(code: int, said: str) -> None:
    assert how_it_ended(code) == said


async def test_a_port_that_is_taken_starts_no_process(tmp_path: Path) -> None:
    started = tmp_path / "started"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        settings = Settings.model_validate({"web_port": taken.getsockname()[1]})

        with pytest.raises(SettingsError, match="TICKETGATE_WEB_PORT: cannot listen on"):
            await supervise(settings, processes=2, command=["touch", str(started)])

    assert not started.exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux lists a process' children")
def test_an_orphan_is_fetched_at_the_second_look_and_nobody_of_ours() -> None:
    orphan, ours = _over(), _over()

    first = reap_orphans({ours.pid}, frozenset())
    assert orphan.pid in first
    reap_orphans({ours.pid}, {orphan.pid})

    assert not Path(f"/proc/{orphan.pid}").exists()
    assert Path(f"/proc/{ours.pid}").exists()
    assert [each.wait() for each in (orphan, ours)] == [0, 0]


# asyncio waits for each process in a thread, which ends with it.
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux lists a process' children")
def test_an_orphan_is_found_while_threads_come_and_go() -> None:
    orphan, enough = _over(), threading.Event()

    def come_and_go() -> None:
        while not enough.is_set():
            brief = threading.Thread(target=lambda: None)
            brief.start()
            brief.join()

    busy = [threading.Thread(target=come_and_go) for _ in range(3)]
    for each in busy:
        each.start()
    try:
        assert all(orphan.pid in reap_orphans((), ()) for _ in range(3_000))
    finally:
        enough.set()
        for each in busy:
            each.join()
        assert orphan.wait() == 0


def test_who_starts_a_process_of_several_by_hand_is_told() -> None:
    command = [sys.executable, "-m", "ticketgate.streams.cli.running.member"]

    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr.endswith("Error: `ticketgate worker --processes` starts this, and nobody else\n")


def _over() -> subprocess.Popen[bytes]:
    """A process that has ended, and of which nobody has fetched how."""
    found = subprocess.Popen([sys.executable, "-S", "-c", ""])
    deadline = time.monotonic() + 60
    while "State:\tZ" not in Path(f"/proc/{found.pid}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found
