"""The JSON Schemas that others may read our records by, made from the models that read them here.

They are kept as files in codecs/schemas/ (package data), and a test holds them current. To make them anew:

    .venv/bin/python -m ticketgate.codecs.records.published codecs/schemas

JSON Schema cannot say all: duplicate keys, numbers beyond 64 bits, depth and size are `codecs.strict`'s.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from ticketgate.codecs.records.case_decision import CASE_DECISION_SCHEMA, CaseDecisionDocument
from ticketgate.codecs.records.decision import DECISION_SCHEMA, DecisionDocument
from ticketgate.codecs.records.effect_receipt import EffectReceiptDocument
from ticketgate.codecs.records.in_force import IN_FORCE_SCHEMA, InForceDocument
from ticketgate.codecs.records.proposal import PROPOSAL_SCHEMA, ProposalDocument
from ticketgate.codecs.records.receipt import RECEIPT_SCHEMA, DecisionReceiptDocument
from ticketgate.codecs.records.settled import SETTLED_SCHEMA, SettledDocument
from ticketgate.codecs.records.settlement import SETTLEMENT_SCHEMA, SettlementDocument
from ticketgate.codecs.records.ticket import TICKET_SCHEMA, TicketDocument

__all__ = ["json_schema", "schema_files", "write_schemas"]

ReceiptDocument = Annotated[
    DecisionReceiptDocument | EffectReceiptDocument, Field(title=RECEIPT_SCHEMA, discriminator="kind")
]

_DOCUMENTS: dict[str, Any] = {
    TICKET_SCHEMA: TicketDocument,
    DECISION_SCHEMA: DecisionDocument,
    PROPOSAL_SCHEMA: ProposalDocument,
    CASE_DECISION_SCHEMA: CaseDecisionDocument,
    RECEIPT_SCHEMA: ReceiptDocument,
    SETTLEMENT_SCHEMA: SettlementDocument,
    SETTLED_SCHEMA: SettledDocument,
    IN_FORCE_SCHEMA: InForceDocument,
}
# What users write; what we write is written without null.
_SENT_BY_OTHERS = (TicketDocument, ProposalDocument)


class _Plain(GenerateJsonSchema):
    """Without a title on each field: it would repeat the field's name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_files() -> dict[str, bytes]:
    """Each file's name, as `ticket-1.json`, and what must stand in it: a JSON Schema of draft 2020-12."""
    return {f"{name.replace('/', '-')}.json": json_schema(document) for name, document in _DOCUMENTS.items()}


def json_schema(document: Any) -> bytes:
    """The JSON Schema of a pydantic document, indented, with a newline at its end."""
    schema = TypeAdapter(document).json_schema(schema_generator=_Plain)
    if document in _SENT_BY_OTHERS:
        for shape in (schema, *schema.get("$defs", {}).values()):
            _take_null(shape)
    return orjson.dumps(
        {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema,
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )


def _take_null(shape: dict[str, Any]) -> None:
    """Let an object's fields that may be left out be null too, and so what a table binds: their readers drop it."""
    for name, field in shape.get("properties", {}).items():
        if name in shape.get("required", ()):
            continue
        if isinstance(entries := field.get("additionalProperties"), dict):
            field["additionalProperties"] = _or_null(entries)
        shape["properties"][name] = _or_null(field)


def _or_null(field: dict[str, Any]) -> dict[str, Any]:
    told = {"description": field["description"]} if "description" in field else {}
    plain = {name: each for name, each in field.items() if name != "description"}
    branches = plain["anyOf"] if set(plain) == {"anyOf"} else [plain]
    return {"anyOf": [*branches, {"type": "null"}], **told}


def write_schemas(folder: Path) -> None:
    """Write every schema into `folder`, over what stands there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in schema_files().items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m ticketgate.codecs.records.published FOLDER")
    write_schemas(Path(sys.argv[1]))
