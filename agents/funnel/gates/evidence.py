"""The gates on the world and on authority: world_state and authority. Run before deciding and again before acting.

Promise: what passes them is still wanted, possible as the world stood when it was looked up, and delegated to the
actor within their limits, with a confirmation of exactly these values where the tool asks for one. Neither reads a
value that a model set.
"""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import islice

from ticketgate.agents.funnel.case import FunnelCase, Unreadable
from ticketgate.agents.funnel.catalogue import ConfirmationRule, Precondition, is_among
from ticketgate.agents.funnel.evidence import CLOCK_SKEW_S, Authority, Confirmation
from ticketgate.agents.funnel.values import Value, plain, read_money, read_value, show, told_apart
from ticketgate.codecs.records.proposal import Scalar
from ticketgate.codecs.values.texts import are_same
from ticketgate.codecs.verdict import Stage, Status, Verdict

WORLD_NEXT_STEP = "nothing is done; the failed precondition is reported"
WORLD_UNKNOWN_NEXT_STEP = "a person looks the facts up; nothing is done on a guess"
UNREADABLE_NEXT_STEP = "a person mends the look-up's source; nothing is done without evidence"
SUPERSEDED_NEXT_STEP = "nothing is done; the newer request is proposed for anew"
# What a record carries of them. Each allows one effect, and more than a few at once are no person's.
MOST_CONFIRMATIONS = 16
AUTHORITY_NEXT_STEP = "an authorised actor approves or confirms; no other wording of the call can"


def check_world_state(case: FunnelCase) -> Verdict | None:
    """A request that a newer one took the place of; then preconditions that do not hold or cannot be judged."""
    if case.is_world_unreadable:
        return unreadable_evidence(case)
    newest, version = case.world.request_version, case.request.version
    if newest is not None and newest > version:
        reasons: tuple[str, ...] = (f"request_superseded:version={version}:newest={newest}",)
        return Verdict(Status.REJECT, Stage.WORLD_STATE, reasons, SUPERSEDED_NEXT_STEP)
    if newest is not None and newest < version:
        # What was looked up is older than the request: what else it says may be older too.
        reasons = (f"request_version_unknown:version={version}:newest={newest}",)
        return Verdict(Status.REVIEW, Stage.WORLD_STATE, reasons, WORLD_UNKNOWN_NEXT_STEP)
    failed: list[str] = []
    unknown: list[str] = []
    for each in case.tool.preconditions:
        try:
            failed += _failed(each, case)
        except ValueError as err:
            unknown.append(str(err))
    if failed:
        return Verdict(Status.REJECT, Stage.WORLD_STATE, (*failed, *unknown), WORLD_NEXT_STEP)
    if unknown:
        return Verdict(Status.REVIEW, Stage.WORLD_STATE, tuple(unknown), WORLD_UNKNOWN_NEXT_STEP)
    return None


def check_authority(case: FunnelCase) -> Verdict | None:
    """A tool that is not delegated; then, for an effect, limits that are exceeded and confirmations that lack.

    An authority that nobody could read is not the lack of one: the first is reviewed, the second denied.
    """
    if case.unreadable:
        return unreadable_evidence(case)
    authority = case.authority
    if (
        authority is None
        or authority.actor_id != case.request.actor_id
        or case.call.tool not in authority.tools
    ):
        reasons: tuple[str, ...] = ("tool_not_delegated",)
    elif case.tool.is_effect:
        reasons = (*_through(case, authority), *_exceeded(case, authority), *_unconfirmed(case, authority))
    else:
        reasons = ()
    return Verdict(Status.DENY, Stage.AUTHORITY, reasons, AUTHORITY_NEXT_STEP) if reasons else None


def unreadable_evidence(case: FunnelCase) -> Verdict:
    """What was looked up is no evidence: to a person, at the first of the two stages that would have needed it."""
    stage = Stage.WORLD_STATE if case.is_world_unreadable else Stage.AUTHORITY
    reasons = tuple(f"evidence_unreadable:{plain(each)}" for each in case.unreadable)
    return Verdict(Status.REVIEW, stage, reasons, UNREADABLE_NEXT_STEP)


def _failed(each: Precondition, case: FunnelCase) -> Iterator[str]:
    """Why a precondition does not hold. Raises ValueError if the world does not say."""
    fact = case.world.facts.get(each.fact)
    if each.is_one_of:
        if fact is None:
            raise ValueError(f"fact_unknown:{each.fact}")
        if not is_among(fact, each.is_one_of):
            yield f"{each.name}:{show(fact)}"
            yield f"required:{' or '.join(show(value) for value in each.is_one_of)}"
        return
    less, floor = case.command.get(each.less or ""), case.command.get(each.floor or "")
    if not isinstance(less, Decimal) or not isinstance(floor, Decimal):
        return
    unit = case.tool.fields[each.less].unit if each.less else None
    remaining = _amount(fact, each.fact, unit) - less
    if remaining < floor:
        yield f"{each.name}:{show(remaining)}"
        yield f"required_floor:{show(floor)}"


