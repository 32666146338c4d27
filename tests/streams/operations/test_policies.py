"""Every decision's policy can be shown again by its hash, and judges the decision as it did."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from aiokafka.admin import AIOKafkaAdminClient
from ticketgate.agents.policy import Policy, load_policy, parse_policy
from ticketgate.agents.workbench.policy.rejudge import verdict_by
from ticketgate.codecs.records.in_force import InForceRecord
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.operations.policies import KeptPolicies

from ...support.deciding import SUPPORT
from ...support.deployment import Deployment, Worker, ticket
from ...support.desk import desk_settings
from ...support.policies import SEED_POLICY
from ..conftest import NewDeployment

ROOT = Path(__file__).parents[3]
# The labels come from a schema's file, so that the policy's own file does not say all.
SCHEMA = {
    "type": "object",
    "properties": {"urgent": {"type": "boolean", "description": "Must this be handled today?"}},
}
URGENT = '[questions.urgent]\ntype = "noul"\ninstructions = "Must this be handled today?"\n'


def kept(deployment: Deployment) -> list[tuple[str, bytes]]:
    """What lies in the topic, keys and values."""
    return [((each.key or b"").decode(), each.value or b"") for each in deployment.committed("policies")]


def shown(deployment: Deployment, prefix: str) -> dict[str, Any]:
    ran = deployment.run("policy", "show", "--hash", prefix, "--json")
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def in_force(worker: Worker, policy: Policy) -> None:
    worker.wait_for(
        lambda state: state.get("policy", {}).get("hash") == policy.hash and state["policy_not_kept"] is None
    )


@pytest.mark.kafka
@pytest.mark.redis
def test_a_policy_that_is_gone_from_all_files_judges_its_decisions_again(
    deploy: NewDeployment, tmp_path: Path
) -> None:
    gate = deploy(**desk_settings(tmp_path, ["A", "B"], policy_author="p-7"))
    file = tmp_path / "policy.toml"
    (tmp_path / "labels.json").write_text(json.dumps(SCHEMA))
    file.write_text('schema = "labels.json"\n' + SUPPORT.replace(URGENT, ""))
    first = load_policy(file)
    worker = gate.start_worker()
    gate.send([ticket("A")])
    (decision,) = (json.loads(each.value or b"") for each in gate.wait_for_records(1, "review"))
    # Without its first rule the same answers are accepted, and nothing is left of how it was.
    file.write_text(SUPPORT.replace('[[rules]]\nimplies = ["urgent", "review"]\n', ""))
    (tmp_path / "labels.json").unlink()
    second = load_policy(file)
    in_force(worker, second)
    gate.start_worker().wait_ready()
    gate.send([ticket("B")])
    (other,) = (json.loads(each.value or b"") for each in gate.wait_for_records(1, "dispatch"))
    before = kept(gate)
    worker.stop()
    in_force(gate.start_worker(), second)

    told = shown(gate, decision["policy"]["hash"][:10])
    again = parse_policy(json.dumps(told["document"]))

    assert (decision["policy"]["hash"], other["policy"]["hash"]) == (first.hash, second.hash)
    assert again.hash == first.hash
    status, _, reasons = verdict_by(decision, again)
    assert (status, list(reasons)) == (decision["verdict"]["status"], decision["verdict"]["reasons"])
    assert verdict_by(decision, second)[0] == "accept"
    assert [(each["by"], each["file"], each["namespace"]) for each in told["in_force"]] == [
        ("p-7", "policy.toml", gate.name)
    ]
    # A worker that starts with what is in force says nothing new.
    assert [key.partition("@")[0] for key, _ in before] == [first.hash, first.hash, second.hash, second.hash]
    assert kept(gate) == before
    _is_shown_in_words(gate, first)
    _is_taken_by_name(gate, tmp_path, first, decision)


def _is_shown_in_words(gate: Deployment, first: Policy) -> None:
    plain = gate.run("policy", "show", f"hash:{first.hash}")
    assert f"hash: {first.hash}" in plain.stdout
    assert "UTC by p-7, from policy.toml on " in plain.stdout
    assert "urgent requires review" in plain.stdout
    none = gate.run("policy", "show", "--hash", "0" * 64)
    assert none.returncode == 2
    assert first.hash[:12] in none.stderr


def _is_taken_by_name(gate: Deployment, folder: Path, first: Policy, decision: dict[str, Any]) -> None:
    """It is compared with today's over the decision of then; and as a file it is itself again."""
    (folder / "decisions.jsonl").write_text(json.dumps(decision) + "\n")
    new, recorded = str(folder / "policy.toml"), str(folder / "decisions.jsonl")
    diff = gate.run("policy", "diff", f"hash:{first.hash[:12]}", new, "--decisions", recorded, "--json")
    assert json.loads(diff.stdout)["decisions"]["changed"] == {"review to accept": 1}
    document = gate.run("policy", "show", "--hash", first.hash, "--document").stdout
    (folder / "then.json").write_text(document)
    assert load_policy(folder / "then.json").hash == first.hash


