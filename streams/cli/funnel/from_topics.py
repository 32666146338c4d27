"""`ticketgate funnel --profile --from-topics`: the profile of what the workers have decided and carried out."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from ticketgate.streams.cli.output import quiet_libraries, say
from ticketgate.streams.cli.unreadable import Gaps
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.agents.funnel.catalogue import Catalogue
    from ticketgate.agents.workbench.funnel.profiling import Profiled
    from ticketgate.codecs.records.case_decision import CaseDecision
    from ticketgate.codecs.records.receipt import EffectReceipt
    from ticketgate.streams.config.settings import Settings

# So many of what could not become a case are named; the others are counted.
MOST_NAMED = 10


async def profile_topics(catalogue: Catalogue, settings: Settings) -> Profiled:
    """The profile of all committed records. What is no case is told on stderr. Raises CommandError and Unreachable."""
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.workbench.funnel.recorded import profile_records

    quiet_libraries()
    decisions, receipts = await _records(settings)
    profiled, errors = await profile_records(decisions, receipts, catalogue=catalogue)
    for error in errors[:MOST_NAMED]:
        say(f"ticketgate: {error}")
    if len(errors) > MOST_NAMED:
        say(f"ticketgate: {len(errors) - MOST_NAMED} more are no cases; `ticketgate case` names them")
    if profiled is None:
        raise CommandError(
            "the topics hold no decision on a proposal that could be a case; nothing to profile"
        )
    return profiled


async def _records(settings: Settings) -> tuple[list[CaseDecision], list[EffectReceipt]]:
    from ticketgate.codecs.records.case_decision import CaseDecision, read_dispatched
    from ticketgate.codecs.records.receipt import EffectReceipt, decode_receipt
    from ticketgate.codecs.values.malformed import Malformed
    from ticketgate.codecs.values.strict import decode
    from ticketgate.streams.kafka.connection import connection_of
    from ticketgate.streams.kafka.reading.topic_reading import read_whole
    from ticketgate.streams.lane.taking.records import output_topics

    topics = output_topics(settings)
    decisions: list[CaseDecision] = []
    receipts: list[EffectReceipt] = []
    most = settings.max_record_bytes * 2
    named = (topics.dispatch, topics.repairs, topics.review, topics.receipts)
    async with aclosing(read_whole(connection_of(settings), named, pass_over=Gaps())) as records:
        async for record in records:
            if record.value is None:
                continue
            if record.topic == topics.receipts:
                receipt = decode_receipt(record.value, max_bytes=most)
                if isinstance(receipt, EffectReceipt):
                    receipts.append(receipt)
                continue
            value = decode(record.value, max_bytes=most)
            decision = value if isinstance(value, Malformed) else read_dispatched(value)
            if isinstance(decision, CaseDecision):
                decisions.append(decision)
    # As they were read, and so as their keys were taken.
    decisions.sort(key=lambda each: (each.coordinate.partition, each.coordinate.offset))
    return decisions, receipts
