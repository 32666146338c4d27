"""The gates on what a call means: tool_selection and semantics.

Promise: what passes them is the operation that was requested, with every value and condition that the request binds.
Each difference is named with both values.
"""

from typing import Final

from ticketgate.agents.funnel.case import KEY_FIELD, FunnelCase, Unreadable
from ticketgate.agents.funnel.values import plain, show, told_apart
from ticketgate.codecs.values.texts import are_same
from ticketgate.codecs.verdict import Stage, Status, Verdict

SELECTION_NEXT_STEP = (
    "the operation is selected anew or clarified; no argument is carried over to another tool"
)
SEMANTICS_NEXT_STEP = "the proposer restores the named fields from the request"
UNBOUND_NEXT_STEP = "a person completes the request; a model's value stands for nothing"
# As tickets' keys are bounded; most providers take no longer one.
MOST_KEY_CHARS: Final = 256


def check_tool_selection(case: FunnelCase) -> Verdict | None:
    """A well-formed call of the wrong operation."""
    if case.tool.serves == case.request.operation:
        return None
    reasons = (f"requested:{plain(case.request.operation)}", f"proposed:{case.call.tool}")
    return Verdict(Status.REJECT, Stage.TOOL_SELECTION, reasons, SELECTION_NEXT_STEP)


def check_semantics(case: FunnelCase) -> Verdict | None:
    """Values and conditions that are not the request's, each with both values, in the catalogue's order."""
    reasons: list[str] = []
    is_open = False
    for name, bound in case.bound.items():
        proposed = case.arguments.get(name)
        if isinstance(bound, Unreadable):
            reasons.append(f"{name}:request is unreadable:{bound.why}")
            is_open = True
        elif not are_same(proposed, bound) and not (
            proposed is None and case.tool.fields[name].role == "control"
        ):
            reasons.append(
                f"{name}:proposal={show(proposed)}:request={show(bound)}{told_apart(proposed, bound)}"
            )
            # The call must carry the field, and nobody but the model has a value for it.
            is_open |= bound is None and case.tool.fields[name].is_asked_for
    if case.tool.is_effect:
        # A condition for which the tool has no field cannot be mended by a proposer, only dropped unseen.
        for name in sorted(case.request.conditions.keys() - case.tool.fields.keys()):
            reasons.append(f"{plain(name)}:proposal=none:request={show(case.request.conditions[name])}")
            is_open = True
        if not isinstance(case.bound.get(KEY_FIELD), Unreadable) and _lacks_its_key(case):
            reasons.append(
                f"{KEY_FIELD}:request is unreadable:not a text of 1 to {MOST_KEY_CHARS} characters"
            )
            is_open = True
    if not reasons:
        return None
    if is_open:
        return Verdict(Status.REVIEW, Stage.SEMANTICS, tuple(reasons), UNBOUND_NEXT_STEP)
    return Verdict(Status.REPAIR, Stage.SEMANTICS, tuple(reasons), SEMANTICS_NEXT_STEP)


def _lacks_its_key(case: FunnelCase) -> bool:
    """Whether the application bound a key that is none. Under one of the case's own, a second case would have a second
    effect."""
    given = case.request.control.get(KEY_FIELD)
    return given is not None and not (isinstance(given, str) and 1 <= len(given) <= MOST_KEY_CHARS)
