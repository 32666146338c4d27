"""The report of mutations on a catalogue: that what must not pass does not, for this catalogue and no other.

Promise: a report stands for the catalogue whose hash it bears, whole: a changed field, limit or state asks for another
run of `ticketgate funnel --mutate`. `workbench/funnel/mutating.py` makes it; `release` reads it here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, ClassVar, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.codecs.values.strict import JsonValue, Malformed, canonical, decode

SCHEMA: Final = "mutations/1"
MAX_REPORT_BYTES: Final = 16 * 2**20
_COUNT = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationReport:
    """What became of a catalogue's mutations.

    catalogue_hash: of the whole catalogue. cases_hash: SHA-256 of the file of good cases. tools: by tool, how many
    mutations of each kind were run. survivors: by name, those that passed though they must not. untried: what could not
    be mutated, and why.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    schema: str = SCHEMA
    catalogue: str
    version: str
    catalogue_hash: str
    cases_hash: str
    tools: Mapping[str, Mapping[str, _COUNT]]
    survivors: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()
    made_by: str = field(default="ticketgate")

    def to_json(self) -> dict[str, JsonValue]:
        """The report as a JSON object."""
        return {
            "schema": self.schema,
            "catalogue": self.catalogue,
            "version": self.version,
            "catalogue_hash": self.catalogue_hash,
            "cases_hash": self.cases_hash,
            "tools": {name: dict(kinds) for name, kinds in self.tools.items()},
            "mutations": sum(sum(kinds.values()) for kinds in self.tools.values()),
            "survivors": list(self.survivors),
            "untried": list(self.untried),
            "made_by": self.made_by,
        }

    def fault(self, catalogue: Catalogue, tool: str) -> str | None:
        """Why the report does not stand for a tool; None if it does."""
        if self.catalogue_hash != hash_of(catalogue):
            return "the report is of another catalogue, or of another version of this one"
        if self.survivors:
            return f"{len(self.survivors)} mutations passed, {self.survivors[0]} among them"
        return None if self.tools.get(tool) else f"no mutation of {tool} was run"


def hash_of(catalogue: Catalogue) -> str:
    """SHA-256 of everything that a catalogue says, hexadecimal."""
    value = decode(_catalogues().dump_json(catalogue), max_bytes=MAX_REPORT_BYTES)
    if isinstance(value, Malformed):  # ours, and so readable
        raise TypeError(value.reason)
    return hashlib.sha256(canonical(value)).hexdigest()


def read_report(path: Path) -> MutationReport | None:
    """The report in a file; None where there is none that can be read."""
    try:
        return _report(path.read_bytes())
    except OSError:
        return None


def shipped_report(catalogue: str) -> MutationReport | None:
    """The report that comes with a built-in catalogue."""
    file = resources.files("ticketgate.agents.funnel") / "examples" / f"{catalogue}.mutations.json"
    return _report(file.read_bytes()) if file.is_file() else None


def _report(data: bytes) -> MutationReport | None:
    value = decode(data, max_bytes=MAX_REPORT_BYTES)
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        return None
    try:
        return _reports().validate_python(value)
    except ValidationError:
        return None


@cache
def _reports() -> TypeAdapter[MutationReport]:
    return TypeAdapter(MutationReport)


@cache
def _catalogues() -> TypeAdapter[Catalogue]:
    return TypeAdapter(Catalogue)
