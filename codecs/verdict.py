"""What a gate says about a case: one status, the gate that said it, why, and what happens next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Stage", "Status", "Verdict"]


class Status(StrEnum):
    """What becomes of a case; `accept` alone lets effects through."""

    ACCEPT = "accept"
    REVIEW = "review"
    REPAIR = "repair"
    REJECT = "reject"
    DENY = "deny"
    UNKNOWN = "unknown"


class Stage(StrEnum):
    """The gates by name: a ticket's in their order, then those that only the funnel has.

    `parse` and `schema` are shared: a proposal passes gates of the same names.
    """

    PARSE = "parse"
    SCHEMA = "schema"
    IDENTITY = "identity"
    STATE = "state"
    ANSWERS = "answers"
    ABSTENTION = "abstention"
    POLICY = "policy"

    ENVELOPE = "envelope"
    TOOL_CATALOGUE = "tool_catalogue"
    TOOL_SELECTION = "tool_selection"
    SEMANTICS = "semantics"
    WORLD_STATE = "world_state"
    AUTHORITY = "authority"
    IDEMPOTENCY = "idempotency"
    OUTCOME = "outcome"
    READBACK = "readback"
    POSTCONDITION = "postcondition"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One gate's verdict. `reasons` are for people, in the order found; `next_step` says who does what now."""

    status: Status
    stage: Stage
    reasons: tuple[str, ...]
    next_step: str
