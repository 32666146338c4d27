"""A server that is out of order, in any dress: no ticket and no case suffers for it, and it is asked again."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from ticketgate.agents.funnel.evidence import EvidenceUnreadable, LookupUnavailable
from ticketgate.agents.scoring import ScorerUnavailable
from ticketgate.agents.scoring.remote import RemoteScorer

from tests.agents.funnel.test_lookups import proposal, serving
from tests.agents.scoring.test_remote import GOOD, URGENT, Open, Server, good, opened, tickets
from tests.support.funnel import authority

__all__ = ["opened"]

DRESSES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "a page": (200, {"Content-Type": "text/html"}, b"<html>maintenance</html>"),
    "a page of JSON's type": (200, {"Content-Type": "application/json"}, b"<html>maintenance</html>"),
    "an empty body": (200, {}, b""),
    "an error object": (200, {}, b'{"error": "maintenance"}'),
    "no answers": (200, {}, b'{"answers": {}}'),
    "null": (200, {}, b"null"),
    "nothing": (204, {}, b""),
    "a redirect": (302, {"Location": "/login"}, b""),
    "another page": (404, {"Content-Type": "text/html"}, b"<html>no such page</html>"),
    "half an answer": (200, {}, b'{"answers": {"urgent": {"type": "no'),
}


def test_an_outage_in_any_dress_is_no_tickets_fault(opened: Open) -> None:
    unmet: list[str] = []
    for dress, answer in DRESSES.items():
        with Server(lambda _, answer=answer: answer) as server:
            try:
                opened(server.url).score(tickets("a", "b"), URGENT)
            except ScorerUnavailable:
                continue
        unmet.append(dress)

    assert unmet == []


def test_an_outage_after_a_refused_ticket_is_no_tickets_fault(opened: Open) -> None:
    is_out = threading.Event()

    def behave(state: Any) -> Any:
        if is_out.is_set():
            return DRESSES["another page"]
        return (422, {}, b"{}") if state == "bad" else good()

    with Server(behave) as server:
        scorer = opened(server.url)
        (bad,) = scorer.score(tickets("bad"), URGENT)
        is_out.set()

        with pytest.raises(ScorerUnavailable):
            scorer.score(tickets("a"), URGENT)

    assert bad.failure is not None


@pytest.mark.parametrize("dress", ["a page", "an empty body", "an error object", "half an answer"])
def test_one_bad_answer_among_good_ones_is_that_tickets(opened: Open, dress: str) -> None:
    with Server(lambda state: DRESSES[dress] if state == "bad" else good()) as server:
        fine, bad, too = opened(server.url).score(tickets("fine", "bad", "too"), URGENT)

    assert (fine.failure, too.failure) == (None, None)
    assert bad.failure is not None
    assert bad.answers == {}


def test_a_bad_answer_that_passes_costs_nothing(opened: Open) -> None:
    replies = iter([DRESSES["a page"], DRESSES["an empty body"]])
    with Server(lambda _: next(replies, good())) as server:
        (scores,) = opened(server.url).score(tickets("a"), URGENT)

    assert scores.answers == GOOD["answers"]


@pytest.mark.parametrize("asked", ["1796018841", "1e300", "100000"])
def test_a_wait_has_a_ceiling_and_says_so(opened: Open, asked: str) -> None:
    with Server(lambda _: (429, {"retry-after": asked}, b"{}")) as server:
        scorer = opened(server.url)
        with pytest.raises(ScorerUnavailable) as first:
            scorer.score(tickets("a"), URGENT)
        with pytest.raises(ScorerUnavailable) as second:
            scorer.score(tickets("a"), URGENT)

    for away in (first.value, second.value):
        assert away.retry_after_s is not None
        assert away.retry_after_s <= 300
        assert "asked again in" in str(away)
    assert len(server.states) == 1


def test_a_server_that_was_away_is_asked_about_something_harmless_first(opened: Open) -> None:
    is_out = threading.Event()
    is_out.set()
    with Server(lambda _: (503, {}, b"") if is_out.is_set() else good()) as server:
        scorer: RemoteScorer = opened(server.url)
        with pytest.raises(ScorerUnavailable):
            scorer.score(tickets("a"), URGENT)
        before = len(server.states)
        with pytest.raises(ScorerUnavailable, match="before any ticket"):
            scorer.score(tickets(*"abcdefgh"), URGENT)
        while_away = server.states[before:]
        is_out.clear()
        scores = scorer.score(tickets(*"abcdefgh"), URGENT)

    assert set(while_away) == {"Hello."}
    assert all(each.answers == GOOD["answers"] for each in scores)


# --- evidence ---

EVIDENCE_DRESSES = {
    "a page": (200, b"<html>maintenance</html>"),
    "an empty body": (200, b""),
    "an error object": (200, b'{"error": "maintenance"}'),
    "an array": (200, b"[]"),
    "nothing": (204, b""),
    "a redirect": (302, b""),
    "a failure": (500, b"<html>"),
    "forbidden": (403, b"<html>"),
    "another page": (404, b"<html>no such page</html>"),
}


class Evidence:
    """A server of evidence that is out of order in one dress: for everybody, or for some."""

    def __init__(self) -> None:
        self.dress: tuple[int, bytes] | None = None
        self.only_for: str | tuple[str, ...] | None = None

    async def who(self, given: web.Request) -> web.StreamResponse:
        actor = given.match_info["actor"]
        return self._answer(actor, authority(actor_id=actor).to_json())

    async def how(self, given: web.Request) -> web.StreamResponse:
        return self._answer((await given.json())["request"]["actor_id"], {"facts": {"balance": "1.00"}})

    def _answer(self, actor: str, otherwise: Any) -> web.StreamResponse:
        whom = (self.only_for,) if isinstance(self.only_for, str) else self.only_for
        if self.dress is None or (whom is not None and actor not in whom):
            return web.json_response(otherwise)
        status, body = self.dress
        headers = {"Location": "/login"} if status == 302 else {}
        return web.Response(status=status, body=body, headers=headers)


@pytest.fixture
def evidence() -> Evidence:
    return Evidence()


@pytest.mark.parametrize("dress", EVIDENCE_DRESSES)
async def test_an_outage_of_evidence_in_any_dress_is_no_cases_fault(
    evidence: Evidence, dress: str, tmp_path: Path
) -> None:
    async with serving(tmp_path, evidence.who, evidence.how) as lookup:
        await lookup.authority(proposal("ann"))
        await lookup.world(proposal("ann"))
        evidence.dress = EVIDENCE_DRESSES[dress]
        with pytest.raises(LookupUnavailable):
            await lookup.world(proposal("bob"))
        with pytest.raises(LookupUnavailable):
            await lookup.authority(proposal("bob"))
        evidence.dress = None
        back = await lookup.authority(proposal("bob"))

    assert back is not None


@pytest.mark.parametrize("dress", sorted(EVIDENCE_DRESSES.keys() - {"another page", "a redirect"}))
async def test_one_bad_answer_among_good_ones_is_that_cases(
    evidence: Evidence, dress: str, tmp_path: Path
) -> None:
    evidence.dress, evidence.only_for = EVIDENCE_DRESSES[dress], "bob"
    async with serving(tmp_path, evidence.who, evidence.how) as lookup:
        await lookup.world(proposal("ann"))
        await lookup.authority(proposal("ann"))
        with pytest.raises(EvidenceUnreadable):
            await lookup.world(proposal("bob"))
        with pytest.raises(EvidenceUnreadable):
            await lookup.authority(proposal("bob"))
        again = await lookup.authority(proposal("ann"))

    assert again is not None


async def test_an_actor_whom_nobody_knows_stays_one_while_others_are_known(
    evidence: Evidence, tmp_path: Path
) -> None:
    evidence.dress, evidence.only_for = EVIDENCE_DRESSES["another page"], "bob"
    async with serving(tmp_path, evidence.who, evidence.how) as lookup:
        await lookup.authority(proposal("ann"))
        found = await lookup.authority(proposal("bob"))

    assert found is None


@pytest.mark.parametrize("others", [(), ("ann",)])
async def test_whose_right_was_withdrawn_holds_nobody_up(
    evidence: Evidence, others: tuple[str, ...], tmp_path: Path
) -> None:
    async with serving(tmp_path, evidence.who, evidence.how) as lookup:
        for actor in (*others, "bob"):
            assert await lookup.authority(proposal(actor)) is not None
        evidence.dress, evidence.only_for = EVIDENCE_DRESSES["another page"], "bob"

        found = await lookup.authority(proposal("bob"))

    assert found is None


async def test_an_outage_is_seen_by_whoever_was_answered_last(evidence: Evidence, tmp_path: Path) -> None:
    async with serving(tmp_path, evidence.who, evidence.how) as lookup:
        for actor in ("ann", "bob"):
            await lookup.authority(proposal(actor))
        evidence.dress = EVIDENCE_DRESSES["another page"]

        with pytest.raises(LookupUnavailable):
            await lookup.authority(proposal("bob"))


async def test_two_whose_rights_were_withdrawn_are_no_outage(evidence: Evidence, tmp_path: Path) -> None:
    async with serving(tmp_path, evidence.who, evidence.how) as lookup:
        for actor in ("cid", "ann", "bob"):
            await lookup.authority(proposal(actor))
        evidence.dress, evidence.only_for = EVIDENCE_DRESSES["another page"], ("ann", "bob")

        found = [await lookup.authority(proposal(actor)) for actor in ("bob", "ann")]

    assert found == [None, None]
