"""The machine is worth something only if it catches rules that are broken. Each mutant breaks one.

What it takes many steps to come upon is told step by step in test_stories.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from ticketgate.agents.effects import executor as executor_module
from ticketgate.agents.effects import reconcile as reconcile_module
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.ledger import Entry, Moved, Settlement
from ticketgate.agents.effects.port import CannotRead, EffectPort, NotFound, ReadBackResult
from ticketgate.agents.effects.rules import NO_ANSWER, after_read_back, may_resend
from ticketgate.codecs.records.receipt import EffectState

from .machine import Effects, EffectsAtAPlainProvider, Violated
from .world import Rules

if TYPE_CHECKING:
    from ticketgate.store.tokens import LaneToken

# The same interleavings each time, and no shrinking: that it fails is all that is asked.
bounded = settings(
    max_examples=1_000,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)


def fails(kind: type[Effects], **changed: Any) -> None:
    """The machine fails with what is changed of it."""
    with pytest.raises(Violated) as violated:
        run_state_machine_as_test(type(kind.__name__, (kind,), changed), settings=bounded)
    print(violated.value)


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("guards_by_token", EffectsAtAPlainProvider),
        ("announces_before_sending", EffectsAtAPlainProvider),
        ("commits_position", EffectsAtAPlainProvider),
        ("restores_prepared_as_unknown", EffectsAtAPlainProvider),
        ("restores_confirmations", Effects),
        ("confirms_once", Effects),
    ],
)
def test_the_machine_fails_without_the_rule(rule: str, kind: type[Effects]) -> None:
    fails(kind, protocol=replace(Rules(), **{rule: False}))


class SendsFirst(Executor):
    """Writes down that the outcome is unknown only once the request has left."""

    async def send(self, entry: Entry, *, token: LaneToken | None) -> Entry:
        port = self.port(entry)
        prepared = await port.prepare(entry.order.command)
        answer = await port.execute(prepared)  # type: ignore[arg-type]
        sent = await self._ledger.begin_send(entry, verdict=NO_ANSWER, token=token, read_back_in_s=30)
        if isinstance(sent, Moved):
            return sent.entry or entry
        return await self._after(sent, answer, port, token)


class SendsWhatIsUnknown(Executor):
    """Takes what a predecessor left unknown for what was never sent."""

    async def read_again(self, entry: Entry, *, token: LaneToken | None = None) -> Entry:
        if entry.state is EffectState.UNKNOWN and token is not None:
            port = self.port(entry)
            answer = await port.execute(await port.prepare(entry.order.command))  # type: ignore[arg-type]
            return await self._after(entry, answer, port, None)
        return await super().read_again(entry, token=token)


class BelievesTheTransport(Executor):
    """Takes a time-out for a failure, and settles without reading back."""

    async def look(self, entry: Entry, *, token: LaneToken | None = None) -> tuple[Entry, ReadBackResult]:
        if not entry.is_open:
            return entry, CannotRead()
        settlement = Settlement(state=EffectState.REJECTED, verdict=NO_ANSWER)
        written = await self._ledger.settle(entry, settlement, token=token, read_back_in_s=0)
        return (written if isinstance(written, Entry) else entry), CannotRead()


def test_the_machine_fails_where_the_ledger_hears_of_a_sending_after_it() -> None:
    fails(EffectsAtAPlainProvider, executor_type=SendsFirst)


def test_the_machine_fails_where_an_unknown_effect_is_sent_again() -> None:
    fails(EffectsAtAPlainProvider, executor_type=SendsWhatIsUnknown)


def test_the_machine_fails_where_a_time_out_is_a_failure() -> None:
    fails(Effects, executor_type=BelievesTheTransport)


def test_the_machine_fails_where_what_cannot_be_read_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(entry: Entry, found: ReadBackResult, *, settle_s: float) -> Settlement | None:
        return after_read_back(
            entry, NotFound() if isinstance(found, CannotRead) else found, settle_s=settle_s
        )

    look = Executor.look

    async def looks(
        self: Executor, entry: Entry, *, token: LaneToken | None = None
    ) -> tuple[Entry, ReadBackResult]:
        looked, found = await look(self, entry, token=token)
        return looked, NotFound() if isinstance(found, CannotRead) else found

    monkeypatch.setattr(executor_module, "after_read_back", hasty)
    monkeypatch.setattr(Executor, "look", looks)
    fails(Effects)


def test_the_machine_fails_where_the_settle_time_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(entry: Entry, found: ReadBackResult, *, settle_s: float) -> Settlement | None:
        return after_read_back(entry, found, settle_s=0.0)

    monkeypatch.setattr(executor_module, "after_read_back", hasty)
    fails(Effects)


def test_the_machine_fails_where_a_plain_provider_is_sent_to_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Claims:
        is_idempotent_by_key = True

    def bold(entry: Entry, port: EffectPort) -> bool:
        return may_resend(entry, Claims())  # type: ignore[arg-type]

    monkeypatch.setattr(reconcile_module, "may_resend", bold)
    fails(EffectsAtAPlainProvider)
