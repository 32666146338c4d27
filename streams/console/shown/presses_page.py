"""Presses as their person sees them: what was pressed, how far it is, and whether it can be taken back.

Promise: pure; nothing is called done that no worker has told, and nothing lost that may have been sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ticketgate.streams.console.desk.notes import NOT_TAKEN, OPEN, Press, PressStage
from ticketgate.streams.console.shown.foreign import Foreign, foreign

# Of one batch so many tickets are named.
MOST_NAMED = 3
# So long a press that is done with is still told of on every page.
TOLD_FOR_MS = 8_000
# What went wrong stays until its person has seen it for a while.
FAULTS_FOR_MS = 120_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPress:
    """What was pressed at once. stage: one of PressStage, or the outcome once there is one. left_s: for how long it can
    be taken back still, 0 for no longer. counts: of a batch whose presses differ, how many are at each stage."""

    batch: str
    action: str
    names: tuple[Foreign, ...]
    keys: tuple[str, ...]
    more: int
    stage: str
    reason: Foreign
    left_s: int
    count: int
    counts: tuple[tuple[str, int], ...]
    name: str = ""
    is_open: bool = True
    is_fault: bool = False


def shown_press(press: Press, *, now_ms: int, name: str = "") -> ShownPress:
    """One press."""
    return shown_batch([press], now_ms=now_ms, name=name)


def shown_batch(presses: Sequence[Press], *, now_ms: int, name: str = "") -> ShownPress:
    """Presses of one batch."""
    first = presses[0]
    stages = [stage_of(each) for each in presses]
    counts = {stage: stages.count(stage) for stage in dict.fromkeys(stages)}
    left_ms = max((each.due_ms - now_ms for each in presses if each.stage is PressStage.PRESSED), default=0)
    faults = [stage for stage in stages if is_fault(stage)]
    stage = faults[0] if faults else next((each for each in _ORDER if each in counts), stages[0])
    reason = next((each.reason for each in presses if stage_of(each) == stage and each.reason), "")
    return ShownPress(
        batch=first.batch,
        action=first.action,
        names=tuple(foreign(each.ticket_id, most=60) for each in presses[:MOST_NAMED]),
        keys=tuple(quote(each.key, safe="") for each in presses[:MOST_NAMED]),
        more=max(0, len(presses) - MOST_NAMED),
        stage=stage,
        reason=foreign(reason, most=400),
        left_s=max(0, -(-left_ms // 1000)),
        count=len(presses),
        counts=tuple(counts.items()) if len(counts) > 1 else (),
        name=name,
        is_open=any(stage in OPEN for stage in stages),
        is_fault=bool(faults),
    )


# The one that a batch is called by: the least far.
_ORDER = ("pressed", "sending", "sent", "accepted", "rejected", "returned", "taken_back")


def stage_of(press: Press) -> str:
    """How far it is, or what became of it."""
    return press.outcome if press.stage is PressStage.TOLD else str(press.stage)


def is_fault(stage: str) -> bool:
    """Whether nothing became of it, though nobody took it back."""
    return stage in ("not_sent", "void", "already_settled", NOT_TAKEN)


def batches(presses: Sequence[Press]) -> list[list[Press]]:
    """Presses by what was pressed at once, in their order."""
    found: dict[str, list[Press]] = {}
    for each in presses:
        found.setdefault(each.batch, []).append(each)
    return list(found.values())


def is_news(shown: ShownPress, pressed_ms: int, now_ms: int) -> bool:
    """Whether every page still tells of it."""
    if shown.is_open:
        return True
    return now_ms - pressed_ms < (FAULTS_FOR_MS if shown.is_fault else TOLD_FOR_MS + 5_000)
