"""What runs in the world: a lane of the effects group, and a reconciler. The executor and the reconciler are the
product's own; the lane is `effect_taker.py` and `opening.py` in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from ticketgate.agents.effects.executor import Executor, receipt_of
from ticketgate.agents.effects.ledger import Entry
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.agents.effects.rules import confirmation_spent
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.store.tokens import LaneToken

from .world import Fenced, Process, Refusal, Stop, StoppingBank, StoppingLedger, World, order

STOPS = (
    "before prepare",
    "before announce",
    "after announce",
    "before begin_send",
    "after begin_send",
    "before it leaves",
    "after it left",
    "before read_back",
    "after read_back",
    "before settle",
    "after settle",
    "before commit",
)


def lane(world: World, number: int, executor_type: type[Executor] = Executor) -> Process:
    """Open the partition, and take its one record to the commit."""

    async def work() -> None:
        token = LaneToken("dispatch", 0, "lane", f"lane {number}")
        world.token = token.value
        await Stop("before fence")
        world.fence = number
        await Stop("after fence")
        _compare(world)
        if world.committed == 1:
            return
        ledger = StoppingLedger(world)
        executor = executor_type(ledger, {"bank": StoppingBank(world)}, clock=lambda: world.now)
        (entry,) = await executor.prepare([order()], token=token, claimed=1)
        assert isinstance(entry, Entry)
        objection = confirmation_spent(entry) if entry.state is EffectState.PREPARED else None
        if objection is not None:
            entry = await executor.stop(entry, objection, token=token)
        elif entry.state is EffectState.PREPARED and world.rules.announces_before_sending:
            position = 0 if world.rules.commits_position else None
            await _commit(world, number, [receipt_of(entry)], position)
        entry = await executor.carry_out(entry, token=token)
        await Stop("before commit")
        await _commit(world, number, [receipt_of(entry)], 1)

    return Process(f"lane {number}", work)


def _compare(world: World) -> None:
    """As a lane's opening does; a mark that is missing where there is an offset is a loss too."""
    if world.is_behind:
        raise Refusal


async def _commit(world: World, number: int, receipts: Sequence[EffectReceipt], offset: int | None) -> None:
    await Stop("before announce")
    if world.fence != number:
        raise Fenced
    world.receipts += receipts
    if offset is not None:
        world.committed = offset
    await Stop("after announce")


def reconciler(
    world: World,
    number: int,
    executor_type: type[Executor] = Executor,
    reconciler_type: type[Reconciler] = Reconciler,
) -> Process:
    """Look once at what is due."""

    async def announce(receipts: Sequence[EffectReceipt]) -> None:
        await Stop("before announce")
        world.receipts += receipts
        await Stop("after announce")

    async def work() -> None:
        ledger = StoppingLedger(world)
        executor = executor_type(ledger, {"bank": StoppingBank(world)}, clock=lambda: world.now)
        await reconciler_type(ledger, executor, judge_again=None, announce=announce).run_once()

    return Process(f"reconciler {number}", work)
