"""The reconciler beside the lanes: when it looks, and when it must not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.roles.effects import reconciling
from ticketgate.streams.roles.effects.reconciling import reconcile_forever

from ...support.effects import Scene


async def test_nothing_is_touched_until_the_conditions_hold_and_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for pause in ("LOOK_EVERY_S", "PAUSE_S", "REFUSED_PAUSE_S"):
        monkeypatch.setattr(reconciling, pause, 0.0)
    done: list[str] = []
    refusals: list[Exception] = [ConditionFailed("another cluster's", "set it back"), OSError("no broker")]
    failures: list[Exception] = [OSError("no Redis")]

    async def check_conditions() -> None:
        done.append("check")
        if refusals:
            raise refusals.pop(0)

    class Looks:
        async def run_once(self) -> list[Any]:
            done.append("look")
            if done.count("look") == 4:
                raise asyncio.CancelledError
            if done.count("look") == 2:
                raise failures.pop()
            return []

    looks: Any = Looks()
    with pytest.raises(asyncio.CancelledError):
        await reconcile_forever(looks, Scene().ledger, Telemetry(), check_conditions=check_conditions)

    assert done == ["check", "check", "check", "look", "look", "check", "look", "look"]
