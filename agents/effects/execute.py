"""One command carried out and verified, whatever the transport says of it.

Promise: nothing is accepted that was not read back equal. After a time-out nothing is sent again unless authoritative
state says, for good, that nothing stands, and then once, under the same key, and only to a provider that is
idempotent by key. What stays open is `unknown`, and held.
Steps: 1 prepare, 2 execute, 3 read back, 4 perhaps one resend with its own 2 and 3. Source: DESIGN section 7.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from ticketgate.agents.effects.port import (
    CannotRead,
    Collision,
    Command,
    EffectPort,
    Executed,
    Found,
    NotFound,
    Prepared,
    Refused,
    TimedOut,
)
from ticketgate.codecs.malformed import shorten
from ticketgate.codecs.receipt import EffectReceipt, EffectStatus
from ticketgate.codecs.strict import JsonValue, canonical
from ticketgate.codecs.verdict import Stage, Status, Verdict

VERIFIED_NEXT_STEP = "the effect stands as it was asked for; the receipt shows it"
COLLISION_NEXT_STEP = "a new effect takes a new key; what stands under this one is not touched"
REFUSED_NEXT_STEP = "nothing was done; the provider's reason is reported"
UNKNOWN_NEXT_STEP = "held until reading back settles it; nothing is sent again"
DIFFERS_NEXT_STEP = "a person compares the two; what stands is not what was asked for"


@dataclass(frozen=True, slots=True)
class Settled:
    """How a command ended, with the receipt if an effect stands that was verified."""

    verdict: Verdict
    receipt: EffectReceipt | None = None


async def carry_out(command: Command, port: EffectPort) -> Settled:
    """Carry a command out and verify it. The caller has committed that it is about to."""
    # 1
    prepared = await port.prepare(command)
    if isinstance(prepared, Collision):
        return _collided()
    # 2, 3
    first = await _attempt(prepared, port, ())
    if isinstance(first, Settled):
        return first
    # 4
    if not first.is_final or not port.is_idempotent_by_key:
        return _unknown(Stage.OUTCOME, "timeout_and_no_readback")
    second = await _attempt(prepared, port, ("transport_timed_out_before_commit",))
    return second if isinstance(second, Settled) else _unknown(Stage.OUTCOME, "timeout_and_no_readback")


async def _attempt(prepared: Prepared, port: EffectPort, before: tuple[str, ...]) -> Settled | NotFound:
    """One sending and its read-back. NotFound: it timed out and nothing stands."""
    result = await port.execute(prepared)
    match result:
        case Collision():
            return _collided()
        case Refused():
            reason = f"provider_refused:{shorten(result.reason)}"
            return Settled(Verdict(Status.REJECT, Stage.OUTCOME, (*before, reason), REFUSED_NEXT_STEP))
        case Executed():
            return await _after_success(prepared.command, result, port, before)
        case TimedOut():
            return await _after_time_out(prepared.command, port)
    assert_never(result)


async def _after_success(
    command: Command, result: Executed, port: EffectPort, before: tuple[str, ...]
) -> Settled:
    """A success is a claim of the transport's; what stands is read back."""
    found = await port.read_back(command.key)
    is_verified = (
        isinstance(found, Found)
        and found.provider_id == result.provider_id
        and not [*_differences(command.arguments, found.state)]
    )
    if not is_verified:
        return _unknown(Stage.POSTCONDITION, "effect_not_verified")
    status = EffectStatus.REPLAYED if result.is_replay else EffectStatus.CREATED
    verdict = Verdict(Status.ACCEPT, Stage.POSTCONDITION, before, VERIFIED_NEXT_STEP)
    return Settled(verdict, _receipt(command, Found(result.provider_id, result.state), status))


async def _after_time_out(command: Command, port: EffectPort) -> Settled | NotFound:
    found = await port.read_back(command.key)
    match found:
        case Found():
            differences = tuple(_differences(command.arguments, found.state))
            if differences:
                return Settled(Verdict(Status.REJECT, Stage.READBACK, differences, DIFFERS_NEXT_STEP))
            reasons = ("transport_timed_out_after_commit",)
            return Settled(
                Verdict(Status.ACCEPT, Stage.READBACK, reasons, VERIFIED_NEXT_STEP),
                _receipt(command, found, EffectStatus.VERIFIED_BY_READBACK),
            )
        case NotFound():
            return found
        case CannotRead():
            return _unknown(Stage.OUTCOME, "timeout_and_no_readback")
    assert_never(found)


def _differences(wanted: Mapping[str, JsonValue], observed: Mapping[str, JsonValue]) -> Iterator[str]:
    """Each argument that does not stand as asked for. A provider may keep more than it was asked for."""
    for name, value in wanted.items():
        if name not in observed or canonical(observed[name]) != canonical(value):
            yield f"{name}:wanted={_shown(value)}:observed={_shown(observed.get(name))}"


def _shown(value: JsonValue) -> str:
    if value is None:
        return "none"
    return shorten(value if isinstance(value, str) else canonical(value).decode("utf-8"))


def _receipt(command: Command, found: Found, status: EffectStatus) -> EffectReceipt:
    return EffectReceipt(
        status=status,
        tool=command.tool,
        arguments=command.arguments,
        provider_id=found.provider_id,
        idempotency_key=command.key,
        state=found.state,
    )


def _collided() -> Settled:
    reasons = ("idempotency key reused for a different effect",)
    return Settled(Verdict(Status.REJECT, Stage.IDEMPOTENCY, reasons, COLLISION_NEXT_STEP))


def _unknown(stage: Stage, reason: str) -> Settled:
    return Settled(Verdict(Status.UNKNOWN, stage, (reason,), UNKNOWN_NEXT_STEP))
