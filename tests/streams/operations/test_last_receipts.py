"""What a rebuilt ledger takes for an effect's last step, of all its receipts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ticketgate.agents.effects.ledger import Entry
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.streams.operations.ledger_rebuild import _LastReceipts

from ...support.effects import LANE, Scene, order
from ...support.fakes import record


class Died(Exception):
    """A process ends here."""


async def settled_after_its_announcer_died(state: EffectState) -> Sequence[EffectReceipt]:
    """What was told of an absent effect whose second sending was announced, never made, and settled by a person."""
    scene = Scene()
    scene.bank.answers.append("lost_before")
    (prepared,) = await scene.executor.prepare([order()], token=LANE, claimed=1)
    assert isinstance(prepared, Entry)
    await scene.executor.carry_out(prepared, token=LANE)

    async def dies(entry: Entry, *, token: object) -> Entry:
        raise Died

    scene.executor.send = dies  # type: ignore[method-assign,assignment]
    with pytest.raises(Died):
        await scene.reconcile(after_s=10)
    await scene.reconciler.settle("k1", state, actor="ann", reason="the bank says so")
    return scene.told


@pytest.mark.parametrize("state", [EffectState.COMMITTED, EffectState.ABSENT, EffectState.REJECTED])
@pytest.mark.parametrize("is_late", [False, True], ids=["in order", "the announcement came late"])
async def test_a_persons_word_outweighs_a_second_sending_that_was_only_announced(
    state: EffectState, is_late: bool
) -> None:
    announced, word = await settled_after_its_announcer_died(state)
    assert (announced.effect_state, announced.sequence) == (EffectState.PREPARED, word.sequence)
    last = _LastReceipts(1_000_000)

    for offset, told in enumerate((word, announced) if is_late else (announced, word)):
        last.add(record(offset, told.encode()))

    assert last.by_key["k1"].receipt.settled_by == word.settled_by is not None
