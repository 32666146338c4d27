"""Settlements on a real broker and a real Valkey: each takes effect once, or changes nothing and is told why."""

from __future__ import annotations

import json
import signal
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from ticketgate.agents.settling.signing import sign
from ticketgate.codecs.records.identity import Coordinate, effect_key, settlement_key
from ticketgate.codecs.records.settlement import Action, value_digest
from ticketgate.streams.parts.valkey import Valkey

from ...support.deciding import SUPPORT
from ...support.deployment import Deployment, ticket
from ...support.desk import KEYS, RIGHT, Desk, desk_settings, read
from ..conftest import NewDeployment
from .test_policy_effects import FUNNEL

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
STEPPING = str(Path(__file__).parents[2] / "support" / "stepping_settler.py")


def desk_of(deploy: NewDeployment, folder: Path, tickets: list[str], **settings: str) -> Desk:
    return Desk(deploy(**desk_settings(folder, tickets, **settings)), folder)


@pytest.fixture
def desk(deploy: NewDeployment, tmp_path: Path) -> Desk:
    """Tickets A to F are in review; two workers, one with the role and one of before it."""
    found = desk_of(deploy, tmp_path, list("ABCDEF"))
    found.deployment.start_worker(ROLES="decide")
    found.deployment.start_worker(ROLES="settle")
    found.deployment.send([ticket(name) for name in "ABCDEF"])
    return found


def test_what_a_person_accepts_is_dispatched_once_and_says_so(desk: Desk) -> None:
    lies = desk.reviews(6)
    record = read(lies["A"])
    pressed = desk.settlement(lies["A"])

    desk.press(pressed)
    told = desk.told(1)[pressed.id]
    signed = desk.sent[0]
    desk.send(signed)  # pressed twice, or sent again by a console that died
    other = desk.settlement(lies["A"], labels=("billing",), by="p-2")
    desk.press(other)
    late = desk.told(2)[other.id]
    desk.deployment.send([ticket("A")])
    desk.wait_until(lambda: not desk.deployment.lag())

    (decision,) = desk.dispatched()
    assert told["outcome"] == "accepted"
    assert (late["outcome"], late["code"]) == ("already_settled", "already_settled")
    assert late["owner"] == told["coordinate"]
    assert decision["selected"] == list(RIGHT)
    assert decision["verdict"]["status"] == "accept"
    assert decision["violations"] == []
    shown = json.loads(lies["A"].value or b"")
    for untouched in ("probabilities", "answers", "model", "ticket_id"):
        assert decision[untouched] == shown[untouched]
    assert decision["settled"]["by"] == "p-1"
    assert decision["settled"]["settlement"] == pressed.id
    assert decision["settled"]["selected"] == shown["selected"]
    assert decision["settled"]["reviewed"] == shown["verdict"]
    assert decision["idempotency_key"] == settlement_key(record.idempotency_key)
    assert [each["idempotency_key"] for each in decision["effects"]] == [
        effect_key(record.idempotency_key, 0)
    ]
    assert "ticket" not in decision
    assert len(desk.deployment.committed("settled")) == 2
    assert len(desk.deployment.committed("review")) == 6
    settler = desk.deployment.workers[1]
    settler.wait_for_metric(1, "ticketgate_settlements_total", outcome="accepted")
    settler.wait_for_metric(1, "ticketgate_settlements_total", outcome="replayed")


def test_what_is_rejected_or_returned_is_settled_and_never_dispatched(desk: Desk) -> None:
    lies = desk.reviews(6)
    rejected = desk.settlement(lies["A"], Action.REJECT)
    returned = desk.settlement(lies["B"], Action.RETURN)
    too_late = [desk.settlement(lies[name]) for name in "AB"]

    desk.press(rejected, returned)
    desk.told(2)
    desk.press(*too_late)
    told = desk.told(4)

    assert told[rejected.id]["outcome"] == "rejected"
    assert told[returned.id]["outcome"] == "returned"
    assert [told[each.id]["outcome"] for each in too_late] == ["already_settled"] * 2
    assert desk.dispatched() == []


