"""The accounting of inputs and outputs: pure, and of a deployment on real parts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from ticketgate.codecs.records.headers import record_headers
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.kafka.reading.scanning import open_scanner
from ticketgate.streams.operations.audit import (
    MOST_NAMED,
    OUTCOMES,
    Accounting,
    AuditReport,
    InputPartition,
    Missing,
    OutputsSince,
    account,
)
from ticketgate.streams.operations.inputs import InputName
from ticketgate.streams.operations.outcomes import Outcomes, Repeated
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment, Sent, ticket
from ...support.meddling import commit, send_to
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.raw_batches import PLACEHOLDER, batch, send_batches
from ...support.sample_records import (
    NOW_MS,
    READ,
    READ_PROPOSAL,
    TOPICS,
    TTL_MS,
    Record,
    claim_of,
    dead,
    decided,
    record,
    sent,
)
from ..conftest import NewDeployment
from ..kafka.test_unreadable_batches import damage, damaged_checksum


def audit(
    inputs: Sequence[Record],
    outputs: Sequence[Record],
    *,
    committed: int | None = 1_000,
    first: int = 0,
    voids: Sequence[range] = (),
    outputs_since: OutputsSince | None = None,
    of: InputName = "tickets",
) -> AuditReport:
    outcomes = Outcomes(TOPICS, source=of, claim_ttl_ms=TTL_MS, named_repetitions=MOST_NAMED)
    for output in outputs:
        outcomes.add(output)
    accounting = Accounting(
        outcomes=outcomes,
        partitions={0: InputPartition(first=first, end=1_000, committed=committed, voids=voids)},
        outputs_since=outputs_since or OutputsSince(),
        read=READ if of == "tickets" else READ_PROPOSAL,
        claim_ttl_ms=TTL_MS,
    )
    report = account(accounting, [inputs] if inputs else [])
    counted = {name: getattr(report, name) for name in OUTCOMES}
    assert sum(counted.values()) == report.records == report.documents + report.malformed + report.tombstones
    return report


def counts(report: AuditReport) -> dict[str, int]:
    return {name: found for name in (*OUTCOMES, "collisions") if (found := getattr(report, name))}


class TestAccounting:
    def test_each_input_has_the_outcome_that_its_output_tells(self) -> None:
        one, two, three = sent(0, "A"), sent(1, "B"), record("tickets", 2, b"{")
        tombstone = record("tickets", 3, None)

        report = audit([one, two, three, tombstone], [decided(one), decided(two, "review"), dead(three)])

        assert counts(report) == {"dispatched": 1, "review": 1, "dead_letter": 1, "skipped": 1}
        assert report.is_clean

    def test_a_second_input_of_the_same_ticket_is_replayed(self) -> None:
        one, again = sent(0, "A"), sent(1, "A")

        assert counts(audit([one, again], [decided(one)])) == {"dispatched": 1, "replayed": 1}

    def test_a_collision_is_in_review_and_its_repetition_is_replayed(self) -> None:
        one, other, other_again = sent(0, "A"), sent(1, "A", "else"), sent(2, "A", "else")

        report = audit([one, other, other_again], [decided(one), decided(other, "review", is_collision=True)])

        assert counts(report) == {"dispatched": 1, "review": 1, "collisions": 1, "replayed": 1}

    def test_a_collision_without_its_record_is_missing(self) -> None:
        one, other = sent(0, "A"), sent(1, "A", "else")

        assert counts(audit([one, other], [decided(one)])) == {"dispatched": 1, "missing": 1}

    def test_what_lies_above_the_committed_offset_is_pending(self) -> None:
        inputs = [
            sent(0, "A"),
            sent(1, "A"),
            sent(2, "B"),
            record("tickets", 3, b"{"),
            record("tickets", 4, None),
        ]

        report = audit(inputs, [decided(inputs[0])], committed=1)

        assert counts(report) == {"dispatched": 1, "pending": 4}
        assert report.is_clean

    def test_what_was_committed_while_the_audit_ran_is_decided(self) -> None:
        one = sent(0, "A")

        assert counts(audit([one], [decided(one)], committed=None)) == {"dispatched": 1}

    def test_below_the_committed_offset_an_input_without_a_trace_is_missing_and_named(self) -> None:
        one, bad = sent(0, "A"), record("tickets", 1, b"{")

        report = audit([one, bad], [])

        assert report.missing == 2
        assert report.missing_first == (
            Missing(claim_of(one).key, Coordinate("tickets", 0, 0)),
            Missing("", Coordinate("tickets", 0, 1)),
        )

    def test_only_the_first_offenders_are_named(self) -> None:
        report = audit([sent(n, f"T-{n}") for n in range(100)], [])

        assert (report.missing, len(report.missing_first)) == (100, MOST_NAMED)

    def test_a_void_input_is_not_missing(self) -> None:
        assert counts(audit([sent(5, "A")], [], voids=[range(3, 6)])) == {"void": 1}

    def test_two_outputs_under_one_key_are_a_duplicate(self) -> None:
        one, again = sent(0, "A"), sent(1, "A")

        report = audit([one, again], [decided(one), decided(again, "review")])

        assert (report.duplicates, report.missing, report.is_clean) == (1, 0, False)
        assert report.duplicates_first == (
            Repeated(claim_of(one).key, Coordinate("tickets", 0, 1), Coordinate("tickets", 0, 0)),
        )

    def test_the_same_output_twice_is_a_duplicate(self) -> None:
        one = sent(0, "A")

        report = audit([one], [decided(one), decided(one)])

        assert (counts(report), report.duplicates, report.outputs_unexplained) == ({"dispatched": 1}, 1, 0)

    def test_two_dead_letters_of_one_input_are_a_duplicate(self) -> None:
        bad = record("tickets", 0, b"{")

        report = audit([bad], [dead(bad), dead(bad)])

        assert (counts(report), report.duplicates) == ({"dead_letter": 1}, 1)

    def test_a_ticket_sent_again_after_its_claim_was_over_is_no_duplicate(self) -> None:
        one, later = sent(0, "A"), sent(1, "A")

        report = audit([one, later], [decided(one, at_ms=NOW_MS - TTL_MS), decided(later)])

        assert (counts(report), report.duplicates, report.decided_anew) == ({"dispatched": 2}, 0, 1)

    def test_a_duplicate_whose_owner_went_to_retention_is_replayed(self) -> None:
        gone, again = sent(0, "A"), sent(7, "A")

        report = audit([again], [decided(gone)], first=5)

        assert (counts(report), report.outputs_of_past_inputs) == ({"replayed": 1}, 1)

    def test_where_outputs_of_that_age_are_gone_an_input_is_not_called_missing(self) -> None:
        old, young = sent(0, "A", at_ms=NOW_MS), sent(1, "B", at_ms=NOW_MS + TTL_MS + 1)

        report = audit([old, young], [], outputs_since=OutputsSince(decisions_ms=NOW_MS + 1))

        assert counts(report) == {"cut_by_retention": 1, "missing": 1}

    def test_a_dead_letter_is_as_old_as_its_input(self) -> None:
        old, young = record("tickets", 0, b"{", at_ms=NOW_MS), record("tickets", 1, b"{", at_ms=NOW_MS + 1)

        report = audit([old, young], [], outputs_since=OutputsSince(dead_letters_ms=NOW_MS + 1))

        assert counts(report) == {"cut_by_retention": 1, "missing": 1}

    def test_inputs_that_went_unread_are_counted_apart(self) -> None:
        assert audit([], [], committed=10, first=25).lost_unread == 15

    def test_what_was_dead_lettered_under_a_smaller_limit_stays_a_dead_letter(self) -> None:
        large = sent(0, "A", "x" * 3_000)

        assert counts(audit([large], [dead(large)])) == {"dead_letter": 1}

    def test_outputs_of_another_namespace_explain_nothing(self) -> None:
        one = sent(0, "A")
        headers = record_headers(
            idempotency_key=replace(claim_of(one), key="another").key,  # type: ignore[arg-type]
            fingerprint=claim_of(one).fingerprint,
            coordinate=Coordinate("tickets", 0, 0),
            schema="decision/1",
        )

        report = audit([one], [record("dispatch", 0, b"{}", headers=headers)])

        assert (counts(report), report.outputs_unexplained) == ({"missing": 1}, 1)

    def test_records_that_no_worker_wrote_are_counted_apart(self) -> None:
        bare = [record("dispatch", 0, b"{}"), record("dead-letter", 0, b"x")]

        assert audit([], bare).outputs_without_identity == 2


@pytest.mark.kafka
@pytest.mark.redis
class TestADeployment:
    def test_every_input_is_accounted_for(self, deploy: NewDeployment) -> None:
        gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="2")
        gate.start_worker().wait_ready()
        gate.send(
            [
                *(ticket(f"T-{n}") for n in range(50)),
                *(ticket(f"T-{n}") for n in range(10)),
                ticket("T-0", "Something else."),
                ticket("T-0", "Something else."),
                Sent(b"{", key=b"broken"),
                Sent(None, key=b"tombstone"),
            ]
        )
        gate.wait_for_records(52, "dispatch", "review", "dead-letter")

        report = json.loads(until_nothing_is_pending(gate))

        assert {name: report[name] for name in ("records", "tickets", "malformed", "tombstones")} == {
            "records": 64,
            "tickets": 62,
            "malformed": 1,
            "tombstones": 1,
        }
        assert (report["dispatched"] + report["review"], report["collisions"], report["dead_letter"]) == (
            51,
            1,
            1,
        )
        assert (report["replayed"], report["skipped"], report["pending"]) == (11, 1, 0)
        assert (report["duplicates"], report["missing"], report["clean"]) == (0, 0, True)

    def test_it_finds_a_record_sent_twice_and_an_input_passed_over(self, deploy: NewDeployment) -> None:
        gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="1")
        gate.start_worker().wait_ready()
        gate.send([ticket("T-1")])
        (found,) = gate.wait_for_records(1, "dispatch", "review")
        send_to(gate, found.topic, [Sent(found.value, found.key, found.headers)])
        gate.workers[0].stop()
        gate.send([ticket("T-2")])
        commit(gate, {0: 2})

        done = gate.run("audit")

        assert done.returncode == 3
        assert f"missing: {gate.topic('tickets')}:0:1, key " in done.stdout
        assert "duplicate: key " in done.stdout

    def test_records_that_aiokafka_cannot_read_are_accounted_for(self, deploy: NewDeployment) -> None:
        gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="2")
        bad = Sent(b'{"id": "bad", "state": "x"}', headers=[(PLACEHOLDER, b"")])
        good = [[ticket(f"{partition}-{n}") for n in range(8)] for partition in range(2)]
        now_ms = round(
            time.time() * 1000
        )  # older ones than tickets_retention would go before they are counted
        send_batches(
            gate.bootstrap,
            gate.topic("tickets"),
            [
                (0, batch([*good[0][:4], bad, *good[0][4:]], timestamp_ms=now_ms)),
                (1, batch(good[1], timestamp_ms=now_ms)),
            ],
        )
        gate.start_worker()
        gate.wait_for_records(17, "dispatch", "review", "dead-letter")

        report = json.loads(until_nothing_is_pending(gate))

        assert (report["records"], report["dispatched"] + report["review"], report["dead_letter"]) == (
            17,
            16,
            1,
        )

    def test_a_batch_that_nobody_can_read_is_counted_apart(
        self, own_kafka: Kafka, valkey: Valkey, tmp_path: Path
    ) -> None:
        with Deployment(own_kafka.bootstrap, valkey.url, tmp_path / "gate", {"PARTITIONS": "1"}) as gate:
            topic, now_ms = gate.topic("tickets"), round(time.time() * 1000)
            for name in ("before", "broken", "after"):
                send_batches(
                    gate.bootstrap,
                    topic,
                    [(0, batch([ticket(f"{name}-{n}") for n in range(3)], timestamp_ms=now_ms))],
                )
            own_kafka.stop()
            damage(tmp_path / f"kafka/data/{topic}-0/{0:020}.log", 1, damaged_checksum)
            own_kafka.start()

            report = json.loads(gate.run("audit", "--json").stdout)

            assert (report["records"], report["pending"], report["unreadable"]) == (6, 6, 3)

    async def test_what_an_open_transaction_holds_is_waited_for(self, deploy: NewDeployment) -> None:
        """Its end may be written to the group's offsets already, and not yet to the outputs."""
        gate = await asyncio.to_thread(deploy, partitions="1")
        settings = load_settings(environment=gate.environment).settings
        async with (
            AIOKafkaProducer(bootstrap_servers=gate.bootstrap, transactional_id=gate.name) as producer,
            open_scanner(settings) as scanner,
        ):
            await producer.begin_transaction()
            await producer.send_and_wait(gate.topic("dispatch"), b"held")
            extents = await scanner.extents(await scanner.partitions(gate.topic("dispatch")))

            reading = asyncio.ensure_future(anext(scanner.read(extents)))
            done, _ = await asyncio.wait([reading], timeout=2)
            assert not done
            await producer.commit_transaction()

            assert [each.value for each in await reading] == [b"held"]

    def test_it_says_that_redis_did_not_answer(self, deploy: NewDeployment) -> None:
        gate = deploy(redis="redis://127.0.0.1:1/0")

        done = gate.run("audit", "--json")

        assert (done.returncode, json.loads(done.stdout)["voids_known"]) == (0, False)
        assert "Redis does not answer" in done.stderr

    def test_a_broker_that_does_not_answer_is_exit_code_4(self, deploy: NewDeployment) -> None:
        gate = deploy()

        done = gate.run("audit", "--kafka", "127.0.0.1:1")

        assert done.returncode == 4
        assert "TICKETGATE_KAFKA" in done.stderr


def until_nothing_is_pending(gate: Deployment) -> str:
    """The audit's JSON, once the committed offset has reached the end."""
    seen = ""
    for _ in range(50):
        done = gate.run("audit", "--json")
        assert done.returncode == 0, done.stdout
        seen = done.stdout
        if json.loads(seen)["pending"] == 0:
            return seen
    raise AssertionError(f"still pending: {seen}")
