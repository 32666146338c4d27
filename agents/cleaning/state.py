"""The steps of cleaning, in the one order in which they make sense, on every text of a state."""

from collections.abc import Callable, Collection
from typing import Final, Literal, get_args

from ticketgate.agents.cleaning.html import text_of
from ticketgate.agents.cleaning.replies import without_quotes
from ticketgate.agents.cleaning.signatures import without_signature
from ticketgate.codecs.values.strict import JsonValue

Step = Literal["html", "quoted_replies", "signatures"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)

# HTML first, for the others read lines; quotes before signatures, for one's own signature stands above what is quoted.
_ACTS: Final[dict[Step, Callable[[str], str]]] = {
    "html": text_of,
    "quoted_replies": without_quotes,
    "signatures": without_signature,
}


def clean(state: JsonValue, steps: Collection[Step]) -> JsonValue:
    """The state with each of its texts cleaned by the steps; keys, numbers and the shape stay.

    The order in which the steps are named does not matter. The state is not changed.
    """
    acts = [act for step, act in _ACTS.items() if step in steps]
    return _cleaned(state, acts) if acts else state


def _cleaned(value: JsonValue, acts: Collection[Callable[[str], str]]) -> JsonValue:
    # What was decoded is nested 64 deep at most.
    if isinstance(value, str):
        for act in acts:
            value = act(value)
        return value
    if isinstance(value, dict):
        return {key: _cleaned(item, acts) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, acts) for item in value]
    return value
