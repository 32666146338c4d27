"""`ticketgate worker` with a scorer that misbehaves, for the words that it finds in a ticket.

RAISE raises, NONSENSE gives answers that are none, HANG never returns, FLAKY raises the first time in a process, SLOW
takes SLOW_S for each, LONG takes LONG_S. SEGFAULT, EXIT and OOM end the process without a word, as a fault in native
code, a library that gives up and a kernel short of memory do; UNREADABLE ends it while the ticket is read, before
anybody is asked, and UNPACKABLE while a batch compressed by zstd is unpacked.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from ticketgate.agents.scoring.scorer import Scores
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.streams.cli import main
from ticketgate.streams.kafka import unpacking
from ticketgate.streams.kafka.reading import rawbatches
from ticketgate.streams.lane.taking import intake
from ticketgate.streams.process import preflight

SLOW_S = 0.25
LONG_S = 10
log = logging.getLogger(__name__)


class FaultyScorer:
    """Says yes to review and billing and no to all else, unless a ticket asks for a fault."""

    model = ModelRef(id="faulty", hash="0")

    def __init__(self) -> None:
        self.has_raised = False

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        texts = [str(ticket.state) for ticket in tickets]
        end_for(" ".join(texts))
        if any("HANG" in text for text in texts):
            log.warning("HANG under way")
            while True:
                time.sleep(1)
        if any("LONG" in text for text in texts):
            time.sleep(LONG_S)
        if any("FLAKY" in text for text in texts) and not self.has_raised:
            self.has_raised = True
            raise RuntimeError("once")
        if any("RAISE" in text for text in texts):
            raise RuntimeError("always")
        time.sleep(SLOW_S * sum("SLOW" in text for text in texts))
        return [Scores(self.answers(text, questions)) for text in texts]

    def answers(self, text: str, questions: Mapping[str, Question]) -> Mapping[str, object]:
        if "NONSENSE" in text:
            return {question: {"type": "noul", "noul": float("nan")} for question in questions}
        yes = {"review", "billing"}
        return {question: {"type": "noul", "noul": 0.9 if question in yes else 0.1} for question in questions}


def end_for(text: str) -> None:
    if "SEGFAULT" in text:
        ctypes.string_at(0)
    if "EXIT" in text:
        os._exit(3)
    if "OOM" in text:
        os.kill(os.getpid(), signal.SIGKILL)


decode_ticket: Callable[..., Ticket | Malformed] = intake.__dict__["decode_ticket"]


def decode(value: bytes, *, max_bytes: int) -> Ticket | Malformed:
    if b"UNREADABLE" in value:
        os.kill(os.getpid(), signal.SIGSEGV)
    return decode_ticket(value, max_bytes=max_bytes)


def unpack(data: bytes) -> bytes:
    found = unpacking.zstd_decode(data)
    if b"UNPACKABLE" in found:
        os.kill(os.getpid(), signal.SIGSEGV)
    return found


for module in unpacking._CURRENT:
    module.__dict__["zstd_decode"] = unpack
rawbatches.__dict__["_CODECS"][4] = unpack

# Where the worker looks them up.
preflight.__dict__["require_scorer"] = lambda settings: FaultyScorer()
intake.__dict__["decode_ticket"] = decode

if __name__ == "__main__":
    main()
