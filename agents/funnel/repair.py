"""What a proposer may mend, how often, and when that ends.

Promise: a repair belongs to the layer that failed, and changes nothing else. What is left of a budget follows from the
committed attempts alone, so that a restart forgets none. A change outside the permitted fields, a call that was made
before, or the budget's end goes to review with its stop reason.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ticketgate.agents.funnel.call_text import read_text
from ticketgate.agents.funnel.case import Call, FunnelCase, Unreadable, read_envelope
from ticketgate.agents.funnel.provider_calls import as_envelope
from ticketgate.agents.funnel.values import plain, to_wire
from ticketgate.codecs.records.receipt import RepairReceipt, StopReason
from ticketgate.codecs.values.strict import JsonValue, Malformed, canonical
from ticketgate.codecs.verdict import Stage, Status, Verdict

# Repairs that a case has at each stage; a stage that is not named has none: a denial is answered by an authorised
# actor, an unknown outcome by reading back.
BUDGETS: Final[Mapping[Stage, int]] = {
    Stage.PARSE: 1,
    Stage.ENVELOPE: 1,
    Stage.TOOL_CATALOGUE: 1,
    Stage.SCHEMA: 1,
    Stage.SEMANTICS: 1,
    # Of the requester, and not of the proposer: the one clarifying question.
    Stage.TOOL_SELECTION: 1,
}

# Who says what is right, where a stage has found a fault.
SOURCES: Final[Mapping[Stage, str]] = {
    Stage.PARSE: "json",
    Stage.ENVELOPE: "envelope",
    Stage.TOOL_CATALOGUE: "catalogue",
    Stage.SCHEMA: "catalogue",
    Stage.SEMANTICS: "request",
    Stage.TOOL_SELECTION: "requester",
}

# What a repair may change where the requester is asked what they mean: the request, by its next version.
CLARIFICATION: Final = "request"
CLARIFY_NEXT_STEP = (
    "the requester is asked which operation is meant; their answer is the request's next version"
)
STOPPED_NEXT_STEP = "a person decides; the proposer is not asked again"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a case: its number, the call as it came, what was said of it, which fields it was let change.

    call: None where it is not kept, as nothing is compared with an attempt that was not repaired.
    """

    number: int
    call: str | None
    verdict: Verdict
    permitted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Followed:
    """The verdict that stands once the attempts before are regarded, and what is told of the repair, if it is one."""

    verdict: Verdict
    receipt: RepairReceipt | None = None


def remaining(stage: Stage, committed: Sequence[Attempt]) -> int:
    """How many repairs a case has left at a stage, before another is granted."""
    used = sum(each.verdict.status is Status.REPAIR and each.verdict.stage is stage for each in committed)
    return max(0, BUDGETS.get(stage, 0) - used)


def follow(case: FunnelCase, verdict: Verdict | None, committed: Sequence[Attempt]) -> Followed | None:
    """The repair that an attempt is, or asks for. verdict: of the gates, None if it passed them all.

    None: a first attempt that asks for no repair. `committed` are the other attempts at this version of the request,
    by number. One that comes after a higher number is stale: what it would mend has been answered since.
    """
    before = committed[-1] if committed else None
    if before is None:
        return _asked(case, verdict, committed) if _is_repair(verdict) and verdict is not None else None
    if verdict is not None and _is_repeated(verdict, committed, case):
        return _clarified(case, verdict, committed)
    stop = _stop(case, before, committed)
    if stop is not None:
        reason, details = stop
        verdict = Verdict(Status.REVIEW, before.verdict.stage, (str(reason), *details), STOPPED_NEXT_STEP)
        return Followed(verdict, _receipt(case, before.verdict, before.permitted, committed, reason))
    if verdict is None or verdict.status is Status.ACCEPT:
        passed = verdict or Verdict(Status.ACCEPT, Stage.AUTHORITY, (), "the call may be carried out")
        return Followed(
            passed, _receipt(case, before.verdict, before.permitted, committed, StopReason.REPAIRED)
        )
    if _is_repair(verdict):
        return _asked(case, verdict, committed)
    return Followed(verdict, _receipt(case, verdict, (), committed, StopReason.NOT_REPAIRABLE))


