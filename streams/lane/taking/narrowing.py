"""What a lane does about records that will not pass, so that none is tried for ever and none is blamed by chance.

    1  a piece that fails for what is in it, or for being too much, is halved (pace.py), down to its first record
    2  a record that failed alone again and again is a suspect: it may be at fault, or whatever stands around it
    3  the suspect is set aside, and its neighbour taken as ever, in one transaction. If that passes, the record was at
       fault, and stands where a person sees it; if it fails for the same cause, nothing was committed: two in a row
       that fail alone are no fault of theirs, and the lane refuses with what is to be mended around it
    4  without a neighbour the suspect waits for one, unless another record passed since the trouble began

Time-outs narrow and blame nobody: they say nothing of a record. So do errors of the network and of Redis, which are no
concern of this module, and of Kafka but for those below.
Relies on: a transaction that failed has committed nothing, and a lane that reopens (lane.py).
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiokafka.errors as kafka
from aiokafka import ConsumerRecord
from ticketgate.store.claims import ClaimsContested
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.kafka.unknown_errors import InvalidRecord
from ticketgate.streams.lane.recovery import handling
from ticketgate.streams.lane.taking.contention import AttemptsContested, KeyLeft

log = logging.getLogger(__name__)

# Once alone may be a chance, such as memory that was short.
ALONE_BEFORE_SUSPECT = 2
# A suspect and the one behind it.
PAIR = 2

# Others at work on the same keys, which ends by itself.
_CONTENTION = (KeyLeft, AttemptsContested, ClaimsContested)


@dataclass(frozen=True, slots=True)
class Cause:
    """One way to fail. name: a word for metrics and /readyz. detail: what tells it from others of the same name.
    blames: whether a record may be at fault. remedy: where none is."""

    name: str
    detail: str
    blames: bool
    remedy: str


_TOO_LARGE_REMEDY = (
    "set TICKETGATE_MAX_RECORD_BYTES below message.max.bytes of the broker, and max.message.bytes and segment.bytes of"
    " the output topics"
)
_INVALID_REMEDY = "see the broker's log, and the settings of the output topics, such as cleanup.policy"
_FAULT_REMEDY = "a fault of this version: see the traceback in the log, and run another version"


def cause_of(error: BaseException) -> Cause | None:
    """The cause for which a piece is narrowed; None for what says nothing of its records."""
    match error:
        case kafka.MessageSizeTooLargeError() | kafka.RecordListTooLargeError():
            return Cause("record_too_large", "", blames=True, remedy=_TOO_LARGE_REMEDY)
        case InvalidRecord():
            return Cause("record_refused", "", blames=True, remedy=_INVALID_REMEDY)
        case kafka.KafkaError() | LaneFault():
            pass
        case _ if isinstance(error, _CONTENTION):
            pass
        case _ if handling(error).cause == "other":
            return Cause("fault", _origin(error), blames=True, remedy=_FAULT_REMEDY)
    # A quota holds requests up, and one that waits too long is given up unanswered.
    if handling(error).cause in ("timeout", "unanswered"):
        return Cause("timeout", "", blames=False, remedy="")
    return None


def _origin(error: BaseException) -> str:
    """The exception and the line that raised it: the same fault again is known by that, and never holds ticket text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}"
    return f"{type(error).__name__}{where}"


class WillNotPass(LaneFault):
    """A piece does not pass for what is in it. The lane tries a smaller one, or waits for a neighbour or a person."""


class Narrowing:
    """What one lane knows of the trouble that it is in. `name`: the partition's, for messages."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._cause: Cause | None = None
        # The record that fails alone, and how often it did.
        self._alone: int | None = None
        self._alone_failures = 0
        # Where the first piece that failed ended: behind it the trouble is over.
        self._trouble_end = 0
        self._has_passed = False
        self._is_environment = False

    @property
    def is_under_way(self) -> bool:
        """Whether the lane gets closer to what will not pass with each try, and need not wait long before the next."""
        return self._cause is not None and not self._is_suspect and not self._is_environment

    @property
    def has_suspect(self) -> bool:
        """Whether a record failed alone, and is to be judged by its neighbour."""
        return self._is_suspect

    def most(self, size: int) -> int:
        """How many records to take next, where the pace says `size`."""
        if self._is_suspect:
            return PAIR
        return size if self._alone is None else 1

    def aside(self, records: Sequence[ConsumerRecord]) -> Mapping[int, str]:
        """Which of the records to set aside, and why."""
        cause = self._cause
        if cause is None or not self._is_suspect or records[0].offset != self._alone:
            return {}
        if len(records) < PAIR and not self._has_passed:
            return {}  # 4
        said = f"{cause.name} ({cause.detail})" if cause.detail else cause.name
        return {records[0].offset: f"{said}: it fails alone, and others pass"}

    def passed(self, records: Sequence[ConsumerRecord], aside: Mapping[int, str]) -> None:
        """After a piece was committed, with some of it set aside."""
        for offset, reason in aside.items():
            log.error("%s:%d is set aside for a person (%s)", self._name, offset, reason)
        if records[-1].offset + 1 >= self._trouble_end:
            self._forget()
            return
        # What was set aside is no witness against the next.
        self._has_passed = len(records) > len(aside)
        self._alone, self._alone_failures, self._is_environment = None, 0, False

    def failed(
        self, records: Sequence[ConsumerRecord], aside: Mapping[int, str], cause: Cause, error: Exception
    ) -> WillNotPass | None:
        """After a piece failed for `cause`; what to raise in the place of `error`, if anything. Nothing of it was
        committed."""
        if not cause.blames:
            return None
        said = cause.detail or repr(error)
        if cause != self._cause:
            self._forget()
            if cause.detail:
                trace = "".join(traceback.format_tb(error.__traceback__))
                log.error("%s: %s\n%s", self._name, cause.detail, trace)
            self._cause, self._trouble_end = cause, records[-1].offset + 1
        elif aside:
            self._is_environment = True  # 3
            # What is mended around them shows in the first passing; if that does not, its neighbour is asked again.
            self._alone_failures = 0
        if not aside and len(records) == 1:
            first = records[0].offset
            self._alone_failures = self._alone_failures + 1 if first == self._alone else 1
            self._alone = first
        if self._is_environment:
            return self._refusal(cause, said)
        if self._is_suspect:
            return self._waits(cause, said)
        # In the place of an exception of unknown text, which may be a ticket's.
        return WillNotPass(said, Handling(Action.REOPEN, cause.name)) if cause.detail else None

    @property
    def _is_suspect(self) -> bool:
        return self._alone_failures >= ALONE_BEFORE_SUSPECT

    def _forget(self) -> None:
        self._cause, self._alone, self._alone_failures, self._trouble_end = None, None, 0, 0
        self._has_passed = self._is_environment = False

    def _waits(self, cause: Cause, said: str) -> WillNotPass:
        what = f"the record at {self._name}:{self._alone} fails alone ({said})"
        remedy = f"it is set aside once a record behind it passes; else: {cause.remedy}"
        return WillNotPass(what, Handling(Action.REOPEN, cause.name, remedy))

    def _refusal(self, cause: Cause, said: str) -> WillNotPass:
        what = f"the record at {self._name}:{self._alone} and its neighbour both fail alone ({said})"
        return WillNotPass(what, Handling(Action.REFUSE, cause.name, cause.remedy))
