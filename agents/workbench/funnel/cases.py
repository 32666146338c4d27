"""A file of cases for the funnel, one JSON object a line, and what comes of each.

Promise: the cases of one file share one provider, in their order, so that a repeated key meets what stands under it;
a confirmation allows one effect of the file; and lines with the same tenant and case id are attempts at one case.
Nothing outside the process is touched.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from ticketgate.agents.effects.adapters.memory import ExecuteFault, MemoryProvider, ReadBackFault
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Authority, EvidenceUnreadable, World, WritableMoment
from ticketgate.agents.funnel.repair import Attempt
from ticketgate.agents.workbench.funnel.execute import Run
from ticketgate.agents.workbench.funnel.process import Outcome, process
from ticketgate.agents.workbench.funnel.watch import Trace, WatchedPort
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.json_text import json_lines
from ticketgate.codecs.records.proposal import Proposal, Scalar, read_request
from ticketgate.codecs.records.receipt import EffectStatus, StopReason, verdict_json
from ticketgate.codecs.values.strict import JsonValue, Malformed, encode
from ticketgate.codecs.verdict import Stage, Status

_STRICT = ConfigDict(extra="forbid")
_Unreadable = Annotated[str, Field(pattern="^(authority|world):")]


class FunnelCaseError(ValueError):
    """The file cannot be used: where, what, and the way out, in one line. A person mends it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What the effect's calls meet, in order, and what the second look finds if not the same as the first.

    authority_before_effect: None if nothing is known of the actor then. at_before_effect: the moment judged for.
    unreadable: `authority:why` or `world:why`, what the look-up answers with and is no evidence; as records have it.
    idempotent_by_key: whether the provider sees to it that a key takes effect once; where not, nothing is sent twice.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    execute: tuple[ExecuteFault, ...] = ()
    read_back: tuple[ReadBackFault, ...] = ()
    idempotent_by_key: bool = True
    authority_before_effect: Authority | Literal["as before"] | None = "as before"
    world_before_effect: World | None = None
    at_before_effect: WritableMoment | None = None
    unreadable: tuple[_Unreadable, ...] = ()
    unreadable_before_effect: tuple[_Unreadable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What must come of a case. What is None is not looked at; reasons are compared whole."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    status: Status
    stage: Stage
    reasons: tuple[str, ...] | None = None
    receipt: EffectStatus | None = None
    provider_id: str | None = None
    stop_reason: StopReason | None = None
    committed: Annotated[int, Field(ge=0)] | None = None

    def unmet(self, observed: Mapping[str, object]) -> list[str]:
        """How what was observed, by the names of the fields, is not what is expected; a line each, none if it is."""
        return [
            f"{name}: expected {_told(wanted)}, got {_told(got)}"
            for name, got in observed.items()
            if (wanted := getattr(self, name)) is not None and wanted != got
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What is true of a request, as a person found it: what the failure profile measures by. None: not known.

    admissible: the tools that would be right, none of them where the proposer should abstain. fields: true values where
    the request is not their authority, such as interpretations; null where nothing is true, so that any value is
    invented. must_deny: whether policy must deny the effect. cost: of this response, all told, as decimal text in a
    unit of the file's own.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    admissible: frozenset[str] | None = None
    fields: Mapping[str, Scalar | None] = field(default_factory=dict)
    must_deny: bool | None = None
    cost: Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,12})?$")] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCase:
    """One line. call: the model's text. case_id: the name, unless attempts at one case are written. at: when it is
    judged. expect.committed: effects that stand at the provider after it. A labelled case needs no expectation."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    name: Annotated[str, Field(min_length=1)]
    at: WritableMoment
    request: dict[str, Any]
    authority: Authority | None
    call: str
    expect: Expectation | None = None
    label: Label | None = None
    world: World = field(default_factory=World)
    case_id: str | None = None
    attempt: Annotated[int, Field(ge=1)] = 1
    tenant: str = ""
    faults: Faults = Faults()


@dataclass(frozen=True, slots=True)
class ReadCase:
    """A case that can be run."""

    written: WrittenCase
    proposal: Proposal


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of a case. trace: what passed between it and the provider. unmet: how it is not what was expected."""

    name: str
    outcome: Outcome
    trace: Trace
    unmet: tuple[str, ...]

    def to_json(self) -> dict[str, JsonValue]:
        """The result for programs."""
        outcome = self.outcome
        return {
            "name": self.name,
            "verdict": verdict_json(outcome.verdict),
            "decision": outcome.decision.to_json(),
            "receipt": None if outcome.effect is None else outcome.effect.to_json(),
            "repair": None if outcome.repair is None else outcome.repair.to_json(),
            "as_expected": not self.unmet,
            "unmet": list(self.unmet),
        }


def read_cases(text: str, *, source: str) -> tuple[ReadCase, ...]:
    """The cases that a text writes, in order. Raises FunnelCaseError."""
    cases = [_read_case(value, where) for value, where in written_lines(text, source)]
    if not cases:
        raise FunnelCaseError(
            f"{source}: no cases; write one JSON object a line, as `ticketgate manual funnel` shows"
        )
    return tuple(cases)


