"""What must go wrong for `ticketgate funnel` to come to a verdict of execution: the faults that reproduce an incident.

Promise: run with these faults on a ledger that starts empty, a call that passes every gate ends with the verdict's
status and stage. `NotReproducible` says what would be needed where there is no such fault.
"""

from dataclasses import dataclass
from typing import Final

from ticketgate.agents.effects.adapters.memory import ExecuteFault, ReadBackFault
from ticketgate.codecs.verdict import Stage, Status, Verdict

# Verdicts at these stages are of carrying out, not of judging.
EXECUTION: Final = frozenset({Stage.IDEMPOTENCY, Stage.OUTCOME, Stage.READBACK, Stage.POSTCONDITION})

_SENT_TWICE = "transport_timed_out_before_commit"
_ABSENT = "nothing_stands_after_settle_time"


class NotReproducible(ValueError):
    """No fault brings this verdict about. What is missing, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """execute, read_back: the faults to line up. reasons: what to expect; None where the provider's own words, or how
    often it was sent, cannot be brought about again."""

    execute: tuple[ExecuteFault, ...] = ()
    read_back: tuple[ReadBackFault, ...] = ()
    reasons: tuple[str, ...] | None


def _observed_state(reasons: tuple[str, ...]) -> ReadBackFault | None:
    """The read-back in the state that a verdict names: `pending:status=processing`."""
    if len(reasons) != 1 or not reasons[0].startswith(("pending:", "undone:", "state_not_declared:")):
        return None
    _, _, said = reasons[0].partition("=")
    return f"state:{said}" if said and said != "none" else None


def reproduce(verdict: Verdict) -> Reproduction:
    """The faults for a verdict of execution. Raises NotReproducible."""
    status, stage, reasons = verdict.status, verdict.stage, verdict.reasons
    first: tuple[ExecuteFault, ...] = ("timeout_before_commit",) if _SENT_TWICE in reasons else ()
    match status, stage:
        case Status.ACCEPT, Stage.POSTCONDITION:
            return Reproduction(execute=first, reasons=reasons)
        case Status.ACCEPT, Stage.READBACK if "verified_late" not in reasons:
            return Reproduction(execute=("timeout_after_commit",), reasons=reasons)
        case Status.REJECT | Status.UNKNOWN, _ if (state := _observed_state(reasons)) is not None:
            return Reproduction(execute=first, read_back=(state,), reasons=reasons)
        case Status.REJECT, Stage.READBACK:
            return Reproduction(execute=("timeout_after_commit",), read_back=("altered",), reasons=None)
        case Status.REJECT, Stage.OUTCOME if any(each.startswith("provider_refused:") for each in reasons):
            return Reproduction(execute=(*first, "refused"), reasons=None)
        case Status.UNKNOWN, Stage.OUTCOME if _ABSENT in reasons:
            # The funnel's ledger is idempotent by key, so what is absent is sent a second time at once.
            return Reproduction(execute=("timeout_before_commit",) * 2, reasons=None)
        case Status.UNKNOWN, Stage.OUTCOME:
            # Whether it took effect is what nobody knew; that it did is the dangerous half.
            return Reproduction(execute=("timeout_after_commit",), read_back=("unreadable",), reasons=reasons)
        case Status.UNKNOWN, Stage.POSTCONDITION if _ABSENT not in reasons:
            return Reproduction(read_back=("unreadable",), reasons=reasons)
        case Status.REJECT, Stage.IDEMPOTENCY:
            raise NotReproducible(
                "the key stood for another effect; give that effect's record before this one"
            )
    raise NotReproducible(
        f"{status} at {stage} ({', '.join(reasons) or 'no reason'}) takes time to pass or a person's word, and a case"
        " has neither; give the receipt of the step before it"
    )