def _amount(fact: Scalar | None, name: str, unit: str | None) -> Decimal:
    if not isinstance(fact, str):
        raise ValueError(f"fact_unknown:{name}")
    try:
        return read_money(fact, unit)
    except ValueError as err:
        raise ValueError(f"fact_unknown:{name}:{err}") from None


def _through(case: FunnelCase, authority: Authority) -> Iterator[str]:
    """A channel that the tool, or the actor's authority, does not admit. One that is not known is none of them."""
    channel = case.request.channel
    for allowed in (case.tool.channels, authority.channels.get(case.call.tool)):
        if allowed and channel not in allowed:
            yield f"channel_not_permitted:{plain(channel) or 'none'}"
            return


def _exceeded(case: FunnelCase, authority: Authority) -> Iterator[str]:
    for limit in case.tool.limits:
        try:
            allowed = read_money(authority.limits[limit.limit], case.tool.fields[limit.field].unit)
        except (KeyError, ValueError):
            # A limit that cannot be read allows nothing: to go on would make a typing error a permission.
            yield f"limit_unknown:{limit.limit}"
            continue
        amount = case.command.get(limit.field)
        if not isinstance(amount, Decimal):
            continue
        if amount > allowed:
            yield f"{limit.reason}:{show(allowed)}"
        elif amount < 0:
            # Below every limit, and as far the other way as it likes.
            yield f"amount_below_zero:{limit.field}"


def standing_confirmations(case: FunnelCase, authority: Authority) -> tuple[str, ...]:
    """The digests of the confirmations that stand for this command, of which the ledger lets one be used up; none
    where the tool needs none."""
    rule = case.tool.confirmation
    if rule is None:
        return ()
    standing = (
        given.digest
        for given in authority.confirmations
        if _is_of_request(given, case) and not any(_void(given, rule, case))
    )
    return tuple(islice(dict.fromkeys(standing), MOST_CONFIRMATIONS))


def _unconfirmed(case: FunnelCase, authority: Authority) -> Iterator[str]:
    rule = case.tool.confirmation
    if rule is None:
        return
    faults: list[str] = []
    for given in authority.confirmations:
        if _is_of_request(given, case):
            found = [*_void(given, rule, case)]
            if not found:
                return
            faults += found
    yield "explicit_confirmation_missing"
    yield from faults


def _is_of_request(given: Confirmation, case: FunnelCase) -> bool:
    return (
        given.actor_id == case.request.actor_id
        and given.operation == case.request.operation
        and (case.confirmed_by is None or given.digest == case.confirmed_by)
    )


def _void(given: Confirmation, rule: ConfirmationRule, case: FunnelCase) -> Iterator[str]:
    """Why a confirmation does not stand for this command."""
    event = plain(given.event_id)
    age = case.at - given.confirmed_at
    if age > timedelta(seconds=rule.max_age_s):
        yield f"confirmation_expired:{event}"
    if age < -timedelta(seconds=CLOCK_SKEW_S):
        yield f"confirmation_from_the_future:{event}"
    for name in rule.binds:
        confirmed, wanted = _confirmed(given, name, case), _wanted(name, case)
        # Who confirms the key says yes to one effect; where none is bound, there is none to say yes to.
        is_unbound = wanted is None and case.tool.fields[name].role == "control"
        # Python takes 600 for 600.00, and 1 for true: another type is another value.
        if is_unbound or not are_same(confirmed, wanted):
            found = f"confirmed={show(confirmed)}:request={show(wanted)}{told_apart(confirmed, wanted)}"
            yield f"confirmation_void:{event}:{name}:{found}"


def _wanted(name: str, case: FunnelCase) -> Value | None:
    """What a field has to be confirmed as. A control is no part of what a command means, but may be confirmed too."""
    if case.tool.fields[name].role != "control":
        return case.command.get(name)
    bound = case.bound[name]
    return None if isinstance(bound, Unreadable) else bound


def _confirmed(given: Confirmation, name: str, case: FunnelCase) -> Value | None:
    """What was confirmed of a field, as a value, so that 600.0 confirms 600.00. As it came if it is no value."""
    bound = given.bound.get(name)
    if bound is None:
        return None
    try:
        spec = case.tool.fields[name]
        return read_value(spec.type, bound, unit=spec.unit)
    except ValueError:
        return bound