def _is_disagreement(verdict: Verdict) -> bool:
    """Whether a proposer chose a tool that is not offered, or one of another operation."""
    return verdict.stage in (Stage.TOOL_SELECTION, Stage.TOOL_CATALOGUE)


def _is_repeated(verdict: Verdict, committed: Sequence[Attempt], case: FunnelCase) -> bool:
    """Whether an attempt chooses wrongly right after another one did, and the requester has not been asked yet."""
    before = committed[-1]
    return (
        _is_disagreement(verdict)
        and _is_disagreement(before.verdict)
        and before.number < case.proposal.attempt
        and all(each.permitted != (CLARIFICATION,) for each in committed)
    )


def _clarified(case: FunnelCase, verdict: Verdict, committed: Sequence[Attempt]) -> Followed:
    """Choosing again did not help, so it is the requester who is asked, once; the answer is a new version of the
    request, and the case begins anew with it. Nothing of the call may change meanwhile."""
    serving = sorted({tool.serves for tool in case.compiled.tools.values()})
    question = f"clarify:requested:{plain(case.request.operation)}:offered={','.join(serving) or 'none'}"
    asked = Verdict(Status.REPAIR, Stage.TOOL_SELECTION, (question, *verdict.reasons), CLARIFY_NEXT_STEP)
    receipt = _receipt(case, asked, (CLARIFICATION,), committed, None)
    return Followed(asked, replace(receipt, remaining=0))


def permitted_fields(verdict: Verdict) -> tuple[str, ...]:
    """Which parts of the call a repair may change: argument names, or `serialisation`, `envelope`, `tool`."""
    match verdict.stage:
        case Stage.PARSE:
            return ("serialisation",)
        case Stage.ENVELOPE:
            return ("envelope",)
        case Stage.TOOL_CATALOGUE:
            return ("tool", "arguments")
        case Stage.SCHEMA:
            # An extra field's name is the model's: whatever it holds must not name another field.
            return tuple(
                dict.fromkeys(
                    reason.removeprefix("extra:") if reason.startswith("extra:") else reason.split(":", 2)[1]
                    for reason in verdict.reasons
                )
            )
        case Stage.SEMANTICS:
            return tuple(dict.fromkeys(reason.split(":", 1)[0] for reason in verdict.reasons))
        case _:
            return ()


