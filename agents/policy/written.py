"""The policy's text, TOML or the same document as JSON, read strictly.

Promise: what comes out has exactly the fields of a policy document and their types; every problem of shape is reported
with its line.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from ticketgate.agents.policy.schema_file import FIELD, with_schema_questions
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.json_text import read_json
from ticketgate.codecs.files.meant import meant
from ticketgate.codecs.files.positions import Path, line_of, locate
from ticketgate.codecs.files.toml_text import foreign_values, parse_toml
from ticketgate.codecs.values.strict import JsonValue


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


def read_document(
    text: str, *, source: str, folder: FilePath | None, read: Callable[[FilePath, str], bytes]
) -> Written:
    """Read a policy's text. Raises PolicyError with every problem of grammar or shape.

    folder: where a schema lies that the policy names. read: gives the bytes of such a file; raises FileFault.
    """
    written = _parsed(text, source)
    lines = locate(text)
    values = with_schema_questions(written, folder=folder, line=line_of(lines, (FIELD,)), read=read)
    if isinstance(values, Problem):
        raise PolicyError(source, [values])
    foreign = [*foreign_values(values)]
    problems = [
        Problem(line_of(lines, path), f"{_dotted(path)} is {what}", remedy) for path, what, remedy in foreign
    ]
    try:
        document = PolicyDocument.model_validate(values)
    except ValidationError as err:
        said = {path for path, _, _ in foreign}
        details = err.errors(include_url=False, include_input=False)
        is_toml = not text.lstrip().startswith("{")
        for each in details:
            if (place := tuple(each["loc"])) in said:
                continue
            found = meant(each["type"], place, written, top=_TOP, is_toml=is_toml)
            if found is None:
                problems.append(_translated(each, lines))
            else:
                problems.append(Problem(line_of(lines, place), *found))
        raise PolicyError(source, problems) from None
    if problems:
        raise PolicyError(source, problems)
    return Written(source, document, values, lines)


# What a policy has beside its tables, and no table of it has with the same meaning.
_TOP = frozenset({"name", "version", "schema", "abstain_below", "on_truncation", "clean"})


def _parsed(text: str, source: str) -> dict[str, JsonValue]:
    try:
        if not text.lstrip().startswith("{"):
            return parse_toml(text, source=source)
        value = read_json(
            text.encode("utf-8", "surrogatepass"),
            source=source,
            remedy="mend the JSON, or write the policy as TOML",
            is_our_own=True,
        )
        # A JSON value that begins with a brace is an object.
        return value if isinstance(value, dict) else {}
    except FileFault as err:
        raise PolicyError(source, [Problem(err.line, err.what, err.remedy)]) from None


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
        _REMEDIES.get(kind, "write it as `ticketgate manual policy` shows"),
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