@pytest.mark.kafka
@pytest.mark.redis
def test_without_the_topic_tickets_are_decided_and_it_is_said_and_healed(
    deploy: NewDeployment, tmp_path: Path
) -> None:
    settings = desk_settings(tmp_path, ["A"], condition_interval="500ms", policy_author="p-7")
    gate = deploy(**settings)
    name = gate.topic("policies")
    delete(gate, name)
    worker = gate.start_worker()
    gate.send([ticket("A")])

    gate.wait_for_records(1, "review")
    worker.wait_for(lambda state: state.get("ready") and name in (state["policy_not_kept"] or ""))
    missing = gate.run("policy", "show", "--hash", "ab")
    doctor = gate.run("doctor", "--json")
    gate.create_topics()
    in_force(worker, load_policy(tmp_path / "policy.toml"))
    first = kept(gate)
    delete(gate, name)
    worker.wait_for(lambda state: name in (state.get("policy_not_kept") or ""))
    gate.create_topics()
    in_force(worker, load_policy(tmp_path / "policy.toml"))

    assert missing.returncode == 2
    assert "topics create" in missing.stderr
    warned = [json.loads(line) for line in doctor.stdout.splitlines()]
    assert any(each["status"] == "warning" and name in each["what"] for each in warned)
    assert len(first) == 2
    assert kept(gate)[0] == first[0]
    worker.wait_for_metric(1, "ticketgate_policy_kept")


def delete(gate: Deployment, topic: str) -> None:
    async def act() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=gate.bootstrap)
        await client.start()
        try:
            await client.delete_topics([topic])
            # The broker answers a moment before the topic is gone.
            while topic in await client.list_topics():  # noqa: ASYNC110 - the broker tells nobody
                await asyncio.sleep(0.05)
        finally:
            await client.close()

    asyncio.run(act())


@pytest.mark.parametrize(
    "file",
    [SEED_POLICY, *sorted((ROOT / "streams").glob("*/*.toml"))],
    ids=lambda file: file.name,
)
def test_a_policy_written_out_is_itself_again(file: Path) -> None:
    try:
        policy = load_policy(file)
    except ValueError:
        pytest.skip("no policy")

    again = parse_policy(policy.to_bytes().decode())

    assert again == policy
    assert again.to_bytes() == policy.to_bytes()


def test_one_of_more_rules_than_a_strangers_document_may_have_is_itself_again() -> None:
    rules = "".join(f'[[rules]]\nid = "r{n}"\nimplies = [["urgent"], ["review"]]\n' for n in range(3_000))
    policy = parse_policy(SUPPORT + rules)

    assert parse_policy(policy.to_bytes().decode()).hash == policy.hash


class Written:
    """A topic as it is read."""

    def __init__(self) -> None:
        self.kept = KeptPolicies()
        self.offset = 0

    def put(self, policy: Policy, *, at: int = 0, host: str = "w", namespace: str = "ns") -> None:
        self.take(policy.hash, policy.to_bytes())
        told = InForceRecord(
            policy=policy.ref,
            at=datetime.fromtimestamp(1_764_500_000 + at, UTC),
            by=None,
            file="policy.toml",
            host=host,
            namespace=namespace,
        )
        self.take(f"{policy.hash}@{at}@{namespace}@{host}", told.encode())

    def take(self, key: str, value: bytes | None) -> None:
        record = ConsumerRecord(
            "policies", 0, self.offset, self.offset, 0, key.encode(), value, None, 0, 0, []
        )
        self.kept.take(record)
        self.offset += 1


def version(number: int) -> Policy:
    return parse_policy(SUPPORT.replace('version = "1"', f'version = "{number}"'))


def test_each_time_that_it_came_into_force_is_told_once_whatever_workers_say() -> None:
    one, two, topic = version(1), version(2), Written()
    topic.put(one, at=1)
    topic.put(two, at=2, host="w")
    topic.put(two, at=3, host="v")
    topic.put(one, at=4)
    topic.put(two, at=5, namespace="other")

    assert [each.at.timestamp() - 1_764_500_000 for each in topic.kept.find(one.hash).in_force] == [1, 4]
    assert [each.at.timestamp() - 1_764_500_000 for each in topic.kept.find(two.hash).in_force] == [2, 5]
    assert (topic.kept.last("ns"), topic.kept.last("other"), topic.kept.last("none")) == (
        one.hash,
        two.hash,
        None,
    )


def test_what_cannot_be_found_is_said_with_what_to_do() -> None:
    topic = Written()
    with pytest.raises(CommandError, match="holds none yet"):
        topic.kept.find("ab")
    many = [version(number) for number in range(17)]
    for each in many:
        topic.put(each)
    first = many[0].hash[0]
    twice = next(each for each in "0123456789abcdef" if sum(one.hash[0] == each for one in many) > 1)

    with pytest.raises(CommandError, match=f"policies begin with {twice}: .*give more"):
        topic.kept.find(twice)
    with pytest.raises(CommandError, match="not the beginning of a hash"):
        topic.kept.find(first.upper() + "Z")
    with pytest.raises(CommandError, match=r"it knows .*support 16.* and 12 more"):
        topic.kept.find("0" * 64)


def test_what_somebody_else_wrote_under_a_hash_is_not_taken_for_the_policy() -> None:
    topic = Written()
    topic.take("ab" * 32, version(1).to_bytes())
    topic.take("cd" * 32, b"no policy")
    topic.take("ef" * 32, version(1).to_bytes())
    topic.take("ef" * 32, None)
    topic.take("no key of ours", b"{}")
    topic.take("ab" * 32 + "@x", b"{}")

    for each, why in (("ab", "somebody else wrote"), ("cd", "is no policy")):
        with pytest.raises(CommandError, match=why):
            topic.kept.find(each).load()
    with pytest.raises(CommandError, match="no policy that was in force begins with ef"):
        topic.kept.find("ef")
    assert topic.kept.find("ab").in_force == ()
