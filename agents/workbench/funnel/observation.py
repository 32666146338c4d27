"""One response of a model with what came of it, and what can be said of it stage by stage.

Promise: each thing follows from the case, its end and its label alone. What a stage says of a response does not hang on
what a later one says.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from ticketgate.agents.deciding.gate import run_gates
from ticketgate.agents.funnel.case import Abstention, Call, FunnelCase, Unreadable
from ticketgate.agents.funnel.gates.order import FUNNEL_GATES
from ticketgate.agents.funnel.values import Value
from ticketgate.agents.workbench.funnel.cases import Label
from ticketgate.agents.workbench.funnel.watch import Trace
from ticketgate.codecs.verdict import Stage, Status, Verdict

_ORDER: Final = {gate.stage: place for place, gate in enumerate(FUNNEL_GATES)}


@dataclass(frozen=True, kw_only=True)  # no slots: cached_property keeps its results in __dict__
class Observation:
    """One response of a model, and what came of it.

    case: with the evidence as it was first looked up. verdict: how the attempt ended. trace: what passed between it and
    the provider, up to the end of reconciling. unknown_s: how long its outcome was unknown, None if it was not or is
    held.
    """

    case: FunnelCase
    verdict: Verdict
    trace: Trace = field(default_factory=Trace)
    unknown_s: float | None = None
    label: Label = field(default_factory=Label)

    @cached_property
    def first(self) -> Verdict | None:
        """The verdict of the gate that stopped the call at the first look; None if none did."""
        return run_gates(self.case, FUNNEL_GATES)

    @property
    def first_stop(self) -> Stage | None:
        """The gate that stopped the call at the first look."""
        return None if self.first is None else self.first.stage

    @property
    def is_looked_at_again(self) -> bool:
        """Whether an effect was accepted, so that the gates judged once more before it."""
        return self.first is None and self.case.tool.is_effect and self.is_decided_by_gates

    @property
    def is_decided_by_gates(self) -> bool:
        """Whether no earlier attempt at the case decided it: then the gates' acceptance stands."""
        return self.trace.command is not None or self.stop is not None

    @property
    def later_stop(self) -> Stage | None:
        """The gate that stopped the effect at a later look."""
        return None if self.stop is None else self.stop.stage

    @cached_property
    def stop(self) -> Verdict | None:
        """The verdict of the gate that stopped the call, at the first look or the second; None if none did.

        Not how the attempt ended: a repair that was stopped bears the stage of an attempt before.
        """
        if self.first is not None:
            return self.first
        is_second_look = (
            self.trace.command is None
            and self.verdict.status is not Status.ACCEPT
            and self.verdict.stage in (Stage.WORLD_STATE, Stage.AUTHORITY)
        )
        return self.verdict if is_second_look else None

    def passed(self, stage: Stage) -> bool:
        """Whether the call went beyond a gate."""
        return self.stop is None or _ORDER[self.stop.stage] > _ORDER[stage]

    @property
    def chosen(self) -> str | None:
        """The tool that was called, offered or not; None where there was no call."""
        envelope = self.case.envelope
        return envelope.tool if isinstance(envelope, Call) else None

    @property
    def has_abstained(self) -> bool:
        """Whether the proposer said that it makes no call."""
        return isinstance(self.case.envelope, Abstention)

    @property
    def is_conforming(self) -> bool:
        """Whether the response is a call as its tool's fields have it, or an abstention."""
        return self.has_abstained or self.passed(Stage.SCHEMA)

    @property
    def is_right_choice(self) -> bool:
        """Whether the called tool is one that the label admits."""
        return self.chosen is not None and self.chosen in (self.label.admissible or ())

    @property
    def is_denied(self) -> bool:
        """Whether policy stopped it, and nothing was sent."""
        return self.stop is not None and self.stop.status is Status.DENY and not self.trace.answers

    @property
    def is_unknown(self) -> bool:
        """Whether nobody could say, when the attempt ended, if its effect stands."""
        return self.verdict.status is Status.UNKNOWN

    @property
    def is_verified(self) -> bool:
        """Whether its effect stands, as read back."""
        return self.trace.is_accepted and self.verdict.status is Status.ACCEPT

    @cached_property
    def fidelity(self) -> Mapping[str, bool]:
        """By field whether the call says what is true; empty unless the call conforms and is of the right operation.

        A field is compared where its truth is known: by the label, else by the request unless it is an interpretation.
        Not compared is what neither has, and a control that the call leaves to the application.
        """
        if self.has_abstained or not self.passed(Stage.TOOL_SELECTION):
            return {}
        compared: dict[str, bool] = {}
        for name, spec in self.case.tool.fields.items():
            proposed = self.case.arguments.get(name)
            is_left = proposed is None and spec.role == "control"
            if name in self.label.fields:
                written = self.label.fields[name]
                true: Value | None = None if written is None else spec.read(written)
            elif spec.role == "interpretation" or isinstance(bound := self.case.bound[name], Unreadable):
                continue
            else:
                true = bound
            if not is_left and not (proposed is None and true is None):
                compared[name] = proposed == true
        if self.case.tool.is_effect:
            # A condition that the tool has no field for is dropped, whoever's fault that is.
            compared |= dict.fromkeys(
                self.case.request.conditions.keys() - self.case.tool.fields.keys(), False
            )
        return compared
