"""What may happen to a request on its way, and rules that say to which requests it does."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """One request as a client sent it. `name` is Kafka's ("EndTxn") or Redis' ("EVALSHA"; "MULTI" for a whole
    transaction); `data` its bytes."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to one request. The fields are done in their order; the default is that nothing happens.

    late_s: when copies are delivered on connections of their own, counted from `delay_s` on; None is a copy that waits
    for `Held.deliver`. Of a connection that was cut, the client and the server both see the end.
    """

    brings_held: bool = False
    """All copies that wait for `Held.deliver` are delivered, and answered, before it."""
    delay_s: float = 0.0
    is_forwarded: bool = True
    late_s: Sequence[float | None] = ()
    is_answered: bool = True
    """Else the connection is cut in place of the answer."""
    cut_after_s: float | None = None
    """Cut the connection so long after, whatever was done."""
    falls_silent: bool = False
    """From here on nothing passes on this connection, and it stays open."""


PASS = Fault()


def delayed(seconds: float) -> Fault:
    """It takes its time, and so does all that comes behind it on its connection."""
    return Fault(delay_s=seconds)


def lost(*, cut_after_s: float = 0.0) -> Fault:
    """It never comes, and its connection is cut."""
    return Fault(is_forwarded=False, cut_after_s=cut_after_s)


def dropped() -> Fault:
    """It never comes, nor does anything behind it on its connection, and nobody is told."""
    return Fault(is_forwarded=False, falls_silent=True)


def held(*, cut_after_s: float = 0.2, late_s: float | None = None) -> Fault:
    """Its connection is cut, and it comes later: after `late_s` seconds, or when `Held.deliver` is called."""
    return Fault(is_forwarded=False, cut_after_s=cut_after_s, late_s=(late_s,))


def repeated(*, late_s: float | None = None) -> Fault:
    """It comes and is answered, and comes once more."""
    return Fault(late_s=(late_s,))


def behind_held() -> Fault:
    """What was held comes, and is answered, just before it."""
    return Fault(brings_held=True)


def reply_lost() -> Fault:
    """It comes, and in place of its answer the connection is cut."""
    return Fault(is_answered=False)


Rule = Callable[[Request], Fault]


def nothing(_: Request) -> Fault:
    """The rule of a network without faults."""
    return PASS


def nth(name: str, number: int, fault: Fault) -> Rule:
    """The `number`th request of that name from now on, counted from 1, has the fault."""
    seen = 0

    def rule(request: Request) -> Fault:
        nonlocal seen
        seen += request.name == name
        return fault if request.name == name and seen == number else PASS

    return rule


def each(names: Collection[str], fault: Fault) -> Rule:
    """Every request of these names has the fault."""
    return lambda request: fault if request.name in names else PASS


def share(
    rng: random.Random, part: float, names: Collection[str], faults: Callable[[random.Random], Fault]
) -> Rule:
    """A part of the requests of these names (0 to 1) has a fault that `faults` draws."""
    return lambda request: faults(rng) if request.name in names and rng.random() < part else PASS
