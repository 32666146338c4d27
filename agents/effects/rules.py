"""What an answer and a read-back say about an effect: the rules, as pure functions.

Promise: nothing is committed that was not read back equal, in a state that its tool declares as done. Not being found
makes an effect absent only where the state read is authoritative and was read later than the provider's settle time.
All else stays unknown.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from ticketgate.agents.effects.ledger import MOST_SENDS, Entry, Settlement
from ticketgate.agents.effects.port import (
    CannotRead,
    Collision,
    EffectPort,
    Executed,
    Found,
    NotFound,
    ReadBackResult,
    Refused,
)
from ticketgate.agents.effects.states import States
from ticketgate.codecs.records.receipt import EffectState, EffectStatus
from ticketgate.codecs.values.malformed import shorten
from ticketgate.codecs.values.strict import JsonValue, canonical
from ticketgate.codecs.verdict import Stage, Status, Verdict

VERIFIED_NEXT_STEP = "the effect stands as it was asked for; the receipt shows it"
COLLISION_NEXT_STEP = "a new effect takes a new key; what stands under this one is not touched"
REFUSED_NEXT_STEP = "nothing was done; the provider's reason is reported"
UNKNOWN_NEXT_STEP = "held until reading back settles it; nothing is sent again"
PENDING_NEXT_STEP = "read again until it is done, or its time is up; nothing is sent again"
STILL_PENDING_NEXT_STEP = "a person asks the provider; nothing is sent again"
UNDONE_NEXT_STEP = "nothing stands as it was asked for; a new effect takes a new key"
UNDECLARED_NEXT_STEP = "a person looks what the state means, and declares it among the tool's states"
DIFFERS_NEXT_STEP = "a person compares the two; what stands is not what was asked for"
SPENT_NEXT_STEP = (
    "nothing is sent; a person confirms once more, by an event of its own, and the case is proposed anew"
)
ABSENT_NEXT_STEP = (
    "nothing stands; sent once more under its key if the provider allows, or else held for a person"
)

# From just before sending until something is known: whoever finds the entry like this knows no more.
NO_ANSWER: Final = Verdict(Status.UNKNOWN, Stage.OUTCOME, ("timeout_and_no_readback",), UNKNOWN_NEXT_STEP)
COLLISION: Final = Verdict(
    Status.REJECT,
    Stage.IDEMPOTENCY,
    ("idempotency key reused for a different effect",),
    COLLISION_NEXT_STEP,
)
STANDS: Final = Verdict(Status.ACCEPT, Stage.POSTCONDITION, (), VERIFIED_NEXT_STEP)
_NOT_VERIFIED: Final = Verdict(
    Status.UNKNOWN, Stage.POSTCONDITION, ("effect_not_verified",), UNKNOWN_NEXT_STEP
)


def confirmation_spent(entry: Entry) -> Settlement | None:
    """How an effect is stopped for which no confirmation is left; None where it has one, or needs none."""
    if not entry.is_unconfirmed:
        return None
    reasons = (f"confirmation_spent:by={shorten(entry.spent_by or 'unknown')}",)
    return Settlement(
        state=EffectState.REJECTED,
        verdict=Verdict(Status.DENY, Stage.AUTHORITY, reasons, SPENT_NEXT_STEP),
    )


def refused(entry: Entry, answer: Refused | Collision) -> Settlement:
    """The provider's word that it did nothing for this command."""
    if isinstance(answer, Collision):
        return Settlement(state=EffectState.REJECTED, verdict=COLLISION)
    reasons = (*_before(entry), f"provider_refused:{shorten(answer.reason)}")
    verdict = Verdict(Status.REJECT, Stage.OUTCOME, reasons, REFUSED_NEXT_STEP)
    return Settlement(state=EffectState.REJECTED, verdict=verdict)


def after_success(
    entry: Entry, answer: Executed, found: ReadBackResult, *, states: States | None = None
) -> Settlement:
    """A success is a claim of the transport's. What does not stand just so stays open, and is read back again."""
    if (
        isinstance(found, Found)
        and found.provider_id == answer.provider_id
        and not any(differences(entry.order.command.arguments, found.state))
    ):
        if (not_done := _not_done(entry, found, states)) is not None:
            return not_done
        return Settlement(
            state=EffectState.COMMITTED,
            verdict=Verdict(Status.ACCEPT, Stage.POSTCONDITION, _before(entry), VERIFIED_NEXT_STEP),
            status=EffectStatus.REPLAYED if answer.is_replay else EffectStatus.CREATED,
            provider_id=found.provider_id,
            observed=found.state,
        )
    return Settlement(state=EffectState.UNKNOWN, verdict=_NOT_VERIFIED, provider_id=answer.provider_id)


