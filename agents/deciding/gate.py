"""A gate: a named function from a case to a verdict or nothing; and the one runner of gates.

Promise: gates run in their order and stop at the first verdict, so that what a gate relies on has been seen to
by those before it. Neither a gate nor the runner knows a clock: who wants durations measures from outside.
Tickets and proposed calls use the same shape.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ticketgate.codecs.verdict import Stage, Verdict

Case = TypeVar("Case")

# Called with a gate's stage just before it runs; gives what to call with its verdict, None if it let the case
# through. What lies between the two calls is the gate, so whoever holds a clock can time it. If the gate raises,
# the second call never comes. Whether threads may share an observer is for its maker to say.
Observer = Callable[[Stage], Callable[[Verdict | None], None]]


@dataclass(frozen=True, slots=True)
class Gate(Generic[Case]):
    """One gate. `check` is pure: it reads the case and gives a verdict, or None to let the case through."""

    stage: Stage
    check: Callable[[Case], Verdict | None]


def run_gates(case: Case, gates: Iterable[Gate[Case]], observe: Observer | None = None) -> Verdict | None:
    """The first verdict that a gate gives, or None if all let the case through. What a gate raises passes on."""
    for gate in gates:
        seen = None if observe is None else observe(gate.stage)
        verdict = gate.check(case)
        if seen is not None:
            seen(verdict)
        if verdict is not None:
            return verdict
    return None
