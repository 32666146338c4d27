"""The policy as written: its document, with exactly these fields and their types.

written.py reads it; what the names mean (questions, atoms, references) is checked after that, in `compile`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from ticketgate.agents.cleaning import Step
from ticketgate.codecs.systemone.questions import MAX_OPTIONS, MIN_OPTIONS

DEFAULT_THRESHOLD = 0.5

# In a rule, exactly one of these stands beside `id` and `message`.
CONSTRUCTS = (
    "implies",
    "iff",
    "excludes",
    "forbid",
    "exactly_one",
    "at_least",
    "at_most",
    "exactly",
    "any_of",
)

_Name = Annotated[str, Field(min_length=1, max_length=256, pattern=r"\S")]
# Open at 0: everything reaches a threshold of 0, so the question would decide nothing. NaN is in no range.
_Share = Annotated[float, Field(gt=0, le=1)]


# For editors only. What the compiler checks it checks itself, and says with better words than a union's.
_STATE = {"type": ["string", "array"], "minLength": 1, "minItems": 1}
_LABELLED = {
    "type": "object",
    "required": ["state"],
    "additionalProperties": False,
    "properties": {
        "state": {"type": ["string", "array", "object"]},
        "label": {"type": ["string", "integer"]},
    },
}
_Example = Annotated[Any, WithJsonSchema({"anyOf": [_STATE, _LABELLED]})]
_ATOMS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
_SIDE = {"anyOf": [{"type": "string"}, _ATOMS]}
_Side = Annotated[Any, WithJsonSchema(_SIDE)]
_Sides = Annotated[list[Any], WithJsonSchema({"type": "array", "items": _SIDE, "minItems": 2, "maxItems": 2})]
_Wording = Annotated[Any, WithJsonSchema({"type": ["string", "object", "array", "null"]})]
_Shortlist = Annotated[
    int, WithJsonSchema({"type": "integer", "minimum": MIN_OPTIONS, "maximum": MAX_OPTIONS})
]
_Values = Annotated[
    list[Any] | None,
    WithJsonSchema(
        {"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}, "minItems": 2}
    ),
]
_Criteria = Annotated[Any, WithJsonSchema({"type": ["object", "array", "null"]})]


class _Strict(BaseModel):
    # An attribute's docstring is its description in the published schema.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class ExamplesDocument(_Strict):
    """`[questions.ID.examples]`: states as text or array, or `{ state = …, label = … }`; see `examples`."""

    fits: _Example = None
    """A state that the question admits: of a noul one that makes it true."""
    other: _Example = None
    """A state that is well formed and means another label: of a noul false."""
    unclear: _Example = None
    """A state in which the truth is missing or uncertain."""


class QuestionDocument(_Strict):
    """`[questions.ID]`. `threshold` is a scored noul's alone; `from` names the attribute that answers instead."""

    type: Literal["noul", "choice", "score"]
    """noul: is it true; choice: which one; score: which level."""
    instructions: _Wording = None
    """What the model is asked."""
    criteria: _Criteria = None
    """noul: { true = …, false = … }; choice: each label with its description; score: the levels, the lowest first."""
    values: _Values = None
    """What rules, effects and records call its levels or labels, in their order: of a score rising whole numbers."""
    threshold: _Share | None = None
    """The probability of true from which on a noul is selected."""
    shortlist: _Shortlist | None = None
    """Of a choice: ask only about so many options, those nearest to the ticket; it may then have up to 10,000."""
    from_: str | None = Field(default=None, alias="from")
    """The attribute that answers instead of a model, as attributes.NAME."""
    examples: ExamplesDocument | None = None
    """Three states that say what is meant; `ticketgate policy test` shows them to a model."""


class CountDocument(_Strict):
    """`{ count = 2, of = ["a", "b", "c"] }`."""

    count: Annotated[int, Field(ge=0)]
    """How many."""
    of: list[str]
    """The atoms that are counted."""


class RuleDocument(_Strict):
    """`[[rules]]`: one of CONSTRUCTS, and a name and a sentence if the defaults do not please."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [name]} for name in CONSTRUCTS]})

    id: _Name | None = None
    """The name under which records and metrics know the rule."""
    message: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"\S")] | None = None
    """What a person reads when the rule is broken."""
    implies: _Sides | None = None
    """When the left side holds, the right must; a side is an atom or a list of atoms that must all hold."""
    iff: _Sides | None = None
    """Both sides hold, or neither."""
    excludes: list[str] | None = None
    """Two atoms that never hold together."""
    forbid: list[str] | None = None
    """These atoms never all hold together."""
    exactly_one: list[str] | None = None
    """One of the atoms holds, and no more."""
    at_least: CountDocument | None = None
    """So many of the atoms hold, or more."""
    at_most: CountDocument | None = None
    """So many of the atoms hold, or fewer."""
    exactly: CountDocument | None = None
    """So many of the atoms hold."""
    any_of: list[str] | None = None
    """One of the atoms holds, or more."""

    @property
    def constructs(self) -> tuple[str, ...]:
        """Those of CONSTRUCTS that the rule has."""
        return tuple(name for name in CONSTRUCTS if getattr(self, name) is not None)


class EffectDocument(_Strict):
    """`[[effects]]`: a tool and its arguments, when every atom of `when` holds (always, without it)."""

    when: _Side = None
    """An atom, or a list of atoms that must all hold; without it, always."""
    tool: _Name
    """What is asked for."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Values, in whose texts {ticket.id}, {ticket.tenant}, {attributes.NAME} and {labels.QUESTION} are filled in."""


class PolicyDocument(_Strict):
    """The whole file."""

    name: _Name
    """The policy's name in every record."""
    version: _Name
    """The policy's version in every record, yours to count."""
    threshold: _Share = DEFAULT_THRESHOLD
    """The probability of true from which on a noul is selected, unless its question says another."""
    abstain_below: _Share | None = None
    """An answer whose own probability is below this sends the ticket to review."""
    on_truncation: Literal["review", "allow"] = "review"
    """What becomes of a ticket that the model could not read to its end."""
    clean: list[Step] = Field(default_factory=list)
    """What is taken off a ticket's texts before the model reads them; the record keeps them as they came."""
    schema_: Annotated[str, Field(min_length=1)] | None = Field(default=None, alias="schema")
    """A JSON Schema whose properties are asked besides; its path, relative to the policy's file."""
    questions: Annotated[dict[str, QuestionDocument], Field(min_length=1)]
    """What is asked of each ticket, by id."""
    rules: list[RuleDocument] = Field(default_factory=list)
    """Which labels may stand together."""
    effects: list[EffectDocument] = Field(default_factory=list)
    """What an accepted ticket asks for; put new ones at the end, for their keys hang on their places."""