def test_a_key_that_is_taken_out_settles_nothing_from_then_on_and_a_new_one_does(desk: Desk) -> None:
    lies, keys = desk.reviews(6), desk.folder / "keys.toml"
    settler, old = desk.deployment.workers[1], desk.key()
    lost = sign(desk.settlement(lies["A"]), old)
    (desk.folder / "new.key").write_bytes(b"n" * 32)
    keys.write_text("[front-desk]\n")
    settler.wait_for(lambda state: "keys.toml: [front-desk]" in (state.get("console_keys_error") or ""))
    before = sign(desk.settlement(lies["B"]), old)

    desk.send(before)
    desk.told(1)
    keys.write_text(KEYS.replace("front-desk", "night-desk").replace("desk.key", "new.key"))
    settler.wait_for(lambda state: state.get("console_keys_error", "") is None)
    desk.send(lost)
    desk.press(desk.settlement(lies["C"]), key="night-desk")
    told = desk.told(3)

    assert told[before.id]["outcome"] == "accepted"
    assert (told[lost.id]["outcome"], told[lost.id]["code"]) == ("void", "unknown_key")
    assert [each["outcome"] for each in told.values()].count("accepted") == 2


def test_nothing_else_changes_anything_and_each_is_named(desk: Desk) -> None:
    lies = desk.reviews(6)
    desk.deployment.send([ticket("B", state="Something else under the same id.")])
    collision = next(
        each
        for each in desk.deployment.wait_for_records(7, "review")
        if b"used before" in (each.value or b"")
    )
    good = desk.settlement(lies["A"])
    now = datetime.now(UTC)

    def another(**changes: Any) -> Any:
        return replace(good, id=str(uuid.uuid4()), **changes)

    stranger = replace(desk.key(), id="stranger")
    forger = replace(desk.key(), signing=b"f" * 32)
    signed_by_desk = sign(another(), desk.key())
    wanted = {
        "bad_signature": sign(another(), forger),
        "unknown_key": sign(another(), stranger),
        "wrong_role": sign(another(), desk.key("wall")),
        "expired": sign(another(expires_at=now), desk.key()),
        "not_yet": sign(another(at=now + timedelta(days=1)), desk.key()),
        "no_such_record": sign(another(review=Coordinate(good.review.topic, 0, 10_000)), desk.key()),
        "other_record": sign(another(review_sha256="ab" * 32), desk.key()),
        "not_settleable": sign(
            replace(
                desk.settlement(lies["B"]),
                review=Coordinate(collision.topic, collision.partition, collision.offset),
                review_sha256=value_digest(collision.value or b""),
            ),
            desk.key(),
        ),
        "wrong_labels": sign(another(labels=("unheard-of",)), desk.key()),
        "judged_otherwise": sign(another(labels=("billing", "urgent")), desk.key()),
        "effects_differ": sign(another(effects="ab" * 32), desk.key()),
    }
    altered = replace(signed_by_desk, why="something else")
    elsewhere = sign(another(review=Coordinate("tickets", 0, 0)), desk.key())

    desk.send(*wanted.values(), altered, elsewhere)
    desk.deployment.send([replace(ticket("A"), value=b"{}", key=b"A")], topic="settlements")
    told = desk.told(len(wanted) + 2)
    dead = desk.deployment.wait_for_records(1, "dead-letter")

    assert {code: told[each.id]["code"] for code, each in wanted.items()} == {code: code for code in wanted}
    assert told[altered.id]["code"] == "bad_signature"
    assert told[elsewhere.id]["code"] == "no_such_record"
    assert {each["outcome"] for each in told.values()} == {"void"}
    assert len(dead) == 1
    assert desk.dispatched() == []

    desk.press(good)

    assert desk.told(len(wanted) + 3)[good.id]["outcome"] == "accepted"