async def run_cases(
    cases: tuple[ReadCase, ...], *, catalogue: Catalogue, provider: MemoryProvider
) -> tuple[CaseResult, ...]:
    """Run the cases in order on one provider."""
    results: list[CaseResult] = []
    run = Run()
    committed: dict[tuple[str, str, int], list[Attempt]] = {}
    for case in cases:
        written, proposal = case.written, case.proposal
        provider.fail_next(execute=written.faults.execute, read_back=written.faults.read_back)
        provider.declare(is_idempotent_by_key=written.faults.idempotent_by_key)
        before = committed.setdefault((proposal.tenant, proposal.case_id, proposal.request.version), [])
        port = WatchedPort(provider)
        outcome = await process(
            proposal,
            catalogue=catalogue,
            lookup=_WrittenLookup(written),
            port=port,
            at=written.at,
            again_at=written.faults.at_before_effect,
            committed=tuple(before),
            run=run,
        )
        permitted = () if outcome.repair is None else outcome.repair.permitted
        before.append(Attempt(proposal.attempt, proposal.call, outcome.verdict, permitted))
        unmet = () if written.expect is None else tuple(_unmet(written.expect, outcome, provider))
        results.append(CaseResult(written.name, outcome, port.trace(), unmet))
    return tuple(results)


@dataclass(slots=True)
class _WrittenLookup:
    """Says what the case says: first what stood when it was judged, then what stands before the effect."""

    case: WrittenCase
    asked: dict[str, int] = field(default_factory=lambda: {"authority": 0, "world": 0})

    async def authority(self, proposal: Proposal) -> Authority | None:
        later = self.case.faults.authority_before_effect
        is_again = self._is_again("authority")
        return self.case.authority if isinstance(later, str) or not is_again else later

    async def world(self, proposal: Proposal) -> World:
        later = self.case.faults.world_before_effect
        return later if self._is_again("world") and later is not None else self.case.world

    def _is_again(self, what: str) -> bool:
        """Whether it was asked before. Raises EvidenceUnreadable where the case says so."""
        self.asked[what] += 1
        is_again = self.asked[what] > 1
        faults = self.case.faults
        for each in faults.unreadable_before_effect if is_again else faults.unreadable:
            if each.startswith(f"{what}:"):
                raise EvidenceUnreadable(each.removeprefix(f"{what}:"))
        return is_again


@cache
def _check() -> TypeAdapter[WrittenCase]:
    return TypeAdapter(WrittenCase)


def written_lines(text: str, source: str) -> Iterator[tuple[JsonValue, str]]:
    """Each line's value with where it stands. Raises FunnelCaseError."""
    try:
        for number, value in json_lines(text.encode("utf-8", "surrogatepass"), source=source):
            yield value, f"{source}:{number}"
    except FileFault as err:
        raise FunnelCaseError(str(err)) from err


def _read_case(value: JsonValue, where: str) -> ReadCase:
    try:
        written = _check().validate_json(encode(value), strict=True)
    except ValidationError as err:
        first = err.errors(include_url=False, include_input=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "the case"
        is_unknown = first["type"] == "unexpected_keyword_argument"
        what = "unknown field" if is_unknown else first["msg"].lower()
        raise FunnelCaseError(f"{where}: {key}: {what}; {_known(first['loc'])}") from None
    if written.expect is None and written.label is None:
        raise FunnelCaseError(
            f"{where}: neither expect nor label; say what must come of the case, or what is true"
        )
    request = read_request(written.request)
    if isinstance(request, Malformed):
        raise FunnelCaseError(f"{where}: request: {request.reason}")
    proposal = Proposal(
        case_id=written.case_id or written.name,
        attempt=written.attempt,
        tenant=written.tenant,
        call=written.call,
        request=request,
    )
    return ReadCase(written, proposal)


def _known(place: Sequence[int | str]) -> str:
    """What may stand in the part of a case that a fault lies in."""
    parts: Mapping[int | str, type] = {"expect": Expectation, "faults": Faults, "label": Label}
    kind = parts.get(place[0]) if len(place) > 1 else None
    names = ", ".join(each.name for each in fields(kind or WrittenCase))
    return f"{place[0] if kind else 'a case'} has {names}"


def _unmet(expected: Expectation, outcome: Outcome, provider: MemoryProvider) -> list[str]:
    effect, repair, verdict = outcome.effect, outcome.repair, outcome.verdict
    observed: Mapping[str, object] = {
        "status": verdict.status,
        "stage": verdict.stage,
        "reasons": verdict.reasons,
        "receipt": None if effect is None else effect.status,
        "provider_id": None if effect is None else effect.provider_id,
        "stop_reason": None if repair is None else repair.stop_reason,
        "committed": provider.committed,
    }
    return expected.unmet(observed)


def _told(value: object) -> str:
    return ", ".join(value) or "none" if isinstance(value, tuple) else str(value)
