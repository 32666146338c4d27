"""The policy as written: TOML, or the same document as JSON, read strictly.

Promise: what comes out has exactly the fields below and their types; every problem of shape is reported with
its line. What the names mean (questions, atoms, references) is checked after this, in `compile`.
Source: DESIGN section 6.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails
from ticketgate.agents.policy.errors import PolicyError, Problem, ProblemCode
from ticketgate.agents.policy.positions import Path, line_of, locate
from ticketgate.agents.policy.schema_file import FIELD, with_schema_questions
from ticketgate.codecs.questions import MAX_OPTIONS, MIN_OPTIONS
from ticketgate.codecs.strict import JsonValue, Malformed, decode

# A policy is a file that people wrote. A megabyte is a wrong path: a model, a log, a dump.
MAX_POLICY_BYTES = 1024 * 1024

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
    schema_: Annotated[str, Field(min_length=1)] | None = Field(default=None, alias="schema")
    """A JSON Schema whose properties are asked besides; its path, relative to the policy's file."""
    questions: Annotated[dict[str, QuestionDocument], Field(min_length=1)]
    """What is asked of each ticket, by id."""
    rules: list[RuleDocument] = Field(default_factory=list)
    """Which labels may stand together."""
    effects: list[EffectDocument] = Field(default_factory=list)
    """What an accepted ticket asks for; put new ones at the end, for their keys hang on their places."""


@dataclass(frozen=True, slots=True)
class Written:
    """A document of the right shape, as JSON values, and where its parts stand in the text."""

    source: str
    document: PolicyDocument
    values: Mapping[str, JsonValue]
    lines: Mapping[Path, int]

    def problem(self, path: Path, what: str, remedy: str, code: ProblemCode = "invalid") -> Problem:
        """A problem at the line of `path`."""
        return Problem(line_of(self.lines, path), what, remedy, code)


def read_document(text: str, *, source: str, folder: FilePath | None = None) -> Written:
    """Read a policy's text. Raises PolicyError with every problem of grammar or shape.

    folder: where a schema lies that the policy names.
    """
    written = _parsed(text, source)
    lines = locate(text)
    values = with_schema_questions(written, folder=folder, line=line_of(lines, (FIELD,)))
    if isinstance(values, Problem):
        raise PolicyError(source, [values])
    foreign = _not_json(values, ())
    problems = [Problem(line_of(lines, path), what, remedy) for path, what, remedy in foreign]
    try:
        document = PolicyDocument.model_validate(values)
    except ValidationError as err:
        said = {path for path, _, _ in foreign}
        details = err.errors(include_url=False, include_input=False)
        problems += [_translated(each, lines) for each in details if tuple(each["loc"]) not in said]
        raise PolicyError(source, problems) from None
    if problems:
        raise PolicyError(source, problems)
    return Written(source, document, values, lines)


def _parsed(text: str, source: str) -> dict[str, JsonValue]:
    if text.lstrip().startswith("{"):
        value = decode(text.encode("utf-8", "surrogatepass"), max_bytes=MAX_POLICY_BYTES)
        if isinstance(value, Malformed):
            where = re.search(r", at line (\d+), column \d+$", value.reason)
            line = None if where is None else int(where[1])
            raise PolicyError(
                source, [Problem(line, value.reason, "mend the JSON, or write the policy as TOML")]
            )
        # A JSON value that begins with a brace is an object.
        return value if isinstance(value, dict) else {}
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        where = re.search(r"\(at line (\d+), column (\d+)\)", str(err))
        what = f"not TOML: {err}" if where is None else f"not TOML: {str(err)[: where.start()].strip()}"
        column = "" if where is None else f" near column {where[2]}"
        line = text.count("\n") + 1 if where is None else int(where[1])
        raise PolicyError(source, [Problem(line, what, f"mend the line{column}")]) from None
    except RecursionError:
        problem = Problem(None, "nested too deeply to be read", "flatten the arrays and tables")
        raise PolicyError(source, [problem]) from None


