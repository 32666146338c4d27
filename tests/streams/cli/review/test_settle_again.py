"""`ticketgate review settle` that ends at any of its steps, and who runs it again: one effect, and told so."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.settling.signing import sign
from ticketgate.codecs.records.settlement import Action

from ....support.deployment import Sent, ticket
from ....support.desk import RIGHT, Desk, desk_settings
from ...conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
STEPPING = str(Path(__file__).parents[3] / "support" / "stepping_desk.py")

# By step and how often it is reached; at the second look it was sent, and is waited for.
BEFORE = [("before look", 1), ("after under_way", 1), ("before send", 1), ("before kafka.send", 1)]
SENT = [("after kafka.send", 1), ("after send", 1), ("looked", 2)]
FEW = [("before kafka.send", 1), ("after kafka.send", 1), ("looked", 2)]


def accept(name: str, *more: str) -> list[str]:
    labels = [part for label in RIGHT for part in ("--label", label)]
    return ["review", "settle", name, "--accept", *labels, "--yes", "--json", "--as", "Ada", *more]


def desk_of(deploy: NewDeployment, folder: Path, names: list[str], *, roles: str = "decide,settle") -> Desk:
    desk = Desk(deploy(**desk_settings(folder, names, review_view=str(folder / "view.sqlite3"))), folder)
    desk.deployment.start_worker(ROLES=roles)
    desk.deployment.send([ticket(name) for name in names])
    desk.reviews(len(names))
    return desk


@contextmanager
def struck(desk: Desk, name: str, step: tuple[str, int], strike: signal.Signals) -> Iterator[Any]:
    """The command, once it was struck at that step; it is gone afterwards."""
    armed = desk.folder / f"{name}.json"
    armed.write_text(json.dumps({"at": step[0], "nth": step[1], "signal": int(strike)}))
    environment = {
        **desk.deployment.environment,
        "STEP_FILE": str(armed),
        "SENT_FILE": str(desk.folder / f"{name}.sent"),
    }
    running = subprocess.Popen(
        [sys.executable, STEPPING, *accept(name)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        desk.wait_until(lambda: not armed.exists() or running.poll() is not None)
        assert not armed.exists(), running.communicate()
        yield running
    finally:
        running.send_signal(signal.SIGCONT)
        running.kill()
        running.communicate()


def again(desk: Desk, name: str) -> dict[str, Any]:
    """What the person is told who runs the command again."""
    done = desk.deployment.run(*accept(name))
    assert done.returncode == 0, (done.stdout, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "steps", [pytest.param(FEW, id="few"), pytest.param([*BEFORE, *SENT], id="all", marks=pytest.mark.chaos)]
)
def test_the_same_command_again_after_a_kill_settles_once(
    deploy: NewDeployment, tmp_path: Path, steps: list[tuple[str, int]]
) -> None:
    names = [f"T{place}" for place in range(len(steps))]
    desk = desk_of(deploy, tmp_path, names)
    for name, step in zip(names, steps, strict=True):
        with struck(desk, name, step, signal.SIGKILL):
            pass

        told = again(desk, name)

        assert (told["outcome"], told["sent"]) == ("accepted", step in BEFORE), step

    assert len(desk.deployment.committed("settlements")) == len(names)
    assert len(desk.deployment.committed("settled")) == len(names)

    # What a network held of those that were not sent comes after all.
    held = [name for name, step in zip(names, steps, strict=True) if step == ("before kafka.send", 1)]
    late = [Sent((tmp_path / f"{name}.sent").read_bytes(), key=name.encode()) for name in held]
    desk.deployment.send(late, topic="settlements")
    outcomes = [each["outcome"] for each in desk.told(len(names) + len(held)).values()]

    assert sorted(outcomes) == ["accepted"] * len(names) + ["already_settled"] * len(held)
    assert sorted(each["ticket_id"] for each in desk.dispatched()) == sorted(names)


@pytest.mark.chaos
@pytest.mark.parametrize("step", [*BEFORE, *SENT], ids=lambda step: f"{step[0]} {step[1]}")
def test_one_that_stands_still_and_goes_on_later_is_told_of_the_same_settlement(
    deploy: NewDeployment, tmp_path: Path, step: tuple[str, int]
) -> None:
    desk = desk_of(deploy, tmp_path, ["A"])
    with struck(desk, "A", step, signal.SIGSTOP) as running:
        told = again(desk, "A")
        running.send_signal(signal.SIGCONT)
        late, err = running.communicate(timeout=60)

    if running.returncode == 4:
        # It stood still for longer than a delivery may take.
        assert "run the same command again" in err
    else:
        assert running.returncode == 0, err
        assert json.loads(late)["settlement"] == told["settlement"]
    assert again(desk, "A")["settlement"] == told["settlement"]
    assert len(desk.dispatched()) == 1


@pytest.mark.chaos
def test_ctrl_c_is_told_plainly_with_how_to_go_on(deploy: NewDeployment, tmp_path: Path) -> None:
    said = {
        "A": (("before look", 1), "nothing was sent"),
        "B": (("after kafka.send", 1), "not known whether the settlement was sent"),
        "C": (("looked", 2), "the settlement was sent"),
    }
    desk = desk_of(deploy, tmp_path, [*said])
    for name, (step, says) in said.items():
        with struck(desk, name, step, signal.SIGINT) as running:
            _, err = running.communicate(timeout=60)

        assert running.returncode == 130
        assert says in err
        assert "Traceback" not in err
        assert again(desk, name)["outcome"] == "accepted"
    assert len(desk.dispatched()) == len(said)


def test_while_nobody_takes_it_nothing_is_sent_beside_it(deploy: NewDeployment, tmp_path: Path) -> None:
    desk = desk_of(deploy, tmp_path, ["A", "B"], roles="decide")
    with struck(desk, "A", ("after kafka.send", 1), signal.SIGKILL):
        pass
    by_nobody = replace(desk.key(), signing=b"f" * 32)
    desk.send(sign(desk.settlement(desk.reviews(2)["B"], Action.REJECT), by_nobody))

    shown = desk.deployment.run(*[each for each in accept("A") if each != "--yes"])
    other = desk.deployment.run("review", "settle", "A", "--reject", "--yes", "--json", "--as", "Bob")
    desk.deployment.start_worker(ROLES="settle")
    told = again(desk, "A")
    unhindered = again(desk, "B")
    refused = desk.deployment.run("review", "settle", "A", "--reject", "--yes", "--as", "Bob")

    assert "you sent this before" in shown.stderr
    assert other.returncode == 3
    assert json.loads(other.stdout)["under_way"]["id"] == told["settlement"]
    assert "nothing was sent: another settlement of it is under way, accept by" in other.stderr
    assert (told["outcome"], unhindered["outcome"]) == ("accepted", "accepted")
    assert refused.returncode == 2
    assert f"does not wait: it is accepted by {told['by']}" in refused.stderr
    assert len(desk.deployment.committed("settlements")) == 3