def test_a_policy_that_changed_is_judged_by_and_only_what_was_shown_is_taken(desk: Desk) -> None:
    lies = desk.reviews(6)
    same, stricter, other = (desk.settlement(lies[name]) for name in "ABC")
    settler = desk.deployment.workers[1]

    def put_in_force(text: str) -> str:
        path = desk.folder / "policy.toml"
        (desk.folder / "next.toml").write_text(text)
        (desk.folder / "next.toml").rename(path)
        wanted = desk.policy.hash
        settler.wait_for(lambda state: state.get("policy", {}).get("hash") == wanted)
        return wanted

    edited = put_in_force(SUPPORT.replace('version = "1"', 'version = "2"'))
    desk.press(same)
    told = desk.told(1)
    put_in_force(SUPPORT + '[[rules]]\nforbid = ["urgent", "billing"]\n')
    desk.press(stricter)
    told = desk.told(2)
    put_in_force(SUPPORT.replace('queue = "billing"', 'queue = "other"'))
    desk.press(other)
    told = desk.told(3)

    assert (told[same.id]["outcome"], told[same.id]["policy"]) == ("accepted", edited)
    assert told[stricter.id]["code"] == "judged_otherwise"
    assert told[other.id]["code"] == "effects_differ"
    (decision,) = desk.dispatched()
    assert decision["policy"]["version"] == "2"


def test_who_answers_for_the_policy_does_not_settle_by_it(deploy: NewDeployment, tmp_path: Path) -> None:
    desk = desk_of(deploy, tmp_path, ["A"], settle_by_others="true", policy_author="p-1")
    desk.deployment.start_worker(ROLES="decide,settle")
    desk.deployment.send([ticket("A")])
    lies = desk.reviews(1)
    own, others = desk.settlement(lies["A"]), desk.settlement(lies["A"], by="p-2")

    desk.press(own, others)
    told = desk.told(2)

    assert told[own.id]["code"] == "same_person"
    assert told[others.id]["outcome"] == "accepted"


def test_what_was_signed_for_one_deployment_changes_nothing_in_another(
    deploy: NewDeployment, tmp_path: Path
) -> None:
    """Neither in one with other topics, nor in a copy of all topics, whose Redis does not have the ticket's claim."""
    desk = desk_of(deploy, tmp_path, ["A"])
    (tmp_path / "other").mkdir()
    other = desk_of(deploy, tmp_path / "other", ["A"])
    other.deployment.start_worker(ROLES="decide,settle")
    desk.deployment.start_worker(ROLES="decide")
    for each in (desk, other):
        each.deployment.send([ticket("A")])
    pressed = desk.settlement(desk.reviews(1)["A"])
    other.reviews(1)

    desk.press(pressed)
    other.send(*desk.sent)
    elsewhere = other.told(1)[pressed.id]
    copy = desk.deployment.start_worker(ROLES="settle", NAMESPACE="a-copy", GROUP="a-copy")
    in_a_copy = desk.told(1)[pressed.id]
    assert copy.stop() == 0

    assert (elsewhere["outcome"], elsewhere["code"]) == ("void", "no_such_record")
    assert (in_a_copy["outcome"], in_a_copy["code"]) == ("void", "claim_expired")
    assert [*other.dispatched(), *desk.dispatched()] == []

    desk.deployment.start_worker(ROLES="settle")
    desk.deployment.wait_for_records(1, "dispatch")


def test_a_worker_that_may_settle_needs_keys(deploy: NewDeployment, tmp_path: Path) -> None:
    desk = desk_of(deploy, tmp_path, [])
    (tmp_path / "keys.toml").unlink()

    done = Deployment.run(desk.deployment, "worker", "--role", "settle")

    assert done.returncode == 2
    assert "keys.toml" in done.stderr


ALL = [
    f"{when} {step}"
    for step in ("look", "claims.claim", "kafka.commit", "mark")
    for when in ("before", "after")
]
# Behind each thing that stays: the claim, the transaction; and in between.
FEW = ["after claims.claim", "before kafka.commit", "after kafka.commit"]