def _not_json(value: object, path: Path) -> list[tuple[Path, str, str]]:
    """What TOML can write and a decision record cannot carry."""
    if isinstance(value, datetime | date | time):
        return [(path, f"{_dotted(path)} is a TOML date or time", f'write it as text: "{value.isoformat()}"')]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return [(path, f"{_dotted(path)} is {value}", "write a finite number")]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return [(path, f"{_dotted(path)} is an integer beyond 64 bits", "write it as text")]
    if isinstance(value, dict):
        return [found for key, each in value.items() for found in _not_json(each, (*path, key))]
    if isinstance(value, list):
        return [found for index, each in enumerate(value) for found in _not_json(each, (*path, index))]
    return []


def _translated(error: ErrorDetails, lines: Mapping[Path, int]) -> Problem:
    """pydantic's finding in the policy's words."""
    path: Path = tuple(error["loc"])
    line, name, kind = line_of(lines, path), _dotted(path), error["type"]
    if kind == "extra_forbidden":
        known = _fields_at(path)
        close = difflib.get_close_matches(str(path[-1]), known, n=1)
        hint = f'write "{close[0]}"' if close else "remove it"
        return Problem(
            line,
            f'unknown field "{path[-1]}" in {_place(path[:-1])}',
            f"{hint}; the fields are {', '.join(known)}",
        )
    if kind == "missing":
        field = path[-1]
        return Problem(
            line_of(lines, path) or 1,
            f'{_place(path[:-1])} has no "{field}"',
            f"add {field} = …{_example(str(field))}",
        )
    if kind in ("greater_than", "less_than_equal", "finite_number"):
        return Problem(
            line,
            f"{name} is not above 0 and at most 1",
            "write a number in (0, 1], such as 0.5",
            "threshold_out_of_range",
        )
    return Problem(
        line,
        f"{name}: {_lowered(error['msg'])}",
        _REMEDIES.get(kind, "write it as agents/policy/README.md shows"),
    )


_REMEDIES = {
    "string_type": 'write text in quotes, such as "1"',
    "string_too_short": "write at least one character",
    "string_pattern_mismatch": "write more than blanks",
    "string_too_long": "shorten it",
    "float_type": "write a number without quotes",
    "int_type": "write a whole number without quotes",
    "greater_than_equal": "write 0 or more",
    "list_type": 'write an array, such as ["urgent", "review"]',
    "dict_type": "write a table",
    "model_type": "write a table",
    "model_attributes_type": "write a table",
    "literal_error": "choose one of these",
    "too_short": "add a table [questions.ID] with at least a type",
}

_EXAMPLES = {
    "name": ' such as name = "support-triage"',
    "version": ' such as version = "1"',
    "questions": ", one table [questions.ID] for each question",
    "type": ' with "noul", "choice" or "score"',
    "tool": ", the effect's name",
    "count": ", how many of the atoms",
    "of": ", the atoms that are counted",
}


def _example(field: str) -> str:
    return _EXAMPLES.get(field, "")


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]


def _fields_at(path: Path) -> list[str]:
    """The names that may stand where the unknown one at `path` stands."""
    match path:
        case ("questions", _, _):
            model: type[BaseModel] = QuestionDocument
        case ("questions", _, "examples", _):
            model = ExamplesDocument
        case ("rules", _, _):
            model = RuleDocument
        case ("rules", _, _, _):
            model = CountDocument
        case ("effects", _, _):
            model = EffectDocument
        case _:
            model = PolicyDocument
    return [field.alias or name for name, field in model.model_fields.items()]


def _place(path: Path) -> str:
    return _dotted(path) if path else "the policy"


def _dotted(path: Path) -> str:
    """How messages name a place: `threshold`, `questions.urgent.type`, `rule 2: implies`; counted as people do."""
    if len(path) > 1 and path[0] in ("rules", "effects") and isinstance(path[1], int):
        head = f"{str(path[0])[:-1]} {path[1] + 1}"
        return f"{head}: {_dotted(path[2:])}" if path[2:] else head
    text = ""
    for part in path:
        text += f" element {part + 1}" if isinstance(part, int) else f".{part}" if text else part
    return text
