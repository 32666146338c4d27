"""I1 to I6 of ARCHITECTURE.md#invariants, and what follows from them, as checks of a world.

`always` holds after every effect. `at_rest` holds once all partitions are drained; `probed` once a copy of every
ticket was sent after that and drained too, so that a key whose claim is stuck with a record that will never have an
effect shows itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from .world import TOPIC_PARTITIONS, Claim, Coordinate, Effect, Transaction, World


class Violated(AssertionError):
    """An invariant does not hold: which, and for what."""


def _demand(holds: bool, invariant: str, what: str) -> None:
    if not holds:
        raise Violated(f"{invariant}: {what}")


def always(world: World) -> None:
    """I1 to I4 and I6, and the half of I5 that holds at any time: no key has two effects."""
    history = world.broker.history
    told = (len(history), len(world.redis.taken), len(world.redis.journalled))
    if told == world.checked:
        return
    world.checked = told
    effects = [effect for transaction in history for effect in transaction.effects]
    for key, old, new, was_void in world.redis.taken:
        _demand(was_void, "I1", f"{key} went from {old} to {new}, though the first was not void")
    twice = _more_than_once(coordinate for transaction in history for coordinate in transaction.account)
    _demand(not twice, "I2", f"in two committed transactions: {twice}")
    for transaction in history:
        for effect in transaction.effects:
            if effect.key in transaction.claims_then:
                _owns(effect, transaction.claims_then[effect.key])
    for partition in range(TOPIC_PARTITIONS):
        _rises([transaction for transaction in history if transaction.partition == partition])
    twice = _more_than_once(effect.key for effect in effects)
    _demand(not twice, "I5", f"keys with two effects: {twice}")
    void = {effect.coordinate for effect in effects} & world.redis.journalled
    _demand(
        not void, "I1", f"declared void, so that their keys may be taken over, yet with an effect: {void}"
    )


def _more_than_once(things: object) -> list[object]:
    return [thing for thing, times in Counter(things).items() if times > 1]  # type: ignore[call-overload]


def _owns(effect: Effect, claim: Claim | None) -> None:
    is_owner = claim is not None and claim.coordinate == effect.coordinate
    _demand(is_owner, "I3", f"{effect} committed while the claim was {claim}")
    says_the_same = claim is not None and claim.fingerprint == effect.fingerprint
    _demand(says_the_same, "I6", f"{effect} committed while the claim was {claim}")


def _rises(history: list[Transaction]) -> None:
    reached = 0
    for transaction in history:
        first, last = min(transaction.account).offset, max(transaction.account).offset
        offset = transaction.offset
        where = f"partition {transaction.partition} at {reached} took {first} to {last}"
        if offset is None:
            raise Violated(f"I4: {where} without an offset")
        _demand(reached <= first and last < offset, "I4", f"{where} for offset {offset}")
        reached = offset


def at_rest(world: World) -> None:
    """I5, the other half: no record that could be read is without an effect, unless its key's owner has one, or had the
    key at that time and was lost later.

    An owner's effect counts under another key as well: a collision's record that was abandoned takes over the
    ticket's own key when the first content turns out to be lost, and its derived key then stays without an effect.
    """
    broker, journalled = world.broker, world.redis.journalled
    fates = {coordinate: fate for each in broker.history for coordinate, fate in each.account.items()}
    emitted = {fate.key for fate in fates.values() if isinstance(fate, Effect)}
    for partition, log in enumerate(broker.logs):
        for offset in range(broker.starts[partition], len(log)):
            at = Coordinate(partition, offset)
            _demand(at in fates or at in journalled, "I5", f"{at} {log[offset]} was passed over")
    for at, fate in fates.items():
        if isinstance(fate, Effect) or fate.key in emitted or isinstance(fates.get(fate.owner), Effect):
            continue
        _demand(not fate.owner_was_void, "I5", f"{at} was suppressed for an owner that was void: {fate}")
        _demand(fate.owner in journalled, "I5", f"{at} was suppressed, its owner has no effect: {fate}")


def probed(world: World) -> None:
    """I5: every key has exactly one effect, and each content that it collided with has one of its own."""
    said: defaultdict[str, set[str]] = defaultdict(set)
    for log in world.broker.logs:
        for ticket in log:
            said[ticket.key].add(ticket.fingerprint)
    effects = {effect.key: effect for effect in world.broker.visible}
    for key, fingerprints in said.items():
        _demand(key in effects, "I5", f"{key} has no effect; claim {world.redis.claim(key)}")
        for other in fingerprints - {effects[key].fingerprint}:
            derived = f"{key}:{other}"
            _demand(derived in effects, "I5", f"{derived} has no effect; claim {world.redis.claim(derived)}")
    _demand(len(effects) == len(world.broker.visible), "I5", "a key with two visible effects")
