"""A choice that is too large for one request, put to a server: each ticket with the options kept for it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from ticketgate.agents.scoring import remote
from ticketgate.codecs.systemone.questions import ChoiceQuestion, Question

from .test_remote import Open, Server, good, on, opened, tickets  # noqa: F401  # a fixture

QUESTIONS: dict[str, Question] = {
    "desk": ChoiceQuestion(None, {letter * 2: None for letter in "abcdefgh"}, shortlist=2)
}
# On a busy machine the second request may be slow to come; that it does not come before the first is answered is told
# by nothing else.
MEET_TIMEOUT_S = 30.0


@pytest.fixture(autouse=True)
def embed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text's vector by its first letter, so that no model is opened."""

    def by_letter(texts: Sequence[str]) -> list[list[float]]:
        return [[float(letter == text[0]) for letter in "abcdefgh"] for text in texts]

    monkeypatch.setattr(remote, "_shipped_encoder", lambda: by_letter)


def test_tickets_with_options_of_their_own_are_asked_at_once(opened: Open) -> None:  # noqa: F811
    meeting = threading.Barrier(2)

    def behave(state: Any) -> Any:
        meeting.wait(MEET_TIMEOUT_S)
        return good(state)

    with Server(behave) as server:
        found = opened(server.url, timeout_s=2 * MEET_TIMEOUT_S).score(tickets("b", "g"), QUESTIONS)

    assert sorted(server.states) == ["b", "g"]
    assert [scores.asked["desk"].labels for scores in found] == [("aa", "bb"), ("aa", "gg")]


def test_a_refusal_of_one_is_held_against_its_own_questions(opened: Open) -> None:  # noqa: F811
    with Server(on("g", (422, {}, b'{"detail": "no"}'))) as server:
        fine, bad = opened(server.url).score(tickets("b", "g"), QUESTIONS)

    assert fine.failure is None
    assert bad.failure is not None
    assert bad.failure.is_senders
    assert bad.asked["desk"].labels == ("aa", "gg")
    assert server.states.count(remote.CANARY_STATE) == 1
