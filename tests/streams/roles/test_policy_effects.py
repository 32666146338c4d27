"""A policy's effects, carried out by a worker: once each, into Redis; what the funnel file does not name is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from redis import Redis
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment, Worker, ticket
from ...support.policies import SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

POLICY = (
    SEED_POLICY.read_text()
    + """
[[effects]]
when = "technical"
tool = "page_on_call"

[[effects]]
when = "billing"
tool = "refund"
"""
)

FUNNEL = """
[providers.desk]
adapter = "redis"
url = "{url}"
prefix = "{prefix}"

[tools.assign_queue]
provider = "desk"
contribution = "choice"
consequence = "reversible"
automatic = true
stands.choices_listed = "tests/delivery"
stands.selection_measured = "tests/delivery"
stands.undo_tried = "tests/delivery"

[tools.refund]
provider = "desk"
contribution = "choice"
consequence = "irreversible"
automatic = false
"""


def answers(**true: bool) -> dict[str, object]:
    labels = ("urgent", "review", "auto_reply", "billing", "technical")
    return {label: {"type": "noul", "noul": 0.9 if true.get(label) else 0.1} for label in labels}


@pytest.fixture
def desk(deploy: NewDeployment, tmp_path: Path, valkey: Valkey) -> Deployment:
    (tmp_path / "answers.json").write_text(
        json.dumps({"B-1": answers(billing=True), "T-1": answers(technical=True)})
    )
    (tmp_path / "policy.toml").write_text(POLICY)
    prefix = f"{tmp_path.name}:"
    (tmp_path / "funnel.toml").write_text(FUNNEL.format(url=valkey.url, prefix=prefix))
    return deploy(
        policy=str(tmp_path / "policy.toml"),
        scorer=f"fixed:{tmp_path / 'answers.json'}",
        funnel=str(tmp_path / "funnel.toml"),
        roles="decide,effects",
    )


def effects_in(valkey: Valkey, prefix: str) -> int:
    with Redis.from_url(valkey.url) as redis:
        return sum(int(str(redis.hlen(name))) for name in redis.scan_iter(match=f"{prefix}*"))


def settled(gate: Deployment, count: int, worker: Worker) -> list[dict[str, object]]:
    records = [json.loads(each.value) for each in gate.wait_for_records(count, "receipts") if each.value]
    return [each for each in records if each["effect_state"] != "prepared"]


def test_each_is_carried_out_once_however_often_its_ticket_comes(
    desk: Deployment, kafka: Kafka, valkey: Valkey, tmp_path: Path
) -> None:
    worker = desk.start_worker()
    worker.wait_ready()
    desk.send([ticket("B-1"), ticket("T-1"), ticket("B-1")])

    # Two assignments and one refund, each prepared and then told of.
    told = settled(desk, 6, worker)
    worker.stop()

    by_tool = sorted((str(each["subject"]), str(each["tool"]), str(each["effect_state"])) for each in told)
    assert by_tool == [
        ("B-1", "assign_queue", "committed"),
        ("B-1", "refund", "rejected"),
        ("T-1", "assign_queue", "committed"),
    ]
    assert effects_in(valkey, f"{tmp_path.name}:") == 2


def test_what_may_not_be_automatic_goes_to_a_person(desk: Deployment, valkey: Valkey) -> None:
    worker = desk.start_worker()
    worker.wait_ready()
    desk.send([ticket("B-1")])

    (record,) = [json.loads(each.value) for each in desk.wait_for_records(1, "review") if each.value]

    assert record["kind"] == "effect_receipt"
    assert record["verdict"]["status"] == "review"
    assert record["verdict"]["reasons"] == ["not_automatic:refund"]


def test_what_has_become_automatic_is_dispatched_anew_and_nothing_else_of_its_record(
    desk: Deployment, valkey: Valkey, tmp_path: Path
) -> None:
    worker = desk.start_worker()
    worker.wait_ready()
    desk.send([ticket("B-1")])
    (refused,) = [each for each in settled(desk, 4, worker) if each["tool"] == "refund"]
    worker.stop()
    funnel = (tmp_path / "funnel.toml").read_text()
    others, _, _ = funnel.partition("[tools.refund]")
    _, _, automatic = others.partition("[tools.assign_queue]")
    (tmp_path / "funnel.toml").write_text(f"{others}[tools.refund]{automatic}")
    desk.start_worker().wait_ready()

    done = desk.run("ledger", "dispatch", str(refused["idempotency_key"]), "--yes")

    assert done.returncode == 0, done.stderr
    told = sorted(f"{each['tool']} {each['effect_state']}" for each in settled(desk, 6, worker))
    assert told == ["assign_queue committed", "refund committed", "refund rejected"]
    assert effects_in(valkey, f"{tmp_path.name}:") == 2
    audited = desk.run("audit", "--json")
    books = json.loads(audited.stdout)
    assert (audited.returncode, books["dispatched"], books["outputs_unexplained"]) == (0, 1, 0)
    rebuilt = json.loads(desk.run("claims", "rebuild", "--dry-run", "--json").stdout)
    assert (rebuilt["present"], rebuilt["conflicts"]) == (1, 0)


def test_a_tool_that_the_file_does_not_name_is_left_to_other_consumers(desk: Deployment) -> None:
    worker = desk.start_worker()
    worker.wait_ready()
    desk.send([ticket("T-1")])

    desk.wait_for_records(2, "receipts")
    worker.wait_for_metric(1, "ticketgate_effects_total", result="not_ours")

    tools = {json.loads(each.value)["tool"] for each in desk.committed("receipts") if each.value}
    assert tools == {"assign_queue"}
