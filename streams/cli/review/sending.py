"""A settlement sent and waited for, or found under way, with words for who is interrupted.

Promise: whoever is interrupted, or loses the broker, is told whether the settlement was sent and how to go on. The way
on is always the same command again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ticketgate.streams.cli.output import say
from ticketgate.streams.cli.review.sharing import fed_view
from ticketgate.streams.config.settings import Settings

if TYPE_CHECKING:
    from ticketgate.codecs.records.identity import Coordinate
    from ticketgate.codecs.records.settlement import Settlement
    from ticketgate.streams.operations.review.said_before import Row

# A worker takes a settlement in well under a second; one that just starts, in some.
WAIT_S = 15.0
LOOK_EVERY_S = 0.5

NOTHING_SENT = "nothing was sent"
NOT_KNOWN = (
    "it is not known whether the settlement was sent: run the same command again; if it was, that finds it and waits"
    " for it, and the ticket is settled once"
)
SENT = "the settlement was sent and counts once a worker takes it: run the same command again to see what became of it"


@contextmanager
def if_interrupted(told: str) -> Iterator[None]:
    """Tell it, if Ctrl-C or a broker that is away ends the block."""
    from ticketgate.streams.kafka.broker import Unreachable

    try:
        yield
    except (KeyboardInterrupt, Unreachable):
        say(told)
        raise


def send_and_wait(settings: Settings, settlement: Settlement) -> dict[str, Any]:
    """What became of it, as `wait` says."""
    from ticketgate.streams.operations.review.desk import send

    with if_interrupted(NOT_KNOWN):
        at = asyncio.run(send(settings, settlement))
    return wait(settings, settlement, at)


def wait(settings: Settings, settlement: Settlement, at: Coordinate) -> dict[str, Any]:
    """What became of a settlement that lies there, once `settled` says so; `not_taken_yet` if it does not in time. Of
    one that came behind an earlier one that says the same: what became of that."""
    from ticketgate.streams.operations.review.said_before import owner_of

    end = time.monotonic() + WAIT_S
    with if_interrupted(SENT):
        while time.monotonic() < end:
            with fed_view(settings) as view:
                rows = view.settlements(key=settlement.key)
            told: Row | None = next(
                (each for each in rows if each["coordinate"] == str(at) and each["outcome"]), None
            )
            owner = owner_of(settlement.review, rows)
            if told is not None and told["outcome"] == "already_settled" and _is_own(owner, settlement):
                say("an earlier settlement of yours that says the same was before it: that one counts")
                told = owner
            if told is not None:
                return outcome_of(told)
            time.sleep(LOOK_EVERY_S)
    say("sent, and not taken yet: it counts once a worker with the role settle takes it")
    return {"settlement": settlement.id, "outcome": "not_taken_yet", "code": "", "reasons": []}


def _is_own(owner: Row | None, settlement: Settlement) -> bool:
    """Whether what settled the ticket is the same person's, and says the same."""
    from ticketgate.streams.operations.review.said_before import told_the_same

    return owner is not None and told_the_same(
        owner, by=settlement.by, action=str(settlement.action), labels=settlement.labels
    )


def outcome_of(row: Row) -> dict[str, Any]:
    """What a row of the view says became of a settlement."""
    return {"settlement": row["id"], **{name: row[name] for name in ("outcome", "code", "reasons")}}
