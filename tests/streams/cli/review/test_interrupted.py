"""Who is interrupted, or loses the broker, while a settlement is sent is told how to go on."""

from __future__ import annotations

import pytest
from ticketgate.streams.cli.review.sending import NOT_KNOWN, if_interrupted
from ticketgate.streams.kafka.broker import Unreachable


@pytest.mark.parametrize(
    "ends", [KeyboardInterrupt(), Unreachable("TICKETGATE_KAFKA", "is away", "start it")]
)
def test_it_is_told_and_passed_on(ends: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(type(ends)), if_interrupted(NOT_KNOWN):
        raise ends

    assert "run the same command again" in capsys.readouterr().err


def test_nothing_is_told_where_nothing_happened(capsys: pytest.CaptureFixture[str]) -> None:
    with if_interrupted(NOT_KNOWN):
        pass

    assert capsys.readouterr().err == ""