def after_read_back(
    entry: Entry, found: ReadBackResult, *, settle_s: float, states: States | None = None
) -> Settlement | None:
    """What a read-back settles of an open entry; None if it says nothing new. `entry` is as it was before the read, so
    that its age is the least that the read can have had."""
    match found:
        case Found():
            settlement = _found(entry, found, states)
            is_news = settlement.state is not entry.state or settlement.verdict != entry.verdict
            return settlement if is_news else None
        case NotFound():
            is_final = found.is_authoritative and entry.age_s >= settle_s
            return _absent(entry) if is_final and entry.state is EffectState.UNKNOWN else None
        case CannotRead():
            return None


def may_resend(entry: Entry, port: EffectPort) -> bool:
    """Whether an entry may be sent a second time, under its key: it is absent, was sent once, its provider is
    idempotent by key and never claimed a success, and what its gates judge again is at hand."""
    return (
        entry.state is EffectState.ABSENT
        and entry.is_open
        and 0 < entry.sends < MOST_SENDS
        and port.is_idempotent_by_key
        and not entry.is_restored
        and (entry.verdict is None or entry.verdict.stage is not Stage.POSTCONDITION)
    )


def differences(wanted: Mapping[str, JsonValue], observed: Mapping[str, JsonValue]) -> Iterator[str]:
    """Each argument that does not stand as asked for. A provider may keep more than it was asked for."""
    for name, value in wanted.items():
        if name not in observed or canonical(observed[name]) != canonical(value):
            yield f"{name}:wanted={_shown(value)}:observed={_shown(observed.get(name))}"


def _found(entry: Entry, found: Found, states: States | None) -> Settlement:
    different = tuple(differences(entry.order.command.arguments, found.state))
    if different:
        return Settlement(
            state=EffectState.REJECTED,
            verdict=Verdict(Status.REJECT, Stage.READBACK, different, DIFFERS_NEXT_STEP),
            provider_id=found.provider_id,
            observed=found.state,
        )
    if (not_done := _not_done(entry, found, states)) is not None:
        return not_done
    reasons = ("verified_late",) if _was_claimed(entry) else ("transport_timed_out_after_commit",)
    return Settlement(
        state=EffectState.COMMITTED,
        verdict=Verdict(Status.ACCEPT, Stage.READBACK, reasons, VERIFIED_NEXT_STEP),
        status=EffectStatus.VERIFIED_BY_READBACK,
        provider_id=found.provider_id,
        observed=found.state,
    )


def _not_done(entry: Entry, found: Found, states: States | None) -> Settlement | None:
    """What becomes of an effect of the right content that its tool's states do not call done; None if they do.

    At `postcondition`: something was made under the key, so it is not sent again should it vanish.
    """
    standing = "done" if states is None else states.standing(found.state)
    if states is None or standing == "done":
        return None
    told, state, status, stage = (
        states.told(found.state),
        EffectState.UNKNOWN,
        Status.UNKNOWN,
        Stage.POSTCONDITION,
    )
    if standing == "undone":
        reason, next_step = f"undone:{told}", UNDONE_NEXT_STEP
        state, status, stage = EffectState.REJECTED, Status.REJECT, Stage.READBACK
    elif standing == "undeclared":
        reason, next_step = f"state_not_declared:{told}", UNDECLARED_NEXT_STEP
    elif entry.age_s < states.pending_s:
        reason, next_step = f"pending:{told}", PENDING_NEXT_STEP
    else:
        reason, next_step = f"still_pending:{told}:after={states.pending_s:g}s", STILL_PENDING_NEXT_STEP
    return Settlement(
        state=state,
        verdict=Verdict(status, stage, (reason,), next_step),
        provider_id=found.provider_id,
        observed=found.state,
    )


def _absent(entry: Entry) -> Settlement:
    # The stage stays with an entry whose provider claimed a success: such a provider is not sent to again.
    stage = Stage.POSTCONDITION if _was_claimed(entry) else Stage.OUTCOME
    reasons = (*_before(entry), "nothing_stands_after_settle_time")
    return Settlement(
        state=EffectState.ABSENT,
        verdict=Verdict(Status.UNKNOWN, stage, reasons, ABSENT_NEXT_STEP),
        provider_id=entry.provider_id,
    )


def _was_claimed(entry: Entry) -> bool:
    """Whether the provider said that it did what cannot be found."""
    return entry.verdict is not None and entry.verdict.stage is Stage.POSTCONDITION


def _before(entry: Entry) -> tuple[str, ...]:
    """What a second sending says of the first."""
    return ("transport_timed_out_before_commit",) if entry.sends == MOST_SENDS else ()


def _shown(value: JsonValue) -> str:
    if value is None:
        return "none"
    return shorten(value if isinstance(value, str) else canonical(value).decode("utf-8"))
