"""Why a settlement is not taken: a code for machines, and reasons for the person who sent it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Code(StrEnum):
    """Why a settlement takes no effect. The ticket waits as before."""

    UNKNOWN_KEY = "unknown_key"
    BAD_SIGNATURE = "bad_signature"
    WRONG_ROLE = "wrong_role"
    SAME_PERSON = "same_person"
    EXPIRED = "expired"
    NOT_YET = "not_yet"
    NO_SUCH_RECORD = "no_such_record"
    OTHER_RECORD = "other_record"
    NOT_SETTLEABLE = "not_settleable"
    CLAIM_EXPIRED = "claim_expired"
    DECIDED_ANEW = "decided_anew"
    NO_TEXT = "no_text"
    WRONG_LABELS = "wrong_labels"
    JUDGED_OTHERWISE = "judged_otherwise"
    EFFECTS_DIFFER = "effects_differ"
    ALREADY_SETTLED = "already_settled"
    SET_ASIDE = "set_aside"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a settlement is not taken. Reasons name no text of the ticket."""

    code: Code
    reasons: tuple[str, ...]
