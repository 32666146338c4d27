"""That a policy was put in force (`in-force/1`): which one, when, where and by whom. The policy itself lies under its
hash on the same topic."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from ticketgate.codecs.records.decision import PolicyRef
from ticketgate.codecs.records.decision_document import PolicyDocument
from ticketgate.codecs.records.pieces import Moment
from ticketgate.codecs.values.malformed import Malformed, wrong_kind
from ticketgate.codecs.values.shape import read_written
from ticketgate.codecs.values.strict import DEFAULT_MAX_BYTES, JsonValue, decode, encode
from ticketgate.codecs.values.times import parse_rfc3339, rfc3339, to_milliseconds
from ticketgate.codecs.values.versions import Versions
from ticketgate.codecs.verdict import Stage
from typing_extensions import TypedDict

__all__ = ["IN_FORCE_SCHEMA", "InForceDocument", "InForceRecord", "decode_in_force", "read_in_force"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InForceRecord:
    """A policy was put in force.

    at: by the worker's clock, kept in milliseconds. by: the pseudonym of who answers for it, None where nobody is
    named.
    file: the name of the policy's file, without its folder. host: the machine, and namespace: the deployment.
    """

    policy: PolicyRef
    at: datetime
    by: str | None
    file: str
    host: str
    namespace: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", to_milliseconds(self.at))

    def to_json(self) -> dict[str, JsonValue]:
        """The record as a JSON object in the wire's field order."""
        return {
            "schema": IN_FORCE_SCHEMA,
            "policy": self.policy.to_json(),
            "at": rfc3339(self.at),
            "by": self.by,
            "file": self.file,
            "host": self.host,
            "namespace": self.namespace,
        }

    def encode(self) -> bytes:
        """The record's bytes."""
        return encode(self.to_json())


@with_config(ConfigDict(extra="ignore", strict=True, title="in-force/1"))
class InForceDocument(TypedDict):
    """A policy was put in force, on the wire. Unknown fields are ignored at every level."""

    schema: Literal["in-force/1"]
    policy: PolicyDocument
    at: Moment
    by: Annotated[str | None, Field(description="a pseudonym")]
    file: Annotated[str, Field(description="the policy's file, without its folder")]
    host: str
    namespace: str


@cache
def _check() -> TypeAdapter[InForceDocument]:
    """Built at first use, as `codecs.decision` says."""
    return TypeAdapter(InForceDocument)


def _read_version_1(value: dict[str, JsonValue]) -> InForceRecord | Malformed:
    fields = InForceDocument.__annotations__
    return read_written(value, _check(), _made, fields=fields, schema="in-force/1")


def _made(checked: InForceDocument) -> InForceRecord:
    return InForceRecord(
        policy=PolicyRef(**checked["policy"]),
        at=parse_rfc3339(checked["at"]),
        by=checked["by"],
        file=checked["file"],
        host=checked["host"],
        namespace=checked["namespace"],
    )


_VERSIONS: Versions[InForceRecord] = Versions("in-force", {1: _read_version_1})

IN_FORCE_SCHEMA = _VERSIONS.current


def read_in_force(value: JsonValue) -> InForceRecord | Malformed:
    """The record that a decoded value is, or a reason at stage `schema` that names every wrong field at once."""
    if not isinstance(value, dict):
        return Malformed(
            Stage.SCHEMA, "not_an_object", f"an in-force record is a JSON object, not {wrong_kind(value)}"
        )
    return _VERSIONS.read(value)


def decode_in_force(data: bytes, *, max_bytes: int = DEFAULT_MAX_BYTES) -> InForceRecord | Malformed:
    """The record that a value's bytes are: bytes and shape judged as one total function."""
    value = decode(data, max_bytes=max_bytes)
    return value if isinstance(value, Malformed) else read_in_force(value)
