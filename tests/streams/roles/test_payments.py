"""The payment provider that other tests rest on does what it is told: each of its faults, by a plain HTTP client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time

import aiohttp
import pytest
from ticketgate.agents.funnel.evidence import LookupUnavailable
from ticketgate.agents.funnel.lookups.http import HttpWorld
from ticketgate.codecs.records.proposal import Proposal, Request

from ...support.payments import Account, PaymentServer

KEY = "key-00001"
SIX_HUNDRED = {"amount": "600.00", "payee": "supplier_7"}
STANDS = {**SIX_HUNDRED, "status": "scheduled"}


# For a client that gets no answer.
SHORT_S = 0.3


def test_a_key_takes_effect_once_and_stands_for_one_content(bank: PaymentServer) -> None:
    created = bank.transfer(KEY, SIX_HUNDRED)
    replayed = bank.transfer(KEY, dict(reversed(SIX_HUNDRED.items())))
    other = bank.transfer(KEY, {**SIX_HUNDRED, "amount": "700.00"})

    assert created == (201, {"id": "tr_0001", "state": STANDS, "replayed": False})
    assert replayed == (200, {"id": "tr_0001", "state": STANDS, "replayed": True})
    assert other[0] == 422
    assert bank.read_back(KEY) == (200, {"id": "tr_0001", "state": STANDS})
    assert bank.ledger() == {KEY: Account(posts=3, served=3, reads=1, transfers=["tr_0001"])}


def test_without_idempotency_each_request_is_another_transfer(bank: PaymentServer) -> None:
    bank.behave(idempotent_by_key=False)

    answers = [bank.transfer(KEY, SIX_HUNDRED) for _ in range(2)]

    assert [status for status, _ in answers] == [201, 201]
    assert bank.account(KEY).transfers == ["tr_0001", "tr_0002"]
    assert bank.read_back(KEY)[1]["id"] == "tr_0001"


@pytest.mark.parametrize(
    ("fault", "status", "transfers"),
    [
        ("silence", 0, 0),
        ("drop", 0, 0),
        ("unavailable", 503, 0),
        ("refuse", 403, 0),
        ("commit_then_silence", 0, 1),
        ("commit_then_drop", 0, 1),
        ("commit_then_unavailable", 503, 1),
        ("answer_twice", 201, 1),
        ("serve_twice", 200, 1),
    ],
)
def test_a_fault_is_met_once_and_only_under_its_key(
    bank: PaymentServer, fault: str, status: int, transfers: int
) -> None:
    bank.fail(fault, key=KEY)

    timeout_s = SHORT_S if "silence" in fault else 10
    assert bank.transfer("key-00002", SIX_HUNDRED)[0] == 201
    assert bank.transfer(KEY, SIX_HUNDRED, timeout_s=timeout_s)[0] == status
    if transfers:
        wait_for_transfer(bank)
    assert bank.read_back(KEY)[0] == (200 if transfers else 404)
    assert bank.transfer(KEY, SIX_HUNDRED)[0] == (200 if transfers else 201)
    assert len(bank.account(KEY).transfers) == 1


def test_a_late_request_takes_effect_after_its_client_has_gone(bank: PaymentServer) -> None:
    bank.fail("late_commit", seconds=1)

    assert bank.transfer(KEY, SIX_HUNDRED, timeout_s=SHORT_S) == (0, None)

    wait_for_transfer(bank)
    assert bank.account(KEY).served == 1


def test_an_overtaken_request_is_served_after_the_one_that_overtook_it(bank: PaymentServer) -> None:
    bank.fail("overtaken", key=KEY)

    assert bank.transfer(KEY, SIX_HUNDRED, timeout_s=SHORT_S) == (0, None)
    assert bank.account(KEY).transfers == []

    assert bank.transfer(KEY, SIX_HUNDRED)[0] == 201
    deadline = time.monotonic() + 10
    while bank.account(KEY).served < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert bank.account(KEY).transfers == ["tr_0001"]


def test_a_late_answer_comes_to_who_waits_for_it(bank: PaymentServer) -> None:
    bank.fail("commit_then_late_answer", seconds=1, times=2)

    assert bank.transfer(KEY, SIX_HUNDRED, timeout_s=SHORT_S) == (0, None)
    assert bank.transfer(KEY, SIX_HUNDRED)[0] == 200


async def test_an_answer_that_comes_twice_is_on_the_wire_twice(bank: PaymentServer) -> None:
    await asyncio.to_thread(bank.fail, "answer_twice")
    reader, writer = await asyncio.open_connection("127.0.0.1", bank.port)
    body = json.dumps({"tool": "pay", "arguments": SIX_HUNDRED}).encode()
    writer.write(
        f"POST /transfers HTTP/1.1\r\nHost: bank\r\nIdempotency-Key: {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )

    async with asyncio.timeout(5):
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            assert json.loads(await reader.readexactly(int(length.split(b":")[1])))["id"] == "tr_0001"
    writer.close()
    await writer.wait_closed()


async def test_a_client_with_a_connection_for_each_request_does_not_mix_answers_up(
    bank: PaymentServer,
) -> None:
    await asyncio.to_thread(bank.fail, "answer_twice")
    told: list[str] = []
    # Kept alive, aiohttp's connection hands the second answer to the next request: hence the adapters' connectors.
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        for key in (KEY, "key-00002"):
            asked = {"tool": "pay", "arguments": {"amount": key}}
            # Both answers in one packet are a fault of the transport's: no answer, and no other request's.
            with contextlib.suppress(aiohttp.ClientError):
                async with session.post(
                    f"{bank.url}/transfers", json=asked, headers={"Idempotency-Key": key}
                ) as response:
                    told.append((await response.json())["state"]["amount"])

    assert told in ([KEY, "key-00002"], ["key-00002"])


def test_what_was_committed_is_hidden_from_readers_for_the_lag(bank: PaymentServer) -> None:
    bank.behave(read_lag_s=3600)
    bank.transfer(KEY, SIX_HUNDRED)

    assert bank.read_back(KEY)[0] == 404
    bank.behave(read_lag_s=0.01)
    wait_for_transfer(bank)


@pytest.mark.parametrize(("fault", "status"), [("silence", 0), ("unavailable", 503), ("not_found", 404)])
def test_a_read_back_fails_as_it_is_told(bank: PaymentServer, fault: str, status: int) -> None:
    bank.transfer(KEY, SIX_HUNDRED)
    bank.fail(fault, on="read_back")

    assert bank.read_back(KEY, timeout_s=SHORT_S if fault == "silence" else 10)[0] == status
    assert bank.read_back(KEY)[0] == 200


def test_kill_9_loses_nothing(bank: PaymentServer) -> None:
    bank.fail("commit_then_drop")
    bank.transfer(KEY, SIX_HUNDRED)
    bank.delegate({"actor_id": "a", "tools": ["pay"]})
    bank.fail("unavailable", times=2)
    bank.transfer("key-00002", SIX_HUNDRED)

    bank.kill()
    assert bank.transfer(KEY, SIX_HUNDRED) == (0, None)
    bank.start()

    assert bank.ledger() == {
        KEY: Account(posts=1, served=1, transfers=["tr_0001"]),
        "key-00002": Account(posts=1),
    }
    assert bank.look_up("authority", "a") == (200, {"actor_id": "a", "tools": ["pay"]})
    assert bank.transfer("key-00002", SIX_HUNDRED)[0] == 503
    assert bank.transfer("key-00002", SIX_HUNDRED)[0] == 201


def test_evidence_is_what_was_said_last(bank: PaymentServer) -> None:
    assert bank.look_up("authority", "a")[0] == 404
    bank.delegate({"actor_id": "a", "tools": ["pay"]})
    bank.set_world({"facts": {"balance": "1.00"}})
    bank.set_world({"facts": {"balance": "2.00"}}, actor_id="b")

    assert bank.look_up("authority", "a")[1]["tools"] == ["pay"]
    assert bank.look_up("world", "a")[1] == {"facts": {"balance": "1.00"}}
    assert bank.look_up("world", "b")[1] == {"facts": {"balance": "2.00"}}

    bank.revoke("a")
    bank.fail("unavailable", on="world", key="b")

    assert bank.look_up("authority", "a")[0] == 404
    assert bank.look_up("world", "b")[0] == 503


def test_evidence_can_change_between_two_looks(bank: PaymentServer) -> None:
    bank.delegate({"actor_id": "a", "tools": ["pay"]})
    bank.set_world({"facts": {"balance": "1.00"}})
    bank.fail("other", on="authority", skip=1)
    bank.fail("other", on="world", skip=1, answer={"facts": {}})

    assert [bank.look_up("authority", "a")[0] for _ in range(3)] == [200, 404, 200]
    assert [bank.look_up("world", "a")[1]["facts"] for _ in range(2)] == [{"balance": "1.00"}, {}]


def test_what_stands_can_be_changed_by_somebody_else(bank: PaymentServer) -> None:
    bank.transfer(KEY, SIX_HUNDRED)

    bank.alter(KEY, amount="6.00")

    assert bank.read_back(KEY)[1]["state"] == {**STANDS, "amount": "6.00"}


def wait_for_transfer(bank: PaymentServer) -> None:
    deadline = time.monotonic() + 10
    while bank.read_back(KEY)[0] != 200:
        assert time.monotonic() < deadline, bank.ledger()
        time.sleep(0.05)


async def test_an_answer_that_comes_twice_is_no_evidence_for_the_next_case(bank: PaymentServer) -> None:
    for actor_id in ("a", "b"):
        await asyncio.to_thread(bank.set_world, {"facts": {"of": actor_id}}, actor_id=actor_id)
    await asyncio.to_thread(bank.fail, "answer_twice", on="world", times=20)
    source = HttpWorld(url=f"{bank.url}/world", timeout_s=5, max_bytes=10_000)
    told: list[tuple[str, object]] = []
    for actor_id in ("a", "b") * 10:
        request = Request(operation="pay", actor_id=actor_id)
        # Both answers in one packet are no answer: waited for, as of a source that is away.
        with contextlib.suppress(LookupUnavailable):
            world = await source.world(Proposal(case_id="c", attempt=1, call="", request=request))
            told.append((actor_id, world.facts["of"]))
    await source.close()

    assert all(asked == answered for asked, answered in told), told
