"""The policy's text, TOML or the same document as JSON, read strictly.

Promise: what comes out has exactly the fields of a policy document and their types; every problem of shape is reported
with its line.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path as FilePath

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from ticketgate.agents.policy.document import (
    CountDocument,
    EffectDocument,
    ExamplesDocument,
    PolicyDocument,
    QuestionDocument,
    RuleDocument,
)
from ticketgate.agents.policy.errors import PolicyError, Problem, ProblemCode
from ticketgate.agents.policy.positions import Path, line_of, locate
from ticketgate.agents.policy.schema_file import FIELD, with_schema_questions
from ticketgate.agents.policy.toml_limits import MOST_KEY_PARTS, long_key_line
from ticketgate.codecs.values.strict import JsonValue, Malformed, decode

# A policy is a file that people wrote. A megabyte is a wrong path: a model, a log, a dump.
MAX_POLICY_BYTES = 1024 * 1024


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
    if (line := long_key_line(text)) is not None:
        what = f"a key with more than {MOST_KEY_PARTS} parts between dots"
        raise PolicyError(source, [Problem(line, what, "write shorter keys")])
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
