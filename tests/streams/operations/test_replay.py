"""Offsets that were reset are refused and set right; a deliberate replay says what it emits again, and does."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ...support.deployment import Deployment
from ...support.meddling import commit, committed_offset, delete_group, keys_of, redis_call, remove_inputs
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment
from .test_claims_rebuild import decide, duplicates_are_suppressed, ids, wait_for_refusal

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def gate(deploy: NewDeployment) -> Deployment:
    """A deployment of two partitions whose decisions cost nothing."""
    return deploy(
        policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="2", session_timeout="2s"
    )


def replay(gate: Deployment, *arguments: str) -> dict[str, Any]:
    done = gate.run("replay", "--json", "--replay-from", *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def decide_in_batches(gate: Deployment) -> None:
    """60 tickets, decided in at least two batches a partition, so that each has a `committed` mark."""
    decide(gate, range(30), range(30, 60))


class TestOffsetsWereReset:
    def test_a_lower_offset_is_refused_and_marks_go_on_where_commits_ended(self, gate: Deployment) -> None:
        decide_in_batches(gate)
        ends = [committed_offset(gate, partition) for partition in range(2)]
        commit(gate, {0: 0, 1: 0})
        worker = gate.start_worker()
        wait_for_refusal(worker, "offsets_reset", remedy="ticketgate replay --replay-from marks")
        worker.stop()

        plan = replay(gate, "marks", "--yes")

        # The mark lags by a batch, and the offset that is set does not.
        assert [each["to"] for each in plan["partitions"]] == ends
        assert plan["emitted_again"] == 0
        worker = gate.start_worker()
        worker.wait_ready()
        duplicates_are_suppressed(gate, worker, range(60))

    def test_a_deleted_group_is_refused_and_goes_on_where_commits_ended(self, gate: Deployment) -> None:
        decide_in_batches(gate)
        delete_group(gate)
        worker = gate.start_worker()
        wait_for_refusal(worker, "offsets_reset", remedy="ticketgate replay --replay-from marks")
        worker.stop()

        done = gate.run("replay", "--replay-from", "marks", "--yes")

        assert "emits nothing again" in done.stdout
        worker = gate.start_worker()
        worker.wait_ready()
        duplicates_are_suppressed(gate, worker, range(60))

    def test_inputs_that_retention_removed_meanwhile_are_not_taken_for_unread(self, gate: Deployment) -> None:
        """As void ones their claims could be taken over by copies sent later."""
        decide_in_batches(gate)
        ends = {partition: committed_offset(gate, partition) or 0 for partition in range(2)}
        commit(gate, {0: 0, 1: 0})
        remove_inputs(gate, ends)

        replay(gate, "marks", "--yes")

        worker = gate.start_worker()
        worker.wait_ready()
        assert keys_of(gate, "void") == []
        duplicates_are_suppressed(gate, worker, range(60))
        audited = json.loads(gate.run("audit", "--json").stdout)
        assert (audited["outputs_of_past_inputs"], audited["lost_unread"]) == (60, 0)

    def test_where_nothing_was_reset_there_is_nothing_to_do(self, gate: Deployment) -> None:
        decide_in_batches(gate)

        assert "nothing to do" in gate.run("replay", "--replay-from", "marks", "--yes").stdout

    def test_lost_claims_come_first(self, gate: Deployment) -> None:
        decide_in_batches(gate)
        redis_call(gate.redis_url, "FLUSHALL")

        done = gate.run("replay", "--replay-from", "marks", "--yes")

        assert done.returncode == 2
        assert "ticketgate claims rebuild" in done.stderr


class TestADeliberateReplay:
    def test_without_yes_it_only_says_what_it_would_emit_again(self, gate: Deployment) -> None:
        decide_in_batches(gate)
        before = [committed_offset(gate, partition) for partition in range(2)]

        done = gate.run("replay", "--replay-from", "beginning")

        assert "Decided and EMITTED AGAIN, under the old idempotency keys: 60 records." in done.stdout
        assert "Consumers must deduplicate by ticketgate-idempotency-key" in done.stdout
        assert "nothing was changed" in done.stderr
        assert [committed_offset(gate, partition) for partition in range(2)] == before

    def test_from_the_beginning_it_emits_all_again_under_the_old_keys(self, gate: Deployment) -> None:
        decide_in_batches(gate)
        keys = Counter(
            dict(each.headers)["ticketgate-idempotency-key"] for each in gate.committed("dispatch", "review")
        )

        replay(gate, "beginning", "--yes")

        worker = gate.start_worker()
        worker.wait_ready()
        records = gate.wait_for_records(120, "dispatch", "review")
        assert Counter(dict(each.headers)["ticketgate-idempotency-key"] for each in records) == keys + keys
        assert gate.run("audit").returncode == 3

    def test_from_an_offset_of_one_partition(self, gate: Deployment) -> None:
        decide_in_batches(gate)
        end, other = committed_offset(gate, 0), committed_offset(gate, 1)
        assert end is not None

        plan = replay(gate, str(end - 5), "--partition", "0", "--yes")

        assert plan["emitted_again"] == 5
        assert committed_offset(gate, 1) == other
        gate.start_worker().wait_ready()
        assert ids(gate.wait_for_records(65, "dispatch", "review")).total() == 65

    def test_from_a_time(self, gate: Deployment) -> None:
        decide(gate, range(30))
        between = datetime.now(UTC)
        decide(gate, range(30, 60))

        assert replay(gate, between.isoformat())["emitted_again"] == 30
        later = replay(gate, (between + timedelta(hours=1)).isoformat())
        assert later["emitted_again"] == 0

    def test_a_place_that_would_pass_over_tickets_or_is_none_is_refused(self, gate: Deployment) -> None:
        decide_in_batches(gate)

        refusals = [
            gate.run("replay", "--yes", "--replay-from", *place)
            for place in (("1000", "--partition", "0"), ("3",), ("3", "--partition", "7"), ("yesterday",))
        ]

        assert [done.returncode for done in refusals] == [2, 2, 2, 2]
        assert "would be passed over" in refusals[0].stderr
        assert "name it with --partition" in refusals[1].stderr
        assert "choose one of 0 to 1" in refusals[2].stderr
        assert "must be marks, cut, beginning, an offset or a time" in refusals[3].stderr

    def test_while_workers_run_it_is_refused(self, gate: Deployment) -> None:
        decide_in_batches(gate)
        gate.start_worker().wait_ready()

        done = gate.run("replay", "--replay-from", "beginning", "--yes")

        assert done.returncode == 2
        assert "has 1 member; stop the workers" in done.stderr
