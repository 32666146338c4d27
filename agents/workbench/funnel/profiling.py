"""From a file of labelled cases to its failure profile: run, reconcile what stayed unknown, observe.

Promise: what becomes of an unknown outcome is found out after all cases were run, so that it changes none of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.case import FunnelCase
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import World
from ticketgate.agents.workbench.funnel.cases import CaseResult, FunnelCaseError, Label, ReadCase, run_cases
from ticketgate.agents.workbench.funnel.observation import Observation
from ticketgate.agents.workbench.funnel.profile import Profile, profile
from ticketgate.agents.workbench.funnel.unknowns import unknown_for_s
from ticketgate.agents.workbench.funnel.watch import WatchedPort
from ticketgate.codecs.verdict import Status


@dataclass(frozen=True, slots=True)
class Profiled:
    """The cases' results and observations in their order, and what they say together."""

    results: tuple[CaseResult, ...]
    observations: tuple[Observation, ...]
    profile: Profile


async def profile_cases(
    cases: tuple[ReadCase, ...], *, catalogue: Catalogue, provider: MemoryProvider
) -> Profiled:
    """Run the cases and profile them. Raises FunnelCaseError for a label that the catalogue has no place for."""
    for case in cases:
        _check_label(case, catalogue)
    results = await run_cases(cases, catalogue=catalogue, provider=provider)
    observations = tuple(
        [
            await _observe(case, result, catalogue, provider)
            for case, result in zip(cases, results, strict=True)
        ]
    )
    return Profiled(results, observations, profile(observations))


async def _observe(
    case: ReadCase, result: CaseResult, catalogue: Catalogue, provider: MemoryProvider
) -> Observation:
    written, trace, verdict = case.written, result.trace, result.outcome.verdict
    unknown_s: float | None = None
    if verdict.status is Status.UNKNOWN and trace.is_accepted:
        # What the case had not yet met, the reconciler meets.
        provider.fail_next(
            execute=written.faults.execute[len(trace.answers) :],
            read_back=written.faults.read_back[len(trace.reads) :],
        )
        port = WatchedPort(provider)
        unknown_s = await unknown_for_s(trace, verdict, port, states=catalogue.states)
        trace = replace(trace, created=trace.created + port.trace().created)
    return Observation(
        case=_first_look(case, catalogue),
        verdict=verdict,
        trace=trace,
        unknown_s=unknown_s,
        label=written.label or Label(),
    )


def _first_look(case: ReadCase, catalogue: Catalogue) -> FunnelCase:
    written, unreadable = case.written, case.written.faults.unreadable
    return FunnelCase(
        case.proposal,
        catalogue,
        None if any(each.startswith("authority:") for each in unreadable) else written.authority,
        World() if any(each.startswith("world:") for each in unreadable) else written.world,
        written.at,
        unreadable,
    )


def _check_label(case: ReadCase, catalogue: Catalogue) -> None:
    label, name = case.written.label or Label(), case.written.name
    unknown: Sequence[str] = sorted((label.admissible or frozenset()) - catalogue.tools.keys())
    if unknown:
        known = ", ".join(catalogue.tools)
        raise FunnelCaseError(
            f"{name}: label.admissible: no tool {unknown[0]!r} in catalogue {catalogue.name}; the tools are {known}"
        )
    specs = [(field, spec) for tool in catalogue.tools.values() for field, spec in tool.fields.items()]
    for field, value in label.fields.items():
        readers = [spec for known_field, spec in specs if known_field == field]
        if not readers:
            raise FunnelCaseError(f"{name}: label.fields: no tool of {catalogue.name} has a field {field!r}")
        for spec in readers:
            try:
                if value is not None:
                    spec.read(value)
            except ValueError as err:
                raise FunnelCaseError(f"{name}: label.fields.{field}: {err}") from None
