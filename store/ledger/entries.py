"""What the ledger keeps of an effect: the command, who is to carry it out, how far it is, and what is known of it.

Promise: plain values, and nothing that loads Redis. `agents/effects` decides what is written; `ledger.py` here and
`agents/effects/adapters/memory_ledger.py` keep it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ticketgate.codecs.records.identity import Coordinate, Fingerprint
from ticketgate.codecs.records.receipt import EffectState, EffectStatus, JudgedAgain, SettledBy
from ticketgate.codecs.values.strict import JsonValue, canonical
from ticketgate.codecs.verdict import Stage, Status, Verdict

# The first sending, and the one resend that an idempotent provider may get.
MOST_SENDS = 2
# What a person may say became of an effect.
SETTLED_AS = ("committed", "absent", "rejected")


@dataclass(frozen=True, slots=True)
class Command:
    """One effect: the tool, its arguments in one spelling for equal values, and the key that it happens once under."""

    tool: str
    arguments: Mapping[str, JsonValue]
    key: str

    @property
    def content(self) -> Fingerprint:
        """What is asked for: SHA-256 of the canonical JSON of tool and arguments. Another content is another effect."""
        said = canonical({"tool": self.tool, "arguments": dict(self.arguments)})
        return Fingerprint(hashlib.sha256(said).hexdigest())


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A command with who carries it out and where it comes from.

    provider: its name in the funnel file. subject: the ticket's or the case's id. source: where the dispatched record
    lies. proposal: for a case what its gates judge again before a resend, as the record has it; None for a policy's
    effect, which has no such gates. confirmations: digests of those that allow it, of which it uses up one; none where
    it needs none.
    """

    command: Command
    provider: str
    subject: str = ""
    source: Coordinate | None = None
    proposal: Mapping[str, JsonValue] | None = None
    confirmations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An effect as it stands in the ledger.

    sequence counts the transitions, from 1. sends: how often it was given to the provider. age_s: since the last
    sending began, at the moment when the ledger was asked, by its clock; 0 if it was not sent. at: the last transition.
    provider_id, observed: what the provider said or what was read back. judged_again: what the verdict rests on where
    the gates stopped it at their second look. is_told: its receipt is announced, or is the lane's to commit.
    is_restored: made from receipts, and not to be sent again: what the gates would judge again is not at hand, or its
    confirmation allowed another effect as well.
    confirmation: the digest of the one that it has used up. spent_by: where all that would allow it are used up, the
    key of an effect that one of them allowed; nothing is sent then.
    """

    order: Order
    state: EffectState
    sequence: int
    sends: int
    age_s: float
    at: datetime
    provider_id: str | None = None
    observed: Mapping[str, JsonValue] | None = None
    status: EffectStatus | None = None
    verdict: Verdict | None = None
    settled_by: SettledBy | None = None
    judged_again: JudgedAgain | None = None
    is_told: bool = True
    is_restored: bool = False
    confirmation: str | None = None
    spent_by: str | None = None

    @property
    def key(self) -> str:
        """The key that the effect happens once under."""
        return self.order.command.key

    @property
    def is_open(self) -> bool:
        """Whether its outcome is not settled: it is unknown, or nothing stands and nobody has yet taken note."""
        return is_open(self.state, self.settled_by)

    @property
    def is_stopped(self) -> bool:
        """Whether it was rejected before anything was sent."""
        return self.state is EffectState.REJECTED and self.sends == 0

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it needs a confirmation and got none that was not used up."""
        return bool(self.order.confirmations) and self.confirmation is None

    @property
    def is_undone(self) -> bool:
        """Whether it is known that nothing came of it, so that its confirmation may allow another effect."""
        return is_undone(self.state, self.sends, self.verdict, self.settled_by)


# Where a provider's word that it did nothing is told; what was found to stand, and differs, is told at READBACK.
_REFUSED_AT = (Stage.OUTCOME, Stage.IDEMPOTENCY)


def is_undone(state: EffectState, sends: int, verdict: Verdict | None, settled_by: SettledBy | None) -> bool:
    """Whether it is known that nothing came of an effect: the gates stopped it before it was sent, the provider refused
    its one sending, or a person says so. What was only not found may still come, what was sent twice may stand by the
    first, and what was left to a person may be done by hand."""
    if settled_by is not None:
        return state in (EffectState.ABSENT, EffectState.REJECTED)
    if state is not EffectState.REJECTED or verdict is None or verdict.status is Status.REVIEW:
        return False
    return sends == 0 or (sends == 1 and verdict.stage in _REFUSED_AT)


def is_open(state: EffectState, settled_by: SettledBy | None) -> bool:
    """Whether an effect in this state is still to be read back: unknown, or absent without a person's word."""
    return state is EffectState.UNKNOWN or (state is EffectState.ABSENT and settled_by is None)


def is_free(entry: Entry, order: Order) -> bool:
    """Whether an entry leaves its key to another order: it was rejected before anything was sent. The same order, read
    again after a crash, finds it rejected."""
    return entry.is_stopped and entry.order != order


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What a transition writes. `UNKNOWN` leaves the outcome open and keeps why."""

    state: EffectState
    verdict: Verdict
    status: EffectStatus | None = None
    provider_id: str | None = None
    observed: Mapping[str, JsonValue] | None = None
    settled_by: SettledBy | None = None
    judged_again: JudgedAgain | None = None


def check_send(entry: Entry) -> None:
    """Raise ValueError where an effect may not be sent from: only a prepared one, or an absent one sent once."""
    is_first = entry.state is EffectState.PREPARED and entry.sends == 0
    is_resend = (
        entry.state is EffectState.ABSENT and entry.settled_by is None and 0 < entry.sends < MOST_SENDS
    )
    if not (is_first or is_resend):
        raise ValueError(
            f"effect {entry.key!r} is {entry.state} after {entry.sends} sends; it is not sent again"
        )
    if entry.is_unconfirmed:
        raise ValueError(f"effect {entry.key!r} has no confirmation left to use; it is not sent")


def check_settle(entry: Entry, settlement: Settlement) -> None:
    """Raise ValueError where there is no such transition."""
    if entry.state is EffectState.PREPARED:
        is_allowed = settlement.state is EffectState.REJECTED
    elif entry.is_stopped:
        # A person may have carried it out by hand; nothing else can be known of what was never sent.
        is_allowed = settlement.state is EffectState.COMMITTED and settlement.settled_by is not None
    else:
        # A late answer may show that what was taken for absent stands after all.
        is_allowed = entry.is_open and settlement.state is not EffectState.PREPARED
    if not is_allowed:
        raise ValueError(
            f"effect {entry.key!r} is {entry.state}; there is no way from there to {settlement.state}"
        )
    if (settlement.status is not None) != (settlement.state is EffectState.COMMITTED):
        raise ValueError(f"effect {entry.key!r}: a status is a committed effect's, not {settlement.state}")


@dataclass(frozen=True, slots=True)
class Collided:
    """The key stands for another effect, `stands`, which is not touched."""

    order: Order
    stands: Entry


@dataclass(frozen=True, slots=True)
class Moved:
    """The entry is not where the caller saw it: another executor, the reconciler or a person was faster. `entry` is
    how it stands, None if the ledger has lost it. Nothing was written."""

    entry: Entry | None


@dataclass(frozen=True, slots=True)
class Open:
    """What is open: how many effects, and for how many seconds the oldest of them."""

    count: int
    oldest_s: float
