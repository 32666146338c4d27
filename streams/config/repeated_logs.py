"""A line a minute for each cause: what a log holds of an outage, however long it lasts.

Promise: what is logged for the first time is written at once. What is logged again within a minute is counted, and the
count is written with the next one, or when none comes. That holds for the libraries too: aiokafka, left alone, writes
70 lines a second while a broker is away.

Our own lines are the same if they read the same, or if their `extra={"cause": …}` is; a library's if they differ in
numbers alone. What is below WARNING is never held back.
"""

from __future__ import annotations

import copy
import logging
import re
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

INTERVAL_S = 60.0
# Each cause is remembered for its minute. More than that in a minute is no repetition.
MOST_CAUSES = 1_000
OWN = "ticketgate."
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


@dataclass(slots=True)
class _Cause:
    written_at: float
    last: logging.LogRecord
    held_back: int = 0


class RepeatLimit(logging.Filter):
    """Holds repetitions back from one handler."""

    def __init__(self, handler: logging.Handler, *, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._handler = handler
        self._now = now
        self._causes: dict[Hashable, _Cause] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the handler writes the record now."""
        if record.levelno < logging.WARNING:
            return True
        # Filters are called before a handler takes its lock, and by any thread.
        with _locked(self._handler):
            return self._is_due(record)

    def tell(self, *, at_once: bool = False) -> None:
        """Write the counts of what came no more for a minute; `at_once`: of all, for the process ends."""
        with _locked(self._handler):
            self._forget(self._now() - (0 if at_once else INTERVAL_S))

    def _is_due(self, record: logging.LogRecord) -> bool:
        now, key = self._now(), _key(record)
        cause = self._causes.get(key)
        if cause is None:
            self._forget(now - INTERVAL_S)
            self._causes[key] = _Cause(now, record)
            while len(self._causes) > MOST_CAUSES:
                self._write(self._causes.pop(next(iter(self._causes))))
            return True
        if now - cause.written_at < INTERVAL_S:
            cause.last, cause.held_back = record, cause.held_back + 1
            return False
        cause.last = record
        self._write(cause, of=record)
        cause.written_at, cause.held_back = now, 0
        return False

    def _forget(self, until: float) -> None:
        for key, cause in [*self._causes.items()]:
            if cause.written_at <= until:
                self._write(self._causes.pop(key))

    def _write(self, cause: _Cause, of: logging.LogRecord | None = None) -> None:
        """Write a record that is due (`of`), or else the last that was held back, with how many were."""
        if of is None and not cause.held_back:
            return
        record = copy.copy(of or cause.last)
        if cause.held_back:
            seconds = self._now() - cause.written_at
            record.msg = (
                f"{record.getMessage()} (repeated {cause.held_back} times in the last {seconds:.0f} s)"
            )
            record.args = None
        self._handler.emit(record)


def limit_repeats() -> None:
    """Hold repetitions back from every handler of the root logger; a second call changes nothing."""
    for handler in logging.getLogger().handlers:
        if not any(isinstance(each, RepeatLimit) for each in handler.filters):
            handler.addFilter(RepeatLimit(handler))


def tell_repeats(*, at_once: bool = False) -> None:
    """Write counts that are due: to be called every few seconds, and with `at_once` before the process ends."""
    for handler in logging.getLogger().handlers:
        for each in handler.filters:
            if isinstance(each, RepeatLimit):
                each.tell(at_once=at_once)


def _key(record: logging.LogRecord) -> Hashable:
    cause = getattr(record, "cause", None)
    if cause is None:
        cause = record.getMessage() if record.name.startswith(OWN) else _NUMBERS.sub("#", record.getMessage())
    raised = record.exc_info[0] if record.exc_info else None
    return record.name, record.levelno, cause, raised


@contextmanager
def _locked(handler: logging.Handler) -> Iterator[None]:
    handler.acquire()
    try:
        yield
    finally:
        handler.release()
