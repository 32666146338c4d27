"""What operators do with proposals: account for them, restore what Redis lost, go back, mend. On real parts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ...support.deployment import Deployment, Sent, Worker, ticket
from ...support.meddling import commit, committed_offset, keys_of, redis_call, send_to
from ...support.payment_funnel import PaymentFunnel
from ...support.payments import PaymentServer
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.proposals import ENOUGH, authority, call, funnel_file, key_of, proposal
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

OUTPUTS = ("dispatch", "review", "repairs")
UNREADABLE = call()[:-1]
# All that the tests below propose under their own keys.
CASES = ("C-1", "C-2", "T-0", "mends", "denied", "spent", "asked", "done", "paid", "refused", "new",
         *(f"C-{n}" for n in range(8)))  # fmt: skip


@pytest.fixture
def gate(deploy: NewDeployment, bank: PaymentServer, tmp_path: Path) -> Deployment:
    """A deployment whose workers decide tickets and judge proposals, in two partitions each."""
    bank.set_world(ENOUGH)
    bank.delegate(authority(cases=CASES))
    return deploy(
        roles="decide,propose",
        funnel=str(funnel_file(tmp_path / "funnel.toml", bank)),
        policy=str(SEED_POLICY),
        scorer=f"fixed:{FIXED_ANSWERS}",
        partitions="2",
        session_timeout="2s",
    )


def started(gate: Deployment) -> Worker:
    worker = gate.start_worker()
    worker.wait_ready()
    return worker


def propose(gate: Deployment, *proposals: Sent) -> None:
    send_to(gate, gate.topic("proposals"), proposals)


def said(gate: Deployment) -> dict[tuple[str, int], tuple[str, str, str]]:
    """Where each attempt went, with its verdict's stage and first reason. Fails if one is there twice."""
    found: dict[tuple[str, int], tuple[str, str, str]] = {}
    for each in gate.committed(*OUTPUTS):
        decision = json.loads(each.value or b"")
        if decision["schema"] != "case-decision/1":
            continue
        attempt = (decision["case_id"], decision["attempt"])
        assert attempt not in found, attempt
        topic = each.topic.removeprefix(f"{gate.name}-")
        verdict = decision["verdict"]
        found[attempt] = (topic, verdict["stage"], (verdict["reasons"] or [""])[0])
    return found


