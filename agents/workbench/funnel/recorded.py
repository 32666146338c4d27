"""The failure profile of what a worker has written: the records of its topics as cases, run and observed as cases are.

Promise: the same denominators as those of the same cases in a file, for they are made into such a file first; what
cannot become a case is told of and counted apart, and is in no denominator. No record has a label, so what a label
would tell (which tool was right, which effect had to be denied) is not known.
"""

from __future__ import annotations

from collections.abc import Sequence

from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.workbench.funnel.cases import read_cases
from ticketgate.agents.workbench.funnel.export import CaseExportError, export_cases
from ticketgate.agents.workbench.funnel.profiling import Profiled, profile_cases
from ticketgate.codecs.records.case_decision import CaseDecision
from ticketgate.codecs.records.receipt import EffectReceipt
from ticketgate.codecs.values.strict import encode


async def profile_records(
    decisions: Sequence[CaseDecision], receipts: Sequence[EffectReceipt], *, catalogue: Catalogue
) -> tuple[Profiled | None, list[CaseExportError]]:
    """The profile, None where no record could become a case; and what could not. The records in their topics' order."""
    lines, errors = export_cases(decisions, receipts)
    if not lines:
        return None, errors
    cases = read_cases("\n".join(encode(line).decode() for line in lines), source="the topics")
    profiled = await profile_cases(
        cases, catalogue=catalogue, provider=MemoryProvider(states=catalogue.states)
    )
    return profiled, errors
