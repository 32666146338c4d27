"""The product's own command and port, as the rows of commands use them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ticketgate.streams.parts.ports import HOST, free_port

COMMAND = Path(sys.executable).with_name("ticketgate")
START_S = 120.0

T = TypeVar("T")


@cache
def run(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """One command of ours, what it prints and its exit code. `given`: its standard input. Run once for all rows."""
    return subprocess.run(
        [COMMAND, *arguments], input=given, capture_output=True, text=True, check=False, timeout=START_S
    )


def printed(*arguments: str, given: str | None = None) -> Any:
    """What a command prints as JSON."""
    done = run(*arguments, given=given)
    return json.loads(done.stdout) if done.returncode == 0 else (done.returncode, done.stderr)


def lines(*arguments: str, given: str | None = None) -> list[str]:
    """The lines that a command prints, blanks between columns as one."""
    return [" ".join(line.split()) for line in run(*arguments, given=given).stdout.splitlines()]


def served(act: Callable[[str], T], **settings: str) -> T:
    """What `act` makes of the URL of a `ticketgate serve`."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TICKETGATE_")}
    environment |= {"TICKETGATE_WEB_PORT": str(port), "TICKETGATE_WEB_BIND": HOST, **settings}
    url = f"http://{HOST}:{port}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([COMMAND, "serve"], env=environment, stdout=log, stderr=log)
        try:
            _wait(url, process)
            return act(url)
        finally:
            process.terminate()
            process.wait(30)


def post(url: str, body: Any) -> tuple[int, Any]:
    """The status and the JSON of an answer."""
    asked = urllib.request.Request(  # noqa: S310 - ours
        f"{url}/v1/systemone", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(asked, timeout=60) as got:  # noqa: S310 - ours
            return got.status, json.loads(got.read())
    except urllib.error.HTTPError as err:
        with err:
            return err.code, json.loads(err.read())


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5):  # noqa: S310 - ours
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"`ticketgate serve` is not there; exit code {process.poll()}")


@cache
def written(text: str, name: str) -> str:
    """The path of a file with that text, for as long as the process lives."""
    folder = tempfile.mkdtemp(prefix="seeds-")
    path = Path(folder) / name
    path.write_text(text, "utf-8")
    return str(path)
