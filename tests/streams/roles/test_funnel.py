"""The funnel end to end: proposals on a real broker, judged and carried out by a worker, at a real payment provider.

One deployment and one worker serve the module; each test has actors, cases and keys of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ticketgate.codecs.records.identity import confirmation_digest
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment, Sent
from ...support.meddling import send_to
from ...support.payment_funnel import PaymentFunnel, Record, assert_consistent, decision_of, effect_of, said
from ...support.payments import Account, PaymentServer
from ...support.proposals import ENOUGH, authority, call, confirmed_now, funnel_file, key_of, proposal, values

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
SEED_CASES = Path(__file__).parents[3] / "agents/funnel/examples/payments.jsonl"


@pytest.fixture(scope="module")
def funnel(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PaymentFunnel]:
    folder = tmp_path_factory.mktemp("funnel")
    with Valkey(data=folder / "valkey") as valkey, PaymentServer(folder / "bank") as bank:
        settings = {"FUNNEL": str(funnel_file(folder / "funnel.toml", bank)), "PARTITIONS": "2"}
        with Deployment(kafka.bootstrap, valkey.url, folder / "workers", settings) as gate:
            funnel = PaymentFunnel(gate, bank)
            funnel.start_worker().wait_ready()
            yield funnel
            # After all of it everything is taken, no key has two transfers, and the receipts contradict nothing.
            funnel.wait_taken()
            assert all(len(account.transfers) <= 1 for account in bank.ledger().values())
            assert_consistent(funnel.records("receipts"))


def outcome(funnel: PaymentFunnel, case_id: str) -> Record:
    """The receipt that says how a case ended: of its effect if one was asked for, else of its decision."""
    decision = funnel.decision(case_id)
    asks_for_effect = decision["verdict"]["status"] == "accept" and "effect_created" not in decision
    return funnel.effect(case_id) if asks_for_effect else decision


def of_case(records: list[Record], case_id: str) -> list[Record]:
    return [each for each in records if each.get("case_id") == case_id]


def test_the_seeds_seven_cases_end_as_it_says_with_one_transfer(funnel: PaymentFunnel) -> None:
    cases = [json.loads(line) for line in SEED_CASES.read_text().splitlines()]
    ended: dict[str, Record] = {}
    for case in cases:
        funnel.bank.delegate(confirmed_now(case["authority"]))
        funnel.bank.set_world(case["world"])
        if "faults" in case:
            funnel.bank.fail("commit_then_silence", key=case["request"]["control"]["idempotency_key"])

        record = {"case_id": case["name"], "attempt": 1, "call": case["call"], "request": case["request"]}
        funnel.send(Sent(json.dumps(record).encode(), key=case["name"].encode()))
        # One after the other: the next has other evidence, and meets what this one left.
        ended[case["name"]] = outcome(funnel, case["name"])

    expected = {case["name"]: case["expect"] for case in cases}
    assert {name: said(each) for name, each in ended.items()} == {
        name: (each["status"], each["stage"], tuple(each["reasons"])) for name, each in expected.items()
    }
    paid = funnel.bank.account("exactly-once-demo")
    assert (paid.posts, len(paid.transfers)) == (1, 1)
    assert [key for key, each in funnel.bank.ledger().items() if each.transfers] == ["exactly-once-demo"]
    for name, each in expected.items():
        if "receipt" in each:
            assert (ended[name]["status"], ended[name]["provider_id"]) == (each["receipt"], *paid.transfers)
    where = {
        topic: [each["case_id"] for each in funnel.records(topic) if each.get("case_id") in expected]
        for topic in ("dispatch", "repairs")
    }
    assert sorted(where["dispatch"]) == sorted(
        ["positive_quote", "timeout_after_commit", "duplicate_same_key", "same_key_different_effect"]
    )
    assert where["repairs"] == ["semantic_amount_drift"]
    reviewed = {each.get("case_id") or each.get("subject") for each in funnel.records("review")}
    assert reviewed >= {
        "wrong_tool_valid_shape",
        "valid_but_unauthorised",
        "same_key_different_effect",
    }


def test_the_worker_counts_what_a_profile_of_its_topics_counts(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-counted")
    funnel.send(proposal("case-counted", actor_id="actor-counted"))
    assert funnel.effect("case-counted")["status"] == "created"
    funnel.wait_taken()

    done = funnel.gate.run("funnel", "--profile", "--from-topics", "--json")

    assert done.stdout, done.stderr
    profiled = json.loads(done.stdout)
    name = "ticketgate_gate_evaluations_total"

    def live(look: str, gate: str) -> float:
        """How many came to a gate; a record that is no proposal is no response."""
        return sum(
            worker.metric(name, gate=gate, look=look)
            - worker.metric(name, gate=gate, look=look, outcome="malformed")
            for worker in funnel.gate.workers
        )

    for look, counted in profiled["gate_evaluations"].items():
        assert {gate: live(look, gate) for gate in counted} == counted, done.stderr


def test_a_decision_is_dispatched_with_what_it_rests_on(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-whole")
    funnel.send(proposal("case-whole", actor_id="actor-whole"))

    receipt = funnel.effect("case-whole")

    (decision,) = of_case(funnel.records("dispatch"), "case-whole")
    assert said(decision) == ("accept", "authority", ())
    assert decision["evidence"]["world"]["version"] == "ledger-1"
    assert decision["evidence"]["authority"]["actor_id"] == "actor-whole"
    asked = {**values(), "minimum_remaining_balance_gbp": "1000.00"}
    yes = confirmation_digest("actor-whole", f"yes-to-{key_of('case-whole')}")
    assert decision["effects"] == [
        {
            "tool": "schedule_transfer",
            "arguments": asked,
            "idempotency_key": key_of("case-whole"),
            "confirmations": [yes],
        }
    ]
    assert receipt["confirmation"] == yes
    assert said(receipt) == ("accept", "postcondition", ())
    assert (receipt["status"], receipt["sends"], receipt["provider"]) == ("created", 1, "bank")
    assert receipt["state"] == {**asked, "status": "scheduled"}
    states = [each["effect_state"] for each in funnel.records("receipts") if effect_of("case-whole")(each)]
    assert states == ["prepared", "committed"]


def test_an_observation_moves_no_money(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-quote")
    funnel.send(
        proposal("case-quote", actor_id="actor-quote", operation="quote", call=call("quote_transfer"))
    )

    decision = funnel.decision("case-quote")

    assert said(decision) == ("accept", "outcome", ())
    assert decision["effect_created"] is False
    (dispatched,) = of_case(funnel.records("dispatch"), "case-quote")
    assert dispatched["effects"] == []
    funnel.wait_taken()
    assert not [each for each in funnel.records("receipts") if effect_of("case-quote")(each)]


def test_a_schedule_proposed_for_a_quote_is_rejected(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-beside")
    funnel.send(proposal("case-beside", actor_id="actor-beside", operation="quote", call=call()))

    decision = funnel.decision("case-beside")

    assert said(decision) == (
        "reject",
        "tool_selection",
        ("requested:quote", "proposed:schedule_transfer"),
    )
    (reviewed,) = of_case(funnel.records("review"), "case-beside")
    assert reviewed["effects"] == []
    assert of_case(funnel.records("dispatch"), "case-beside") == []


def test_a_permission_revoked_after_the_decision_stops_the_effect_and_makes_a_case(
    funnel: PaymentFunnel, tmp_path: Path
) -> None:
    funnel.delegate("actor-revoked")
    # The first look finds it, the second does not.
    funnel.bank.fail("other", on="authority", key="actor-revoked", skip=1, times=100)
    funnel.send(proposal("case-revoked", actor_id="actor-revoked"))

    receipt = funnel.effect("case-revoked")

    assert said(funnel.decision("case-revoked")) == ("accept", "authority", ())
    assert said(receipt) == ("deny", "authority", ("tool_not_delegated",))
    assert (receipt["effect_state"], receipt["sends"]) == ("rejected", 0)
    assert funnel.bank.account(key_of("case-revoked")) == Account()
    (reviewed,) = [each for each in funnel.records("review") if each.get("subject") == "case-revoked"]
    (decision,) = of_case(funnel.records("dispatch"), "case-revoked")
    evidence = decision["evidence"]
    assert receipt["judged_again"]["evidence"] == {**evidence, "authority": None}
    assert receipt["judged_again"]["at"] >= decision["decided_at"]
    shown = json.loads(funnel.gate.run("ledger", "show", key_of("case-revoked"), "--json").stdout)
    assert reviewed["judged_again"] == shown["effect"]["judged_again"] == receipt["judged_again"]

    records, cases = tmp_path / "records.jsonl", tmp_path / "cases.jsonl"
    records.write_text(f"{json.dumps(decision)}\n{json.dumps(reviewed)}\n")
    exported = funnel.gate.run("case", str(records))
    cases.write_text(exported.stdout)
    assert exported.returncode == 0, exported.stderr
    assert json.loads(exported.stdout)["expect"]["reasons"] == ["tool_not_delegated"]
    ran = funnel.gate.run("funnel", str(cases), "--catalogue", "payments")
    assert ran.returncode == 0, ran.stdout


def test_a_key_that_nothing_was_sent_under_serves_a_new_case(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-restored")
    funnel.bank.fail("other", on="authority", key="actor-restored", skip=1, times=2)
    funnel.send(proposal("case-stopped", actor_id="actor-restored"))
    assert funnel.effect("case-stopped")["effect_state"] == "rejected"
    same_key = {"idempotency_key": key_of("case-stopped")}
    funnel.send(proposal("case-restored", actor_id="actor-restored", control=same_key))

    receipt = funnel.effect("case-restored")

    assert said(receipt) == ("accept", "postcondition", ())
    assert funnel.bank.account(key_of("case-stopped")).transfers == [receipt["provider_id"]]


def test_a_refused_effect_is_dispatched_anew_and_carried_out_once_however_often(
    funnel: PaymentFunnel,
) -> None:
    key, run = key_of("case-anew"), funnel.gate.run
    funnel.delegate("actor-anew")
    funnel.bank.fail("other", on="authority", key="actor-anew", skip=1, times=2)
    funnel.send(proposal("case-anew", actor_id="actor-anew"))
    assert funnel.effect("case-anew")["effect_state"] == "rejected"
    funnel.wait_taken()

    would = run("ledger", "dispatch", key)
    assert len(of_case(funnel.records("dispatch"), "case-anew")) == 1
    done = run("ledger", "dispatch", key, "--yes", "--json")
    receipt = funnel.effect("case-anew", "committed")
    # As from a person who did not see whether the first one came through.
    (copy,) = [
        each
        for each in funnel.gate.committed("dispatch")
        if f'"{each.topic}:{each.partition}:{each.offset}"' in done.stdout
    ]
    send_to(funnel.gate, copy.topic, [Sent(copy.value, copy.key, copy.headers)])
    funnel.wait_taken()
    too_late = run("ledger", "dispatch", key, "--yes")

    assert (would.returncode, "refused: tool_not_delegated" in would.stdout) == (0, True), would.stderr
    assert "nothing was dispatched" in would.stderr
    assert done.returncode == 0, done.stderr
    assert said(receipt) == ("accept", "postcondition", ())
    paid = funnel.bank.account(key)
    assert (paid.posts, paid.transfers) == (1, [receipt["provider_id"]])
    assert (too_late.returncode, "is committed after it was sent" in too_late.stderr) == (2, True)
    told = [each for each in funnel.records("receipts") if effect_of("case-anew")(each)]
    states = [each["status"] or each["effect_state"] for each in told]
    assert states == ["prepared", "rejected", "prepared", "created", "replayed"]
    assert clean_books(funnel)["dispatched"] > 0


def test_who_paid_by_hand_says_so_and_no_other_case_pays_again(funnel: PaymentFunnel) -> None:
    key = key_of("case-by-hand")
    funnel.delegate("actor-by-hand")
    funnel.bank.fail("other", on="authority", key="actor-by-hand", skip=1, times=2)
    funnel.send(proposal("case-by-hand", actor_id="actor-by-hand"))
    assert funnel.effect("case-by-hand")["effect_state"] == "rejected"
    word = ("--as", "committed", "--by", "ann", "--reason", "paid at the counter")

    settled = funnel.gate.run("reconcile", "--settle", key, *word)

    assert settled.returncode == 0, settled.stderr
    receipt = funnel.effect("case-by-hand", "committed")
    assert (receipt["status"], receipt["sends"]) == ("settled_by_person", 0)
    assert receipt["settled_by"] == {"actor": "ann", "reason": "paid at the counter"}
    funnel.send(proposal("case-beside-it", actor_id="actor-by-hand", control={"idempotency_key": key}))
    assert funnel.effect("case-beside-it")["status"] == "settled_by_person"
    assert funnel.gate.run("ledger", "dispatch", key, "--yes").returncode == 2
    assert funnel.bank.account(key) == Account()
    assert clean_books(funnel)["outputs_without_identity"] == 0


def clean_books(funnel: PaymentFunnel) -> Record:
    """What an audit says of the proposals: none is there twice, none is missing."""
    done = funnel.gate.run("audit", "--of", "proposals", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    books: Record = json.loads(done.stdout)
    return books


def test_a_request_superseded_after_the_decision_stops_the_effect(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-superseded")
    newer = {**ENOUGH, "request_version": 2}
    funnel.bank.fail("other", on="world", key="actor-superseded", skip=1, times=100, answer=newer)
    funnel.send(proposal("case-superseded", actor_id="actor-superseded"))

    receipt = funnel.effect("case-superseded")

    status, stage, (reason,) = said(receipt)
    assert (status, stage) == ("reject", "world_state")
    assert reason.startswith("request_superseded")
    assert funnel.bank.account(key_of("case-superseded")) == Account()


def test_a_balance_that_fell_after_the_decision_stops_the_effect(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-poorer")
    poorer = {"facts": {"current_balance_gbp": "1599.99"}, "version": "ledger-2"}
    funnel.bank.fail("other", on="world", key="actor-poorer", skip=1, times=100, answer=poorer)
    funnel.send(proposal("case-poorer", actor_id="actor-poorer"))

    assert said(funnel.effect("case-poorer")) == (
        "reject",
        "world_state",
        ("remaining_balance:999.99", "required_floor:1000.00"),
    )
    assert funnel.bank.account(key_of("case-poorer")) == Account()


def test_the_same_proposal_again_and_again_is_one_decision_and_one_transfer(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-again")
    once = proposal("case-again", actor_id="actor-again")
    # On every partition: the record's key is the producer's affair.
    again = [Sent(once.value, key=b"k%d" % n) for n in range(8)]
    funnel.send(once, *again)
    funnel.effect("case-again")
    funnel.send(once, *again)

    funnel.wait_taken()

    receipts = funnel.records("receipts")
    assert len([each for each in receipts if decision_of("case-again")(each)]) == 1
    assert len(of_case(funnel.records("dispatch"), "case-again")) == 1
    paid = funnel.bank.account(key_of("case-again"))
    assert (paid.posts, len(paid.transfers)) == (1, 1)


def test_two_cases_under_one_key_at_once_are_paid_once(funnel: PaymentFunnel) -> None:
    # Two lanes, so that two executors have the same effect in hand.
    funnel.start_worker().wait_ready()
    funnel.delegate("actor-twins")
    keys = [f"key-of-twins-{n}" for n in range(10)]
    funnel.send(
        *(
            proposal(f"{twin}-of-{key}", actor_id="actor-twins", control={"idempotency_key": key})
            for key in keys
            for twin in ("a", "b")
        )
    )

    for key in keys:
        funnel.wait_for(
            "receipts",
            lambda each, key=key: (each["idempotency_key"], each.get("effect_state")) == (key, "committed"),
        )
    funnel.wait_taken()

    # One of the two may have been told that the other had just sent; by the key both find what stands.
    told = {
        (each["idempotency_key"], each["provider_id"])
        for each in funnel.records("receipts")
        if each["idempotency_key"] in keys and each["provider_id"]
    }
    accounts = {key: funnel.bank.account(key) for key in keys}
    assert told == {(key, *account.transfers) for key, account in accounts.items()}
    assert {account.posts for account in accounts.values()} == {1}


def test_an_attempt_that_says_something_else_goes_to_review(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-collides")
    funnel.send(proposal("case-collides", actor_id="actor-collides"))
    funnel.effect("case-collides")
    other = call(amount_gbp="601.00")
    funnel.send(proposal("case-collides", actor_id="actor-collides", call=other))

    (told,) = funnel.wait_for(
        "review",
        lambda each: each.get("case_id") == "case-collides" and each["verdict"]["stage"] == "identity",
    )

    assert told["verdict"]["status"] == "review"
    assert told["effects"] == []
    assert len(of_case(funnel.records("dispatch"), "case-collides")) == 1
    assert len(funnel.bank.account(key_of("case-collides")).transfers) == 1


def test_what_is_no_proposal_goes_to_dead_letter_and_holds_nothing_up(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-behind")
    broken = [b"\xff", b"{", b'{"case_id": "a", "case_id": "b"}', b'{"case_id": "c", "attempt": 0}']
    funnel.send(
        *(Sent(value, key=b"case-behind") for value in broken),
        proposal("case-behind", actor_id="actor-behind"),
    )

    funnel.effect("case-behind")

    dead = [each.value for each in funnel.gate.committed("dead-letter")]
    assert sorted(filter(None, dead)) == sorted(broken)


def test_a_proposer_mends_its_call_by_what_repairs_says(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-mends")
    funnel.send(proposal("case-mends", actor_id="actor-mends", call=call(amount_gbp="660.00")))
    (asked,) = funnel.wait_for("repairs", lambda each: each.get("case_id") == "case-mends")
    assert said(asked) == ("repair", "semantics", ("amount_gbp:proposal=660.00:request=600.00",))
    repair = asked["repair"]
    assert (repair["permitted"], repair["anchors"]) == (["amount_gbp"], {"amount_gbp": "600.00"})
    assert (repair["attempt"], repair["maximum"], repair["remaining"]) == (1, 1, 0)
    mended = call(**repair["anchors"])

    funnel.send(proposal("case-mends", attempt=2, actor_id="actor-mends", call=mended))

    receipt = funnel.effect("case-mends")
    assert said(receipt) == ("accept", "postcondition", ())
    assert said(funnel.decision("case-mends", attempt=2)) == ("accept", "authority", ())
    assert len(funnel.bank.account(key_of("case-mends")).transfers) == 1


@pytest.mark.parametrize(
    ("second", "stop_reason"),
    [
        (call(amount_gbp="640.00"), "budget_exhausted"),
        (call(amount_gbp="660.00"), "oscillation"),
        (call(payee_id="supplier_8"), "unpermitted_change"),
    ],
)
def test_a_repair_that_leads_nowhere_ends_in_review(
    funnel: PaymentFunnel, second: str, stop_reason: str
) -> None:
    case_id, actor_id = f"case-{stop_reason}", f"actor-{stop_reason}"
    funnel.delegate(actor_id)
    funnel.send(proposal(case_id, actor_id=actor_id, call=call(amount_gbp="660.00")))
    funnel.decision(case_id)

    funnel.send(proposal(case_id, attempt=2, actor_id=actor_id, call=second))

    assert funnel.decision(case_id, attempt=2)["verdict"]["status"] == "review"
    (told,) = of_case(funnel.records("review"), case_id)
    assert (told["attempt"], told["repair"]["stop_reason"]) == (2, stop_reason)
    assert of_case(funnel.records("dispatch"), case_id) == []
    # And nothing that comes after is carried out.
    funnel.send(proposal(case_id, attempt=3, actor_id=actor_id, call=call()))
    assert funnel.decision(case_id, attempt=3)["verdict"]["status"] == "review"
    assert funnel.bank.account(key_of(case_id)) == Account()


def test_while_nobody_answers_for_authority_nothing_is_decided(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-waits")
    funnel.bank.fail("unavailable", on="authority", key="actor-waits", times=1_000)
    workers = funnel.gate.workers
    funnel.send(proposal("case-waits", actor_id="actor-waits"))
    workers[0].wait_for(
        lambda _: any("lookup" in " ".join(each.ready().get("waiting", {})) for each in workers)
    )
    assert not [each for each in funnel.records("receipts") if decision_of("case-waits")(each)]

    funnel.bank.heal()

    assert said(funnel.effect("case-waits")) == ("accept", "postcondition", ())
    for worker in workers:
        worker.wait_ready()


def test_an_answer_that_is_no_evidence_goes_to_review(funnel: PaymentFunnel) -> None:
    funnel.delegate("actor-nonsense")
    funnel.bank.fail("other", on="authority", key="actor-nonsense", answer={"tools": "all of them"})
    funnel.send(proposal("case-nonsense", actor_id="actor-nonsense"))

    status, _, reasons = said(funnel.decision("case-nonsense"))

    assert status == "review"
    assert any(reason.startswith("evidence_unreadable:authority") for reason in reasons)


def test_a_case_without_a_key_of_its_own_is_denied_where_a_person_has_to_confirm_the_key(
    funnel: PaymentFunnel,
) -> None:
    # That all attempts at such a case have one effect, where nobody confirms a key, is shown beside the gates.
    funnel.delegate("actor-keyless")
    funnel.send(proposal("case-keyless", actor_id="actor-keyless", control={}, call=call(amount_gbp="6.00")))
    funnel.decision("case-keyless")
    funnel.send(proposal("case-keyless", actor_id="actor-keyless", control={}, attempt=2))

    denied = funnel.decision("case-keyless", attempt=2)

    assert said(denied)[:2] == ("deny", "authority")
    assert said(denied)[2][0] == "explicit_confirmation_missing"
    assert ":idempotency_key:" in said(denied)[2][1]


def test_a_delegation_of_less_denies(funnel: PaymentFunnel) -> None:
    funnel.bank.set_world(ENOUGH)
    funnel.bank.delegate(authority("actor-less", most="500.00"))
    funnel.bank.delegate(authority("actor-unconfirmed", confirmations=[]))
    funnel.send(
        proposal("case-less", actor_id="actor-less"),
        proposal("case-unconfirmed", actor_id="actor-unconfirmed"),
        proposal("case-unknown", actor_id="actor-nobody-knows"),
    )

    denials = {
        case_id: said(funnel.decision(case_id))
        for case_id in ("case-less", "case-unconfirmed", "case-unknown")
    }

    assert denials == {
        "case-less": ("deny", "authority", ("amount_exceeds_limit:500.00",)),
        "case-unconfirmed": ("deny", "authority", ("explicit_confirmation_missing",)),
        "case-unknown": ("deny", "authority", ("tool_not_delegated",)),
    }
