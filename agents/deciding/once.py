"""A property that is worked out when it is first asked for, and kept."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as once
else:
    T = TypeVar("T")

    class once(Generic[T]):  # noqa: N801 - in the place of functools.cached_property
        """`functools.cached_property` without the lock that it takes before Python 3.12, which cost as much as most of
        what is asked of a ticket: a case belongs to one thread."""

        def __init__(self, work_out: Callable[[Any], T]) -> None:
            self._work_out = work_out
            self.__doc__ = work_out.__doc__

        def __set_name__(self, owner: type[Any], name: str) -> None:
            self._name = name

        @overload
        def __get__(self, instance: None, owner: type[Any]) -> once[T]: ...
        @overload
        def __get__(self, instance: object, owner: type[Any]) -> T: ...
        def __get__(self, instance: object | None, owner: type[Any]) -> once[T] | T:
            if instance is None:
                return self
            # Found there from now on: Python looks into __dict__ before it asks a descriptor without __set__.
            found = instance.__dict__[self._name] = self._work_out(instance)
            return found


__all__ = ["once"]