@pytest.mark.parametrize(
    ("strike", "steps"),
    [
        pytest.param(signal.SIGKILL, FEW, id="kill"),
        pytest.param(signal.SIGKILL, ALL, id="kill at each", marks=pytest.mark.chaos),
        pytest.param(signal.SIGSTOP, ALL, id="stop at each", marks=pytest.mark.chaos),
    ],
)
def test_however_a_worker_ends_at_its_steps_each_ticket_is_settled_once(
    deploy: NewDeployment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    strike: signal.Signals,
    steps: list[str],
) -> None:
    """At each step one worker is struck, in the midst of two settlements of one ticket; another takes over."""
    names = [f"T{place}" for place in range(len(steps))]
    desk = desk_of(deploy, tmp_path, names, session_timeout="6s")
    desk.deployment.start_worker(ROLES="decide")
    desk.deployment.send([ticket(name) for name in names])
    lies = desk.reviews(len(names))
    expected: list[str] = []
    told: dict[str, dict[str, Any]] = {}
    for name, step in zip(names, steps, strict=True):
        armed = tmp_path / f"{name}.json"
        armed.write_text(json.dumps({"at": step, "nth": 1, "signal": int(strike)}))
        monkeypatch.setenv("STEP_FILE", str(armed))
        worker = desk.deployment.start_worker(program=STEPPING, ROLES="settle")
        first, second = desk.settlement(lies[name]), desk.settlement(lies[name], Action.REJECT, by="p-2")
        desk.press(first, second)
        expected += [first.id, second.id]
        desk.wait_until(lambda armed=armed: not armed.exists())  # type: ignore[misc]
        successor = desk.deployment.start_worker(ROLES="settle")
        told = desk.told(len(expected))
        assert {told[each]["outcome"] for each in (first.id, second.id)} == {"accepted", "already_settled"}
        worker.process.send_signal(signal.SIGCONT)
        worker.kill()
        assert successor.stop() == 0

    assert sorted(told) == sorted(expected)
    assert sorted(each["ticket_id"] for each in desk.dispatched()) == sorted(names)
    assert len(desk.deployment.committed("settled")) == len(expected)


def test_what_a_person_accepted_is_carried_out_once_even_if_the_ticket_is_decided_anew(
    deploy: NewDeployment, tmp_path: Path, valkey: Valkey
) -> None:
    """Its claims are over, it is sent again, decided and accepted again: the effect has the ticket's own key."""
    prefix = f"{tmp_path.name}:"
    (tmp_path / "funnel.toml").write_text(FUNNEL.format(url=valkey.url, prefix=prefix))
    desk = desk_of(deploy, tmp_path, ["A"], funnel=str(tmp_path / "funnel.toml"))
    desk.deployment.start_worker(ROLES="decide,effects,settle")
    desk.deployment.send([ticket("A")])
    first = desk.reviews(1)["A"]
    desk.press(desk.settlement(first))
    desk.deployment.wait_for_records(1, "receipts")
    key = read(first).idempotency_key
    with Redis.from_url(valkey.url) as redis:
        for name in (key, settlement_key(key)):
            assert redis.delete(f"ticketgate:{desk.deployment.name}:claim:{name}") == 1

    desk.deployment.send([ticket("A")])
    again = max(desk.deployment.wait_for_records(2, "review"), key=lambda each: each.offset)
    desk.press(desk.settlement(first, by="p-2"), desk.settlement(again))
    told = desk.told(3)
    desk.wait_until(lambda: not desk.deployment.lag("dispatch", group=f"{desk.deployment.name}.effects"))

    assert sorted((each["outcome"], each["code"]) for each in told.values()) == [
        ("accepted", ""),
        ("accepted", ""),
        ("void", "decided_anew"),
    ]
    assert len(desk.dispatched()) == 2
    with Redis.from_url(valkey.url) as redis:
        carried_out = [int(str(redis.hlen(name))) for name in redis.scan_iter(match=f"{prefix}*")]
    assert carried_out == [1]
