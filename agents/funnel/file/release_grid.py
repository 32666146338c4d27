"""The release grid: for what of an effect is the model's and what a wrong one costs, what must stand for automatic.

Promise: there is a cell for each pair, and each names requirements that there are, or says why it is never automatic.
The data lie in release_grid.toml; nothing here judges a file.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, TypeAdapter
from ticketgate.agents.funnel.file.funnel_specs import CONSEQUENCES, Consequence, Contribution
from ticketgate.codecs.files.toml_text import read_toml
from ticketgate.codecs.values.strict import encode

_STRICT = ConfigDict(extra="forbid")

# Requirements by name, or why the cell is never automatic.
Cell = Annotated[tuple[str, ...], Field(min_length=1)] | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One thing that must stand. test: of this repository, where it is one that is shown here for every tool whose
    facts are right; None where only the tool's operator can show it."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    says: str
    test: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The cells of one contribution. remove_the_model: why a model has no business here."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    reversible: Cell
    costly: Cell
    irreversible: Cell
    remove_the_model: str | None = None

    def cell(self, consequence: Consequence) -> Cell:
        """The cell of a consequence."""
        return {"reversible": self.reversible, "costly": self.costly, "irreversible": self.irreversible}[
            consequence
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """All requirements by name, and the rows by contribution."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    requirements: Mapping[str, Requirement]
    cells: Mapping[Contribution, Row]


@cache
def release_grid() -> Grid:
    """The grid that comes along."""
    text = (resources.files("ticketgate.agents.funnel.file") / "release_grid.toml").read_text(
        encoding="utf-8"
    )
    grid = TypeAdapter(Grid).validate_json(encode(read_toml(text, source="release_grid.toml")), strict=True)
    for contribution, row in grid.cells.items():
        for consequence in CONSEQUENCES:
            cell = row.cell(consequence)
            unknown = () if isinstance(cell, str) else set(cell) - grid.requirements.keys()
            if unknown:
                raise ValueError(f"release_grid.toml: {contribution}.{consequence} names {sorted(unknown)}")
    return grid