def _is_repair(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.status is Status.REPAIR


def _asked(case: FunnelCase, verdict: Verdict, committed: Sequence[Attempt]) -> Followed:
    """A repair granted, or the budget's end."""
    permitted = permitted_fields(verdict)
    if remaining(verdict.stage, committed):
        receipt = _receipt(case, verdict, permitted, committed, None)
        return Followed(verdict, replace(receipt, remaining=receipt.remaining - 1))
    reason = StopReason.BUDGET_EXHAUSTED
    stopped = Verdict(Status.REVIEW, verdict.stage, (str(reason), *verdict.reasons), STOPPED_NEXT_STEP)
    return Followed(stopped, _receipt(case, verdict, permitted, committed, reason))


def _stop(
    case: FunnelCase, before: Attempt, committed: Sequence[Attempt]
) -> tuple[StopReason, tuple[str, ...]] | None:
    """Why this attempt ends the repair whatever the gates say of it."""
    if before.number > case.proposal.attempt:
        return StopReason.NOT_REPAIRABLE, (
            f"attempt_out_of_order:{case.proposal.attempt}:newest={before.number}",
        )
    if before.verdict.status is not Status.REPAIR:
        return StopReason.NOT_REPAIRABLE, (f"attempted_after:{before.verdict.status}",)
    if before.permitted == (CLARIFICATION,):
        # The same version of the request: nobody has answered.
        return StopReason.NOT_REPAIRABLE, ("clarification_not_answered",)
    mine = _content(case, case.proposal.call)
    for each in committed:
        if each.call is not None and _content(case, each.call) == mine:
            return StopReason.OSCILLATION, (f"same_call_as_attempt:{each.number}",)
    outside = tuple(_outside(case, committed))
    return (StopReason.UNPERMITTED_CHANGE, outside) if outside else None


def _outside(case: FunnelCase, committed: Sequence[Attempt]) -> list[str]:
    """What was changed that the latest attempt which could be read did not permit. Sorted.

    Not the latest attempt of all: else text that nobody can read would wash every earlier bound away.
    """
    new = _Parts.of(case, case.proposal.call)
    for each in reversed(committed):
        old = _Parts.of(case, each.call)
        if old.tool is not None or old.arguments is not None:
            break
    else:
        return []
    if (new.tool is None and new.arguments is None) or each.verdict.stage is Stage.TOOL_CATALOGUE:
        return []
    # An envelope's missing parts may come; a part that could be read stays.
    tool = ["tool"] if old.tool is not None and old.tool != new.tool else []
    if old.arguments is None:
        return tool
    changed = [*_changed(old.arguments, new.arguments or {})]
    permitted = set(each.permitted)
    if each.verdict.stage is Stage.SCHEMA:
        # An extra field may always go. Reasons name it shortened, so it is known by the catalogue.
        offered = case.compiled.tools.get(old.tool or "")
        known = offered.fields if offered is not None else {}
        permitted |= {name for name in changed if name not in known and name not in (new.arguments or {})}
    return sorted({*tool, *(name for name in changed if name not in permitted)})


def _changed(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> Iterator[str]:
    for name in {**old, **new}:
        if (name in old) != (name in new) or canonical(old.get(name)) != canonical(new.get(name)):
            yield name


@dataclass(frozen=True, slots=True)
class _Parts:
    """Tool and arguments of a call as far as they can be read; its id is not part of what it means."""

    tool: str | None
    arguments: Mapping[str, JsonValue] | None

    @classmethod
    def of(cls, case: FunnelCase, call: str | None) -> "_Parts":
        document = None if call is None else _document(case, call)
        if not isinstance(document, dict):
            return cls(None, None)
        envelope = as_envelope(document)
        tool, arguments = envelope.get("tool"), envelope.get("arguments")
        return cls(
            tool if isinstance(tool, str) and tool else None,
            arguments if isinstance(arguments, dict) else None,
        )

    def flat(self) -> dict[str, JsonValue]:
        """As receipts tell of them: arguments by name, the tool under `/tool`, which no catalogue calls a field."""
        return {**(self.arguments or {}), **({} if self.tool is None else {"/tool": self.tool})}


def _document(case: FunnelCase, call: str) -> "JsonValue | Malformed":
    """What an attempt says, as the gates read it: bounds hold for a call that is mended as for any other."""
    return read_text(call, may_mend=case.catalogue.mends_syntax).document


def _content(case: FunnelCase, call: str) -> bytes | str:
    """What a call says, its id left out; the text itself where that cannot be read."""
    document = _document(case, call)
    if isinstance(document, Malformed) or not isinstance(document, dict):
        return call
    read = read_envelope(document)
    if isinstance(read, Call):
        return canonical({"tool": read.tool, "arguments": dict(read.arguments)})
    return canonical(document)


def _receipt(
    case: FunnelCase,
    failed: Verdict,
    permitted: tuple[str, ...],
    committed: Sequence[Attempt],
    reason: StopReason | None,
) -> RepairReceipt:
    old = _Parts.of(case, committed[-1].call).flat() if committed else {}
    new = _Parts.of(case, case.proposal.call).flat() if committed else {}
    changed = sorted(_changed(old, new))
    return RepairReceipt(
        stage=str(failed.stage),
        codes=failed.reasons,
        source_of_truth=SOURCES.get(failed.stage, "none"),
        permitted=permitted,
        anchors=_anchors(case, permitted),
        before={name: old[name] for name in changed if name in old},
        after={name: new[name] for name in changed if name in new},
        catalogue=case.compiled.ref,
        attempt=case.proposal.attempt,
        maximum=BUDGETS.get(failed.stage, 0),
        model=case.proposal.model,
        remaining=remaining(failed.stage, committed),
        stop_reason=reason,
    )


def _anchors(case: FunnelCase, permitted: tuple[str, ...]) -> dict[str, JsonValue]:
    """The authoritative values of the permitted fields, where the call names an offered tool."""
    if not isinstance(case.envelope, Call) or case.envelope.tool not in case.compiled.tools:
        return {}
    return {
        name: to_wire(value)
        for name, value in case.bound.items()
        if name in permitted and value is not None and not isinstance(value, Unreadable)
    }
