"""`make kafka` and `make redis` run a part until told to stop, and say in one line why they cannot."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import redis
from ticketgate.streams.parts.ports import free_port
from ticketgate.streams.parts.valkey import Valkey

COMMAND = (sys.executable, "-m", "ticketgate.streams.parts.foreground")


@pytest.mark.redis
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_told_to_stop_and_keeps_the_data(stop: signal.Signals, tmp_path: Path) -> None:
    port = free_port()
    command = [*COMMAND, "valkey", "--port", str(port), "--data", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert f"127.0.0.1:{port}" in running.stderr.readline()
        with redis.Redis(port=port) as client:
            client.set("claim", "kept")

        running.send_signal(stop)

        assert running.wait(timeout=20) == 0

    with Valkey(data=tmp_path, port=port) as again, redis.Redis.from_url(again.url) as client:
        assert client.get("claim") == b"kept"


@pytest.mark.redis
def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    with Valkey() as other:
        command = [*COMMAND, "valkey", "--port", str(other.port), "--data", str(tmp_path)]

        refused = subprocess.run(command, capture_output=True, text=True, check=False)

    assert refused.returncode == 4
    assert refused.stderr.count("\n") == 1
    assert "the port is taken" in refused.stderr


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = [*COMMAND, "valkey", "--port", str(free_port()), "--data", str(tmp_path / "file" / "data")]

    refused = subprocess.run(command, capture_output=True, text=True, check=False)

    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "choose a folder that can be written" in refused.stderr
