"""The decider of a worker: what it counts of its scorer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest
from ticketgate.agents.scoring import Scores
from ticketgate.agents.scoring.scorer import TextCounts
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.roles.decide.model_decider import ModelDecider

from ...support.deciding import noul, policy


class Rememberer:
    """Knows every text again that it had before."""

    model = ModelRef(id="rememberer", hash="0" * 64)

    def __init__(self) -> None:
        self.known: set[str] = set()
        self.text_counts = TextCounts()

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        texts = [str(each.state) for each in tickets]
        if "RAISE" in texts:
            raise RuntimeError
        new = {*texts} - self.known
        self.known |= new
        before = self.text_counts
        self.text_counts = TextCounts(before.repeated + len(texts) - len(new), before.read + len(new))
        return [Scores({name: noul(0.9) for name in questions}) for _ in tickets]


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def decider(telemetry: Telemetry) -> Iterator[ModelDecider]:
    made = ModelDecider(policy=policy(), scorer=Rememberer(), telemetry=telemetry, timeout_s=10)
    yield made
    made.close()


async def test_texts_are_counted_as_read_or_repeated_once_each(
    decider: ModelDecider, telemetry: Telemetry
) -> None:
    for texts in (["a", "b"], ["b"], ["c", "a"]):
        await decider.decide([Ticket(id=text, state=text) for text in texts])
    with pytest.raises(RuntimeError):
        await decider.decide([Ticket(id="r", state="RAISE")])

    exposed = telemetry.expose(is_ready=True)[0].decode()
    assert 'ticketgate_scorer_texts_total{outcome="read"} 3.0' in exposed
    assert 'ticketgate_scorer_texts_total{outcome="repeated"} 2.0' in exposed
