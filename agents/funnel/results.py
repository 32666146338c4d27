"""What an observation brings: values of the tool's own, such as a quote with its fee.

Promise: a result follows from the request, the evidence and the catalogue alone, so whoever judges again comes to the
same one; nothing is asked for or changed to have it. Each value is read by its own kind and bounds before it is told.

    fact = "fee_gbp"                        as the world was looked up
    of = "amount_gbp", times = "0.002", plus = "0.50"    an amount worked out from a money field, to its minor units
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field
from ticketgate.agents.funnel.values import Kind, Value, is_of_type, read_money, read_value, smallest, to_wire
from ticketgate.codecs.values.strict import JsonValue

# Decimal text: a share has more than two places.
_Number = Annotated[str, Field(pattern=r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,12})?$")]


class ResultUnknown(ValueError):
    """A result that cannot be had, or that its own kind does not admit: `fact_unknown:NAME` and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultSpec:
    """One value. type and unit as a field's; at_least, at_most: of money. `fact`, or `of` with times and plus."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    type: Kind
    says: str = ""
    unit: str | None = None
    fact: str | None = None
    of: str | None = None
    times: _Number = "1"
    plus: _Number = "0"
    at_least: str | None = None
    at_most: str | None = None

    def read(self, facts: Mapping[str, JsonValue], command: Mapping[str, Value]) -> Value:
        """The value. Raises ResultUnknown."""
        try:
            value = self._looked_up(facts) if self.fact is not None else self._worked_out(command)
            if isinstance(value, Decimal):
                self._check_range(value)
        except ResultUnknown:
            raise
        except ValueError as err:
            raise ResultUnknown(f"result_unknown:{self.fact or self.of}:{err}") from None
        return value

    def _looked_up(self, facts: Mapping[str, JsonValue]) -> Value:
        given = facts.get(self.fact or "")
        if given is None:
            raise ResultUnknown(f"fact_unknown:{self.fact}")
        if not is_of_type(self.type, given):
            raise ValueError(f"not of the type {self.type}")
        return read_value(self.type, given, unit=self.unit)

    def _worked_out(self, command: Mapping[str, Value]) -> Value:
        amount = command.get(self.of or "")
        if not isinstance(amount, Decimal):
            raise ValueError("the call has no such amount")
        found = amount * Decimal(self.times) + Decimal(self.plus)
        return found.quantize(smallest(self.unit), rounding=ROUND_HALF_EVEN)

    def _check_range(self, value: Decimal) -> None:
        if self.at_least is not None and value < read_money(self.at_least, self.unit):
            raise ValueError(f"must be at least {self.at_least}, not {value}")
        if self.at_most is not None and value > read_money(self.at_most, self.unit):
            raise ValueError(f"must be at most {self.at_most}, not {value}")


def results_of(
    specs: Mapping[str, ResultSpec], facts: Mapping[str, JsonValue], command: Mapping[str, Value]
) -> dict[str, JsonValue]:
    """Every result in its one spelling, in the catalogue's order. Raises ResultUnknown."""
    return {name: to_wire(spec.read(facts, command)) for name, spec in specs.items()}