def audit(gate: Deployment, of: str) -> dict[str, Any]:
    """The books of an input, once nothing is pending. They must be clean."""
    report: dict[str, Any] = {}
    for _ in range(50):
        done = gate.run("audit", "--of", of, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        if not report["pending"]:
            return report
    raise AssertionError(f"still pending: {report}")


def attempts(gate: Deployment) -> dict[str, dict[str, str]]:
    """The attempts that Redis has of each case, without the count of its writes."""
    found: dict[str, dict[str, str]] = {}
    for name in keys_of(gate, "attempts"):
        fields = redis_call(gate.redis_url, "HGETALL", name)
        assert isinstance(fields, dict)
        found[name] = {field: value for field, value in fields.items() if field != "revision"}
    return found


def is_refusing(state: dict[str, Any]) -> bool:
    """Whether every lane of both inputs has lost its claims."""
    lanes = [why for part, why in state.get("waiting", {}).items() if part.startswith("lane")]
    return len(lanes) == 4 and all("claims_lost" in why for why in lanes)


def test_both_inputs_are_accounted_for_each_by_its_own(gate: Deployment) -> None:
    started(gate)
    gate.send([*(ticket(f"T-{n}") for n in range(8)), ticket("T-0"), Sent(b"{", key=b"broken")])
    accepted = proposal("T-0")
    propose(
        gate,
        accepted,
        accepted,
        proposal("T-0", call="{"),
        proposal("mends", call=call(amount_gbp="660.00")),
        proposal("denied", actor_id="nobody"),
        Sent(b'{"case_id": "broken"}', key=b"broken"),
        Sent(None, key=b"gone"),
    )
    gate.wait_for_records(8 + 1 + 4 + 1, *OUTPUTS, "dead-letter")

    of_tickets, of_proposals = audit(gate, "tickets"), audit(gate, "proposals")

    assert (of_tickets["records"], of_tickets["tickets"], of_tickets["malformed"]) == (10, 9, 1)
    assert of_tickets["dispatched"] + of_tickets["review"] == 8
    assert (of_tickets["replayed"], of_tickets["repairs"], of_tickets["outputs_of_others"]) == (1, 0, 4)
    wanted = {
        "records": 7,
        "proposals": 5,
        "malformed": 1,
        "tombstones": 1,
        "dispatched": 1,
        "review": 2,
        "collisions": 1,
        "repairs": 1,
        "dead_letter": 1,
        "replayed": 1,
        "skipped": 1,
        "outputs_of_others": 9,
        "outputs_without_identity": 0,
        "outputs_unexplained": 0,
    }
    assert {name: of_proposals[name] for name in wanted} == wanted


def test_a_repair_that_was_told_twice_is_found(gate: Deployment) -> None:
    started(gate)
    propose(gate, proposal("C-1", call=UNREADABLE))
    (told,) = gate.wait_for_records(1, "repairs")

    send_to(gate, told.topic, [Sent(told.value, told.key, told.headers)])

    done = gate.run("audit", "--of", "proposals")
    assert done.returncode == 3
    assert f"duplicate: key {dict(told.headers)['ticketgate-idempotency-key'].decode()}" in done.stdout
    assert gate.run("audit").returncode == 0


def test_an_emptied_redis_gets_claims_and_attempts_back_and_a_spent_budget_stays_spent(
    gate: Deployment,
) -> None:
    worker = started(gate)
    gate.send(ticket(f"T-{n}") for n in range(8))
    propose(gate, *(proposal(case, call=UNREADABLE) for case in ("spent", "asked")))
    gate.wait_for_records(2, "repairs")
    propose(gate, proposal("spent", call=UNREADABLE[:-1], attempt=2), proposal("done"))
    gate.wait_for_records(8 + 4, *OUTPUTS)
    assert said(gate)["spent", 2] == ("review", "parse", "budget_exhausted")
    claims, tried = keys_of(gate, "claim"), attempts(gate)
    redis_call(gate.redis_url, "FLUSHALL")
    worker.stop()
    worker = gate.start_worker()
    worker.wait_for(is_refusing)

    rebuilt = gate.run("claims", "rebuild", "--json")

    report = json.loads(rebuilt.stdout)
    assert (rebuilt.returncode, report["restored"], report["conflicts"]) == (0, 12, 0)
    assert report["attempts"] == {"restored": 4, "present": 0, "expired": 0, "unknown": 0}
    assert (keys_of(gate, "claim"), attempts(gate)) == (claims, tried)
    worker.wait_ready()
    propose(
        gate,
        proposal("asked", call=UNREADABLE),
        proposal("asked", call=UNREADABLE[:-1], attempt=2),
        proposal("spent", attempt=3),
        proposal("done", attempt=2),
    )
    gate.wait_for_records(8 + 4 + 3, *OUTPUTS)
    found = said(gate)
    assert found["asked", 2] == ("review", "parse", "budget_exhausted")
    assert found["spent", 3] == ("review", "parse", "not_repairable")
    assert found["done", 2] == ("review", "authority", "not_repairable")
    assert audit(gate, "proposals")["replayed"] == 1
    assert audit(gate, "tickets")["duplicates"] == 0


def test_receipts_of_effects_are_no_outcomes_and_no_claims(gate: Deployment, bank: PaymentServer) -> None:
    gate.settings = {**gate.settings, "ROLES": "propose,effects"}
    funnel = PaymentFunnel(gate, bank)
    bank.fail("refuse", key=key_of("refused"))
    worker = started(gate)
    asked = (proposal("paid"), proposal("refused"))
    propose(gate, *asked)
    assert funnel.effect("paid")["effect_state"] == "committed"
    assert funnel.effect("refused")["effect_state"] == "rejected"

    report = audit(gate, "proposals")
    assert (report["dispatched"], report["outputs"], report["outputs_of_others"]) == (2, 3, 1)
    worker.stop()
    redis_call(gate.redis_url, "FLUSHALL")
    rebuilt = json.loads(gate.run("claims", "rebuild", "--json").stdout)
    ledger = gate.run("ledger", "rebuild")

    assert (rebuilt["restored"], rebuilt["of_others"], len(keys_of(gate, "claim"))) == (2, 1, 2)
    assert ledger.returncode == 0, ledger.stderr
    started(gate)
    propose(gate, *asked)
    funnel.wait_taken()
    assert audit(gate, "proposals")["replayed"] == 2
    paid, refused = (bank.account(key_of(case)) for case in ("paid", "refused"))
    assert (paid.posts, len(paid.transfers), refused.posts, len(refused.transfers)) == (1, 1, 1, 0)


def test_a_second_rebuild_and_a_dry_one_change_nothing(gate: Deployment) -> None:
    started(gate)
    propose(gate, proposal("C-1", call=UNREADABLE), proposal("C-2"))
    gate.wait_for_records(2, *OUTPUTS)
    gate.workers[0].stop()
    redis_call(gate.redis_url, "FLUSHALL")

    dry = gate.run("claims", "rebuild", "--dry-run")
    assert (dry.returncode, keys_of(gate, "*")) == (0, [])
    assert "attempts restored" in dry.stdout
    first = json.loads(gate.run("claims", "rebuild", "--json").stdout)
    second = json.loads(gate.run("claims", "rebuild", "--json").stdout)

    assert (first["restored"], first["attempts"]["restored"]) == (2, 2)
    assert (second["restored"], second["present"]) == (0, 2)
    assert (second["attempts"]["restored"], second["attempts"]["present"]) == (0, 2)
    assert {mark["topic"] for mark in first["marks"]} == {gate.topic("proposals")}
    identity = redis_call(gate.redis_url, "HGET", f"ticketgate:{gate.name}:identity", "topic of propose")
    assert identity == gate.topic("proposals")


def test_a_deployment_of_before_proposals_gets_the_claims_of_its_tickets_back(gate: Deployment) -> None:
    gate.settings = {**gate.settings, "ROLES": "decide", "TOPIC_PROPOSALS": f"{gate.name}-never-made"}
    started(gate)
    gate.send(ticket(f"T-{n}") for n in range(4))
    gate.wait_for_records(4, *OUTPUTS)
    redis_call(gate.redis_url, "FLUSHALL")

    rebuilt = gate.run("claims", "rebuild", "--json")

    assert (rebuilt.returncode, json.loads(rebuilt.stdout)["restored"]) == (0, 4), rebuilt.stderr
    gate.workers[0].wait_ready()


def test_reset_offsets_go_on_where_commits_ended_and_the_other_group_is_left_alone(gate: Deployment) -> None:
    worker = started(gate)
    gate.send(ticket(f"T-{n}") for n in range(8))
    propose(gate, *(proposal(f"C-{n}", call=UNREADABLE) for n in range(8)))
    gate.wait_for_records(16, *OUTPUTS)
    worker.stop()
    ends = [committed_offset(gate, partition, of="proposals") for partition in range(2)]
    of_tickets = [committed_offset(gate, partition) for partition in range(2)]
    commit(gate, {0: 0, 1: 0}, of="proposals")
    worker = gate.start_worker()
    worker.wait_for(lambda state: json.dumps(state).count("offsets_reset") == sum(map(bool, ends)))
    worker.stop()

    again = json.loads(gate.run("replay", "--of", "proposals", "--replay-from", "beginning", "--json").stdout)
    done = gate.run("replay", "--of", "proposals", "--replay-from", "marks", "--yes")

    assert again["emitted_again"] == 8
    assert (done.returncode, "emits nothing again" in done.stdout) == (0, True), done.stderr
    assert [committed_offset(gate, partition, of="proposals") for partition in range(2)] == ends
    assert [committed_offset(gate, partition) for partition in range(2)] == of_tickets
    started(gate)
    propose(gate, *(proposal(f"C-{n}", call=UNREADABLE) for n in range(8)), proposal("new"))
    gate.wait_for_records(17, *OUTPUTS)
    assert audit(gate, "proposals")["replayed"] == 8


def test_an_offset_that_would_pass_proposals_over_is_refused(gate: Deployment) -> None:
    worker = started(gate)
    propose(gate, proposal("C-1"))
    gate.wait_for_records(1, *OUTPUTS)
    (lies,) = gate.committed("proposals")

    at_work = gate.run("replay", "--of", "proposals", "--replay-from", "marks")
    worker.stop()
    there = ("--replay-from", "1000", "--partition", str(lies.partition))
    forward = gate.run("replay", "--of", "proposals", *there)

    assert (at_work.returncode, forward.returncode) == (2, 2)
    assert f"group '{gate.name}.propose' has 1 member; stop the workers" in at_work.stderr
    assert f"{lies.topic}:{lies.partition} is decided to 1, and inputs from there to 1000" in forward.stderr


def test_reset_offsets_of_the_effects_go_on_where_commits_ended(
    gate: Deployment, bank: PaymentServer
) -> None:
    gate.settings = {**gate.settings, "ROLES": "propose,effects"}
    funnel = PaymentFunnel(gate, bank)
    worker = started(gate)
    propose(gate, proposal("paid"))
    assert funnel.effect("paid")["effect_state"] == "committed"
    funnel.wait_taken()
    assert worker.stop() == 0
    (lies,) = gate.committed("dispatch")
    receipts = len(gate.committed("receipts"))
    end = committed_offset(gate, lies.partition, of="dispatch")
    commit(gate, {lies.partition: 0}, of="dispatch")

    refused = gate.run("replay", "--of", "dispatch", "--replay-from", "beginning", "--yes")
    done = gate.run("replay", "--of", "dispatch", "--replay-from", "marks", "--yes")

    assert (refused.returncode, "use --replay-from marks" in refused.stderr) == (2, True)
    assert done.returncode == 0, done.stderr
    assert committed_offset(gate, lies.partition, of="dispatch") == end
    started(gate)
    funnel.wait_taken()
    assert len(gate.committed("receipts")) == receipts
    assert bank.account(key_of("paid")).posts == 1


def test_a_dead_letter_of_proposals_is_mended_and_goes_back_there(gate: Deployment, tmp_path: Path) -> None:
    started(gate)
    whole = json.loads(proposal("C-1").value or b"")
    propose(gate, Sent(json.dumps({**whole, "attempt": "first"}).encode(), key=b"C-1"))
    gate.send([Sent(b'{"id": "T-1"}', key=b"T-1")])
    gate.wait_for_records(2, "dead-letter")
    lines = [json.loads(line) for line in gate.run("dead-letter", "list", "--json").stdout.splitlines()]
    mended = {"C-1": whole, "T-1": {"id": "T-1", "state": "x"}}
    for line in lines:
        line.pop("value_text", None)
        line["value"] = mended[line["key"]]
    file = tmp_path / "mended.jsonl"
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    held = json.loads(gate.run("dead-letter", "replay", "--json").stdout)
    sent = [gate.run("dead-letter", "replay", str(file), "--yes", "--json") for _ in range(2)]

    assert (held["ready"], held["held"]) == (0, 2)
    assert json.loads(sent[0].stdout)["topics"] == {gate.topic(name): 1 for name in ("proposals", "tickets")}
    gate.wait_for_records(2, *OUTPUTS)
    assert audit(gate, "proposals")["replayed"] == audit(gate, "tickets")["replayed"] == 1
    assert said(gate)["C-1", 1][0] == "dispatch"


def test_bare_proposals_are_produced_under_their_cases_id_and_their_claims_shown(
    gate: Deployment, tmp_path: Path
) -> None:
    started(gate)
    file = tmp_path / "proposals.jsonl"
    attempts_at = [proposal("C-1", call=UNREADABLE, tenant="acme"), proposal("C-1", attempt=2, tenant="acme")]
    records = [json.loads(each.value or b"") for each in attempts_at]
    for record in records:
        record["tenant"] = record["request"].pop("tenant")
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))

    produced = gate.run("produce", str(file), "--topic", gate.topic("proposals"))

    assert produced.returncode == 0, produced.stderr
    gate.wait_for_records(2, *OUTPUTS)
    proposals = gate.committed("proposals")
    assert Counter(each.key for each in proposals) == {b"C-1": 2}
    owner = f"{proposals[1].topic}:{proposals[1].partition}:{proposals[1].offset}"
    shown = gate.run("claims", "show", "--case", "C-1", "--attempt", "2", "--tenant", "acme", "--json")
    assert (shown.returncode, json.loads(shown.stdout)["owner"]) == (0, owner)
    assert gate.run("claims", "show", "--case", "C-1", "--attempt", "1").returncode == 3
    alone = gate.run("claims", "show", "--case", "C-1")
    assert (alone.returncode, "--case and --attempt together" in alone.stderr) == (2, True)


def test_what_can_be_read_is_passed_over_on_no_topic_that_workers_read(gate: Deployment) -> None:
    started(gate)
    propose(gate, proposal("C-1"))
    (told,) = gate.wait_for_records(1, "dispatch")
    (read,) = gate.committed("proposals")

    refusals = [
        gate.run("dead-letter", "skip", f"{each.topic}:{each.partition}:{each.offset}", "--yes")
        for each in (read, told)
    ]
    elsewhere = gate.run("dead-letter", "skip", f"{gate.topic('review')}:0:0", "--yes")

    assert [each.returncode for each in (*refusals, elsewhere)] == [2, 2, 2]
    assert all("what can be read is never passed over" in each.stderr for each in refusals)
    assert "on none of the topics that workers read" in elsewhere.stderr
