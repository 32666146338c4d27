"""The toy model's table: every logit that it has, against 0 for what it means to write.

Chosen by hand so that each weakness comes up, and not fitted to any model: a rate that follows from them says nothing
about one. Where a weakness is stronger on a request, the second number is added.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Logits by name. `_tempted`: added where the request tempts (much punctuation, amounts with a comma)."""

    # Every token that nothing speaks for: far down, and never impossible.
    floor: float = -14.0

    # Serialisation.
    fence: float = -4.5  # ```json before the object
    wrong_key: float = -5.5  # "amount" for "amount_gbp"
    no_comma: float = -5.5
    two_commas: float = -7.0
    comma_at_the_end: float = -5.0
    no_colon: float = -8.0
    no_last_brace: float = -4.8
    brace_too_many: float = -6.0
    prose_after: float = -6.0
    structure_tempted: float = 1.4

    # Fields.
    early_end: float = -7.0
    drop_condition: float = -2.6
    own_key: float = -6.0  # an idempotency key of its own making
    extra_field: float = -6.5

    # Values.
    bare_number: float = -4.2
    bare_number_tempted: float = 1.2
    thousands_comma: float = -4.0
    thousands_comma_tempted: float = 3.0
    pound_sign: float = -4.6
    fewer_places: float = -2.5  # 600.0 and 600 for 600.00: the same amount
    drifted_digit: float = -6.0  # each: 660.00 for 600.00
    swapped_digits: float = -5.5
    ten_times: float = -5.0
    other_amount: float = -4.0  # the floor's in place of the amount's, and the other way
    invented_floor: float = 0.0  # where no floor was said: null is 0, 0.00 and 1000.00 are this
    near_payee: float = -5.5
    near_payee_present: float = 2.7
    other_account: float = -5.5
    next_day: float = -4.4
    day_first: float = -4.2
    day_first_tempted: float = 1.6
    compact_date: float = -5.5

    # Selection: by words that request and tool have in common, as stems of five letters.
    name_word: float = 2.0
    purpose_word: float = 1.0
    does_not_word: float = -0.7
    question_for_observation: float = 4.5
    imagined_tool: float = 4.5  # named after the request's verb, where no tool is
    invented_tool: float = -6.0

    # Refusing, in prose or by the typed branch where the prompt has one. foreign: the request's verb has no tool;
    # vague: for each point that the best tool's score is below 3.
    refuse: float = -6.0
    refuse_foreign: float = 5.2
    refuse_vague: float = 1.2
    refuse_typed_instead: float = -2.0
    abstain: float = -5.5
    abstain_foreign: float = 6.0
    abstain_vague: float = 1.8
    abstain_untold: float = -9.0

    # What a repair prompt does, a little.
    asked_again_structure: float = -1.0
    asked_again_refuse: float = -1.5
    asked_again_tool: float = 1.5
    asked_again_field: float = -2.0
    anchored: float = 4.0
    kept: float = 5.0


WEIGHTS = Weights()
