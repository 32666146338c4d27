"""Dataclasses that nobody changes, for what is made anew for each ticket.

`dataclasses` sets each field of a frozen instance by a call of its own, which takes eight times as long as a plain
assignment; a ticket on its way is some ninety fields. So these are frozen to the type checkers, which read
`dataclass(frozen=True, …)` here as Python's own, and plain at run time. What is made a few times in a process has no
need of it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, **options: Any) -> Callable[[type[T]], type[T]]:
        """As `dataclasses.dataclass(frozen=True, …)`: equal, hashed and shown alike, but not kept from changes."""
        if not frozen:
            raise TypeError("what may be changed is a dataclass of Python's own")
        return dataclasses.dataclass(unsafe_hash=True, **options)


__all__ = ["dataclass"]
