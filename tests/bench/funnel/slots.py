"""The parts of a call as the toy model knows them."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Slot:
    """One part. tool: the chosen one, once it is. field: whose value. done: fields written. then: the slot after."""

    kind: str
    tool: str = ""
    field: str = ""
    done: frozenset[str] = frozenset()
    then: str = ""

    def value_of(self, field: str) -> Slot:
        """The slot of a field's value; the field then counts as written, under whatever name."""
        return replace(self, kind="value", field=field, done=self.done | {field})


@dataclass(frozen=True, slots=True)
class Choice:
    """Tokens that the model may mean to write in a slot, the logit against its other choices, the slot after."""

    tokens: tuple[str, ...]
    logit: float
    then: Slot


@dataclass(frozen=True, slots=True)
class Written:
    """A way to write a value, whole, with its quotes."""

    text: str
    logit: float
