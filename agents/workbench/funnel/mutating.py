"""A catalogue's good cases, mutated and run: what passes though it must not, in a report bound to the catalogue.

Promise: every mutation runs on a provider of its own, by the worker's gates and rules. A tool without a good case is
named, and not passed over.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from importlib import metadata

from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.file.mutation_report import MutationReport, hash_of
from ticketgate.agents.workbench.funnel.cases import CaseResult, ReadCase, read_cases, run_cases
from ticketgate.agents.workbench.funnel.mutations import Mutation, mutations
from ticketgate.codecs.verdict import Status


async def mutate(text: str, *, source: str, catalogue: Catalogue) -> MutationReport:
    """The report on the cases of a text. Those that do not end accepted are no good cases, and are passed over. Raises
    FunnelCaseError."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in catalogue.tools}
    survivors: list[str] = []
    untried: list[str] = []
    for line, case in zip(_lines(text), read_cases(text, source=source), strict=True):
        tool = await _tool_of(case, catalogue)
        if tool is None:
            continue
        for each in mutations(json.loads(line), catalogue, tool, case=case.written.name):
            counts[tool][each.kind] += 1
            if await _passes(each, catalogue):
                survivors.append(each.name)
    untried += [
        f"{name}: no case of it is accepted; write a good one" for name, kinds in counts.items() if not kinds
    ]
    return MutationReport(
        catalogue=catalogue.name,
        version=catalogue.version,
        catalogue_hash=hash_of(catalogue),
        cases_hash=hashlib.sha256(text.encode()).hexdigest(),
        tools={name: dict(sorted(kinds.items())) for name, kinds in counts.items()},
        survivors=tuple(survivors),
        untried=tuple(untried),
        made_by=f"ticketgate {metadata.version('ticketgate')}",
    )


def _lines(text: str) -> Iterator[str]:
    yield from (line for line in text.split("\n") if line.strip())


async def _run(lines: tuple[ReadCase, ...], catalogue: Catalogue) -> tuple[tuple[CaseResult, ...], int]:
    provider = MemoryProvider(states=catalogue.states)
    return await run_cases(lines, catalogue=catalogue, provider=provider), provider.committed


async def _tool_of(case: ReadCase, catalogue: Catalogue) -> str | None:
    """The tool that a good case calls; None if the case is none: it is refused, repairs another, or has faults."""
    written = case.written
    if written.attempt > 1 or written.faults.execute or written.faults.read_back:
        return None
    ((result,), _) = await _run((case,), catalogue)
    outcome = result.outcome
    if outcome.verdict.status is not Status.ACCEPT or outcome.decision.tool is None:
        return None
    return outcome.decision.tool


async def _passes(mutation: Mutation, catalogue: Catalogue) -> bool:
    """Whether a mutation comes to what it must not."""
    text = "\n".join(json.dumps(line) for line in mutation.lines)
    results, committed = await _run(read_cases(text, source=mutation.name), catalogue)
    is_accepted = results[-1].outcome.verdict.status is Status.ACCEPT
    match mutation.must:
        case "never":
            return is_accepted or committed > mutation.before
        case "open":
            return is_accepted or committed > 1
        case "once":
            return committed > 1


__all__ = ["mutate"]
