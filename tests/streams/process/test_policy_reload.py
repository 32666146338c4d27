"""A policy that changes under a running worker: taken over between batches, never half, never by a bad file."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.policy import Policy, load_policy, parse_policy
from ticketgate.agents.workbench.policy.check import check
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.process.reload import PolicyReload

from ...support.deployment import Worker, ticket
from ...support.policies import SEED_POLICY
from ..conftest import NewDeployment

SEED = SEED_POLICY.read_text(encoding="utf-8")


def version(number: int) -> str:
    """The seed's policy with another version and another threshold."""
    threshold = 0.3 + 0.02 * number
    return SEED.replace('version = "1"', f'version = "{number}"').replace(
        "threshold = 0.5", f"threshold = {threshold:.2f}"
    )


class Watched:
    """A policy file and its watch, looked at by hand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_text(version(0), encoding="utf-8")
        self.adopted: list[Policy] = []
        self.telemetry = Telemetry()
        self.reload = PolicyReload(
            path,
            in_force=load_policy(path),
            adopt=self.adopted.append,
            telemetry=self.telemetry,
            interval_s=3600,
        )

    async def write(self, text: str) -> None:
        self.path.write_text(text, encoding="utf-8")
        await self.reload.look()

    @property
    def versions(self) -> list[str]:
        return [policy.version for policy in self.adopted]

    def counted(self, name: str) -> float:
        exposed = self.telemetry.expose(is_ready=True)[0].decode()
        return next(float(line.split()[1]) for line in exposed.splitlines() if line.startswith(name + " "))


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setattr("ticketgate.codecs.files.watched.SETTLE_S", 0.0)
    return Watched(tmp_path / "policy.toml")


async def test_a_changed_file_is_taken_over_once(watched: Watched) -> None:
    await watched.reload.look()
    await watched.write(version(1))
    await watched.reload.look()

    assert watched.versions == ["1"]
    assert watched.counted("ticketgate_policy_reloads_total") == 1


async def test_a_comment_is_no_change(watched: Watched) -> None:
    await watched.write("# a comment\n" + version(0))

    assert watched.versions == []
    assert watched.reload.error is None


async def test_a_bad_file_keeps_the_old_policy_and_is_told_once_a_change(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "ticketgate"):
        await watched.write(version(1).replace('"urgent", "review"', '"urgent", "revew"'))
        await watched.reload.look()
        await watched.write("not a policy")
        await watched.reload.look()

    assert watched.versions == []
    assert len(caplog.records) == 2
    assert 'no question "revew"' in caplog.messages[0]
    assert "version 0" in caplog.messages[0]
    assert watched.reload.error is not None
    assert "not TOML" in watched.reload.error
    assert watched.counted("ticketgate_policy_reload_failures_total") == 2


async def test_a_missing_file_keeps_the_old_policy(watched: Watched) -> None:
    watched.path.unlink()
    await watched.reload.look()
    await watched.reload.look()

    assert watched.versions == []
    assert "No such file" in (watched.reload.error or "")
    assert watched.counted("ticketgate_policy_reload_failures_total") == 1


@pytest.mark.parametrize("mended", [version(0), version(2)], ids=["the old file back", "a new one"])
async def test_a_mended_file_ends_the_complaint(watched: Watched, mended: str) -> None:
    await watched.write("[")

    await watched.write(mended)

    assert watched.reload.error is None
    assert watched.versions == ([] if mended == version(0) else ["2"])


async def test_a_file_that_is_still_being_written_is_not_taken_over(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = version(1)[: version(1).index("[[rules]]")]
    assert parse_policy(half).rules == (), "half a policy is a policy without rules"
    watched.path.write_text(half, encoding="utf-8")

    async def meanwhile(_: float) -> None:
        watched.path.write_text(version(1), encoding="utf-8")

    monkeypatch.setattr(asyncio, "sleep", meanwhile)
    await watched.reload.look()
    before = watched.versions
    await watched.reload.look()

    assert before == []
    assert watched.versions == ["1"]
    assert watched.adopted[0].rules


async def test_a_hangup_makes_it_look_at_once(watched: Watched) -> None:
    watched.reload.start()
    try:
        await until(lambda: watched.reload._files.has_judged)
        watched.path.write_text(version(1), encoding="utf-8")

        os.kill(os.getpid(), signal.SIGHUP)

        await until(lambda: watched.versions == ["1"])
    finally:
        await watched.reload.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the condition tells nobody
            await asyncio.sleep(0.01)


# Under load, on Apache Kafka


def probabilities(index: int) -> dict[str, dict[str, object]]:
    """Answers that another threshold selects other labels from."""
    labels = ("urgent", "review", "auto_reply", "billing", "technical")
    return {
        name: {"type": "noul", "noul": ((index * 37 + place * 29) % 100) / 100}
        for place, name in enumerate(labels)
    }


def change(path: Path, text: str) -> None:
    """As one should: another file, renamed over the old one."""
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


@pytest.mark.kafka
@pytest.mark.redis
def test_ten_thousand_tickets_while_the_policy_changes_twenty_times(
    deploy: NewDeployment, tmp_path: Path
) -> None:
    tickets, changes = 10_000, 20
    answers, path = tmp_path / "answers.json", tmp_path / "policy.toml"
    answers.write_text(json.dumps({f"T-{n}": probabilities(n) for n in range(tickets)}), encoding="utf-8")
    change(path, version(0))
    live = {load_policy(path).hash: load_policy(path)}
    gate = deploy(policy=str(path), scorer=f"fixed:{answers}", policy_poll="100ms")
    workers = [gate.start_worker() for _ in range(2)]
    for worker in workers:
        worker.wait_ready()
    share, broken = tickets // (changes + 1), 0

    for number in range(1, changes + 1):
        first = (number - 1) * share
        gate.send(ticket(f"T-{n}") for n in range(first, first + share))
        if number % 4 == 0:
            broken += 1
            change(path, version(number).replace("implies", "implys"))
            wait_for_each(workers, lambda state: "implys" in (state["policy_error"] or ""))
        else:
            change(path, version(number))
            policy = load_policy(path)
            live[policy.hash] = policy
            wait_for_each(
                workers,
                lambda state, wanted=policy.hash: (
                    state["policy"]["hash"] == wanted and state["policy_error"] is None
                ),
            )
    gate.send(ticket(f"T-{n}") for n in range(changes * share, tickets))

    committed = gate.wait_for_records(tickets, "dispatch", "review")
    records = [json.loads(record.value or b"") for record in committed]
    assert Counter(record["ticket_id"] for record in records) == Counter(f"T-{n}" for n in range(tickets))
    used = Counter(record["policy"]["hash"] for record in records)
    assert set(used) <= set(live)
    assert len(used) > changes // 2, used
    for record in records:
        judged = check({"answers": record["answers"]}, policy=live[record["policy"]["hash"]])
        assert record["selected"] == list(judged.selected)
        assert [each["rule"] for each in record["violations"]] == [each.rule for each in judged.violations]
    for worker in workers:
        assert "implys" in worker.wait_ready()["policy_error"], "the last change was a broken one"
        assert worker.metric("ticketgate_policy_reload_failures_total") == broken
        assert worker.metric("ticketgate_policy_reloads_total") == changes - broken
        assert worker.metric("ticketgate_policy_info") == 1


def wait_for_each(workers: list[Worker], condition: Callable[[dict[str, Any]], bool]) -> None:
    for worker in workers:
        worker.wait_for(lambda state: bool(state) and condition(state), 30)
