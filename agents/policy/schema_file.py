"""`schema = "ticket.schema.json"`: a policy that takes its questions from a JSON Schema.

The schema's questions are put into the document before it is read on, so that everything after (lint, hash, records)
sees a policy that lists them, with the schema's own `values`. The hash is thus of the questions, not of the file's
name.
"""

from collections.abc import Callable, Mapping
from pathlib import Path as FilePath

from ticketgate.agents.policy.errors import Problem
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.json_text import read_json
from ticketgate.codecs.systemone.jsonschema import SchemaError, questions_from_json_schema
from ticketgate.codecs.values.strict import JsonValue

FIELD = "schema"


def with_schema_questions(
    values: dict[str, JsonValue],
    *,
    folder: FilePath | None,
    line: int | None,
    read: Callable[[FilePath, str], bytes],
) -> dict[str, JsonValue] | Problem:
    """The document with the questions of the schema that it names, behind its own; itself if it names none.

    folder: what the file's name is relative to; None for a text that comes from no file. line: where `schema` stands.
    read: gives the bytes of a file, of that kind; raises FileFault.
    """
    if FIELD not in values:
        return values
    name = values[FIELD]
    if not isinstance(name, str) or not name:
        return Problem(line, "schema is no text", 'name the file, such as schema = "ticket.schema.json"')
    if folder is None:
        return Problem(
            line, "this policy comes from no file, so its schema cannot be found", "list the questions"
        )
    try:
        content = read(folder / name, "schema")
        questions = questions_from_json_schema(read_json(content, source=name))
    except FileFault as err:
        where = "" if err.line is None else f", line {err.line}"
        remedy = "name a readable JSON Schema, relative to the policy"
        return Problem(line, f'schema "{name}"{where}: {err.what}', remedy)
    except SchemaError as err:
        return Problem(line, f'schema "{name}": {err}', "mend the schema, or list the question in the policy")
    own = values.get("questions", {})
    own = own if isinstance(own, Mapping) else {}
    for question_id in questions:
        if question_id in own:
            what = f'"{question_id}" is both a question here and a property of "{name}"'
            return Problem(line, what, "remove one of them")
    rest = {key: value for key, value in values.items() if key != FIELD}
    made: dict[str, JsonValue] = {
        name: {**question.to_json(), "values": list(question.values or ())}
        for name, question in questions.items()
    }
    return {**rest, "questions": {**own, **made}}
