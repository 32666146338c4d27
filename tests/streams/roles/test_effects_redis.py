"""Effects while the Redis that holds their ledger dies, or forgets: nothing is sent that may have been sent before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ticketgate.streams.parts.kafka import Kafka

from ...support.deployment import Sent
from ...support.meddling import redis_call, send_to
from ...support.payment_funnel import effect_of
from ...support.proposals import key_of, proposal
from ...support.stepped_effects import SteppedEffects, stepped_effects

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def effects(kafka: Kafka, tmp_path: Path) -> Iterator[SteppedEffects]:
    with stepped_effects(kafka, tmp_path) as effects:
        yield effects


def test_a_redis_that_is_killed_and_restarted_repeats_nothing(effects: SteppedEffects) -> None:
    effects.outlive(effects.valkey, actor_id="redis", cases=[f"case-{n}" for n in range(30)])


def test_an_emptied_ledger_is_refused_rebuilt_and_gone_on_with(effects: SteppedEffects) -> None:
    effects.delegate("before", "open", "killed", "after")
    effects.bank.fail("commit_then_silence", key=key_of("open"))
    effects.bank.fail("unavailable", on="read_back", key=key_of("open"), times=1_000)
    hand = effects.hand()
    hand.wait_ready()
    effects.send(proposal("before", actor_id="before"), proposal("open", actor_id="open"))
    effects.effect("before", "committed")
    effects.effect("open", "unknown")
    effects.arm("after port.execute")
    effects.send(proposal("killed", actor_id="killed"))
    effects.wait_struck(hand)

    redis_call(effects.gate.redis_url, "FLUSHALL")

    refusing = effects.relieve()
    refusing.wait_for(lambda state: "ledger rebuild" in json.dumps(state.get("waiting", {})))
    restored = effects.gate.run("claims", "rebuild")
    assert restored.returncode == 0, restored.stderr
    effects.send(proposal("after", actor_id="after"))
    effects.decision("after")
    posts = {name: effects.bank.account(key_of(name)).posts for name in ("before", "open", "killed", "after")}
    assert posts == {"before": 1, "open": 1, "killed": 1, "after": 0}
    assert refusing.stop() == 0
    rebuilt = effects.gate.run("ledger", "rebuild")
    assert rebuilt.returncode == 0, rebuilt.stderr
    effects.bank.heal()
    effects.relieve()
    # Another case under a key that stood before: it is known.
    effects.delegate("again")
    effects.send(proposal("again", actor_id="again", control={"idempotency_key": key_of("before")}))

    assert effects.effect("again")["status"] == "replayed"

    effects.assert_each_paid_once(["before", "open", "killed", "after"])
    posts = {name: effects.bank.account(key_of(name)).posts for name in posts}
    assert posts == dict.fromkeys(posts, 1)


def test_a_worker_at_work_notices_that_its_ledger_was_emptied(effects: SteppedEffects) -> None:
    effects.delegate("twice")
    hand = effects.hand()
    hand.wait_ready()
    effects.send(proposal("twice", actor_id="twice"))
    effects.effect("twice", "committed")
    effects.wait_taken()
    (dispatched,) = effects.gate.committed("dispatch")

    redis_call(effects.gate.redis_url, "FLUSHALL")
    send_to(effects.gate, effects.gate.topic("dispatch"), [Sent(dispatched.value, key=dispatched.key)])

    hand.wait_for(lambda state: "ledger rebuild" in json.dumps(state.get("waiting", {})))
    assert effects.bank.account(key_of("twice")).posts == 1
    assert hand.stop() == 0
    rebuilt = effects.gate.run("ledger", "rebuild")
    assert rebuilt.returncode == 0, rebuilt.stderr
    effects.relieve().wait_ready()
    effects.wait_settled()
    assert effects.bank.account(key_of("twice")).posts == 1
    told = [each["status"] for each in effects.records("receipts") if effect_of("twice")(each)]
    assert told == [None, "created", "replayed"]
