"""A decision record as a case for `ticketgate policy test`: so that a decision that was wrong ends with a test.

Promise: judged by the same policy, the case comes to the record's verdict, violations, labels and effects; where the
record does not hold what that takes, it is told what is missing.
"""

from typing import Final

from ticketgate.codecs.records.decision import DecisionRecord
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage, Status

# Before any answer is looked at.
_ON_THE_TICKET: Final = (Stage.STATE, Stage.PARSE, Stage.SCHEMA)


class RecordedCaseError(ValueError):
    """A record that cannot become a case: which, and what is missing, in one line."""


def policy_case(record: DecisionRecord, *, name: str | None = None) -> dict[str, JsonValue]:
    """The case that a record makes, as `agents/workbench/policy/case_file.py` reads it. Raises RecordedCaseError."""
    status, stage = record.verdict.status, record.verdict.stage
    if status not in (Status.ACCEPT, Status.REVIEW) or stage is Stage.IDENTITY:
        raise RecordedCaseError(
            f"ticket {record.ticket_id}: {status} at {stage} is no policy's verdict; there is no answer to test"
        )
    if record.ticket is None and stage in _ON_THE_TICKET:
        raise RecordedCaseError(
            f"ticket {record.ticket_id}: {status} at {stage}, and the ticket is not in its record"
        )
    if not isinstance(record.answers, dict):
        raise RecordedCaseError(
            f"ticket {record.ticket_id}: its answers are no object, which no case can repeat"
        )
    case: dict[str, JsonValue] = {
        "name": name or record.ticket_id,
        "answers": {question: _short(answer) for question, answer in record.answers.items()},
    }
    ticket = record.ticket or {}
    for field in ("attributes", "state"):
        if field in ticket:
            case[field] = ticket[field]
    if record.truncated:
        case["truncated"] = list(record.truncated)
    return case | {
        "expect": str(status),
        "stage": str(stage),
        "violations": [broken.rule for broken in record.violations],
        "selected": list(record.selected),
        "effects": [effect.tool for effect in record.effects],
    }


def _short(answer: JsonValue) -> JsonValue:
    """A fact as its value, which the case file puts where the policy takes it from; an answer as it stands."""
    return answer["value"] if isinstance(answer, dict) and {"from", "value"} <= answer.keys() else answer
