"""The order in which a proposed call is judged. Execution comes after all of them."""

from typing import Final

from ticketgate.agents.deciding.gate import Gate
from ticketgate.agents.funnel.gates.evidence import check_authority, check_world_state
from ticketgate.agents.funnel.gates.meaning import check_semantics, check_tool_selection
from ticketgate.agents.funnel.gates.shape import (
    check_abstention,
    check_envelope,
    check_parse,
    check_schema,
    check_tool_catalogue,
)
from ticketgate.codecs.verdict import Stage

FUNNEL_GATES: Final = (
    Gate(Stage.PARSE, check_parse),
    Gate(Stage.ENVELOPE, check_envelope),
    # A proposer that makes no call goes no further. Behind `envelope`, for an abstention has one.
    Gate(Stage.ABSTENTION, check_abstention),
    Gate(Stage.TOOL_CATALOGUE, check_tool_catalogue),
    Gate(Stage.SCHEMA, check_schema),
    Gate(Stage.TOOL_SELECTION, check_tool_selection),
    Gate(Stage.SEMANTICS, check_semantics),
    Gate(Stage.WORLD_STATE, check_world_state),
    Gate(Stage.AUTHORITY, check_authority),
)
