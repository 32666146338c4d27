"""What crosses a wire: records, answers, headers and keys, read strictly and written in one form.

Stands on nothing but jiter, orjson and pydantic. Each module's docstring says what it promises.
"""

# ruff: noqa: A005 - installed as ticketgate.codecs, which shadows nothing (DESIGN section 2)

from ticketgate.codecs.answers import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    ScoreAnswer,
    answer_confidence,
    answer_json,
    check_answers,
    confidence,
)
from ticketgate.codecs.decision import (
    DECISION_SCHEMA,
    DecisionRecord,
    ModelRef,
    PolicyRef,
    Probability,
    Violation,
    read_decision,
)
from ticketgate.codecs.headers import Header, dead_letter_headers, decision_headers, foreign, header
from ticketgate.codecs.identity import (
    Coordinate,
    Fingerprint,
    IdempotencyKey,
    collision_key,
    effect_key,
    fingerprint,
    proposal_key,
    settlement_key,
    ticket_key,
)
from ticketgate.codecs.pieces import Effect
from ticketgate.codecs.questions import (
    ChoiceQuestion,
    NoulQuestion,
    Question,
    QuestionError,
    ScoreQuestion,
    read_question,
    read_questions,
)
from ticketgate.codecs.strict import DEFAULT_MAX_BYTES, JsonValue, Malformed, canonical, decode, encode
from ticketgate.codecs.tagged import tag_non_finite
from ticketgate.codecs.ticket import TICKET_SCHEMA, Ticket, decode_ticket, is_empty_state, read_ticket
from ticketgate.codecs.times import from_epoch_ms, rfc3339
from ticketgate.codecs.verdict import Stage, Status, Verdict

__all__ = [
    "DECISION_SCHEMA",
    "DEFAULT_MAX_BYTES",
    "TICKET_SCHEMA",
    "Answer",
    "ChoiceAnswer",
    "ChoiceQuestion",
    "Coordinate",
    "DecisionRecord",
    "Effect",
    "Fingerprint",
    "Header",
    "IdempotencyKey",
    "JsonValue",
    "Malformed",
    "ModelRef",
    "NoulAnswer",
    "NoulQuestion",
    "PolicyRef",
    "Probability",
    "Question",
    "QuestionError",
    "ScoreAnswer",
    "ScoreQuestion",
    "Stage",
    "Status",
    "Ticket",
    "Verdict",
    "Violation",
    "answer_confidence",
    "answer_json",
    "canonical",
    "check_answers",
    "collision_key",
    "confidence",
    "dead_letter_headers",
    "decision_headers",
    "decode",
    "decode_ticket",
    "effect_key",
    "encode",
    "fingerprint",
    "foreign",
    "from_epoch_ms",
    "header",
    "is_empty_state",
    "proposal_key",
    "read_decision",
    "read_question",
    "read_questions",
    "read_ticket",
    "rfc3339",
    "settlement_key",
    "tag_non_finite",
    "ticket_key",
]
