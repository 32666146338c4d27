"""The four systems, and those of the ablation: how each goes from a request to its end.

Promise: the model, its weights and the dice are the same for all. The dice of an attempt hang on the seed, the request
and the attempt's number, so that two systems differ only by what they do. One request leaves nothing to the next but
masks that were found.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field, replace
from typing import Literal

from ticketgate.agents.deciding.gate import run_gates
from ticketgate.agents.funnel.case import FunnelCase
from ticketgate.agents.funnel.catalogue import Compiled, compile_catalogue
from ticketgate.agents.funnel.gates.order import FUNNEL_GATES
from ticketgate.agents.funnel.judge import Judged
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.verdict import Stage, Status, Verdict

from . import naive
from .automaton import call_automaton
from .decoding import TokenMask, build_mask, decode
from .gated import Gated
from .json_grammar import AnyObject
from .model import ToyModel
from .prompt import Prompt, prompt_for
from .provider import Provider
from .request_set import AT, Asked
from .results import Result, Shaped, Told
from .variants import Variant, payments
from .weights import WEIGHTS, Weights

# The gates on form, but for the abstention, which is no fault of form where the schema has it.
SHAPE_GATES = tuple(
    gate
    for gate in FUNNEL_GATES
    if gate.stage in (Stage.PARSE, Stage.ENVELOPE, Stage.TOOL_CATALOGUE, Stage.SCHEMA)
)
_ENVELOPE = tuple(gate for gate in SHAPE_GATES if gate.stage in (Stage.PARSE, Stage.ENVELOPE))

Constraint = Literal["free", "grammar", "schema"]


@dataclass(slots=True)
class System:
    """One way through. answers: how many at most where the form is at fault, each after the errors of the last.
    has_gates: the funnel judges and carries out, with its own repairs; else naive code does. masks: found so far."""

    name: str
    constraint: Constraint
    variant: Variant = field(default_factory=payments)
    answers: int = 1
    has_gates: bool = False
    has_abstention: bool = False
    weights: Weights = WEIGHTS
    masks: dict[str, TokenMask] = field(default_factory=dict)

    def run(self, asked: Asked, seed: int) -> Result:
        """One request to its end."""
        return asyncio.run(self._run(asked, seed))

    async def _run(self, asked: Asked, seed: int) -> Result:
        compiled = compile_catalogue(self.variant.catalogue, asked.request, asked.world[0].facts)
        prompt = prompt_for(compiled.published, has_abstention=self.has_abstention)
        provider, result = Provider(asked), Result()
        if self.has_gates:
            await self._gated(asked, seed, compiled, prompt, provider, result)
        else:
            await self._naive(asked, seed, compiled, prompt, provider, result)
        result.effects, result.time_outs = provider.effects, provider.time_outs
        result.work.sends, result.work.read_backs = provider.sends, provider.read_backs
        return result

    async def _naive(
        self,
        asked: Asked,
        seed: int,
        compiled: Compiled,
        prompt: Prompt,
        provider: Provider,
        result: Result,
    ) -> None:
        text = ""
        for number in range(1, self.answers + 1):
            text, verdict = self._ask(asked, seed, number, compiled, prompt, result)
            if verdict is None:
                break
            prompt = replace(prompt, errors=verdict.reasons)
        if self.answers > 1 and not result.conforms:
            # Whoever checks the schema does not execute what fails it.
            result.told = Told.ABSTAINED if result.refused else Told.FAILED
            return
        started = time.perf_counter()
        call = naive.read_call(text, compiled.tools)
        result.work.checking_s += time.perf_counter() - started
        if call is None:
            result.told = Told.ABSTAINED if result.refused else Told.FAILED
            return
        started = time.perf_counter()
        await naive.carry_out(call, asked.id, provider, result)
        result.work.acting_s += time.perf_counter() - started

    async def _gated(
        self,
        asked: Asked,
        seed: int,
        compiled: Compiled,
        prompt: Prompt,
        provider: Provider,
        result: Result,
    ) -> None:
        funnel = Gated(asked, self.variant, provider, result)
        while True:
            text, _ = self._ask(asked, seed, len(funnel.attempts) + 1, compiled, prompt, result)
            judged = funnel.judge(text)
            if judged.verdict.status is not Status.REPAIR:
                break
            prompt = _repairing(prompt, text, judged)
        await funnel.finish(text, judged)

    def _ask(
        self, asked: Asked, seed: int, number: int, compiled: Compiled, prompt: Prompt, result: Result
    ) -> tuple[str, Verdict | None]:
        """One answer, and what is wrong with its form."""
        model = ToyModel(asked, prompt, self.weights)
        dice = random.Random(f"{seed}:{asked.id}:{number}")
        answer = decode(model, dice, self._mask(compiled))
        result.work.prompt_tokens += prompt.words + len(asked.utterance.split())
        started = time.perf_counter()
        verdict = shape_verdict(answer.text, asked, self.variant, has_abstention=self.has_abstention)
        if self.answers > 1:
            # Who does not ask again does not check the schema either; then this look is the table's alone.
            result.work.checking_s += time.perf_counter() - started
        is_parsed = verdict is None or verdict.stage is not Stage.PARSE
        result.answers.append(Shaped(answer, is_parsed, verdict is None and answer.is_whole))
        result.call, result.refused = _call_of(answer.text), is_refusal(answer.text)
        return answer.text, verdict

    def _mask(self, compiled: Compiled) -> TokenMask | None:
        if self.constraint == "free":
            return None
        name = "" if self.constraint == "grammar" else compiled.ref.hash
        if name not in self.masks:
            self.masks[name] = build_mask(
                AnyObject
                if self.constraint == "grammar"
                else lambda: call_automaton(compiled.published, has_abstention=self.has_abstention)
            )
        return self.masks[name]


def shape_verdict(text: str, asked: Asked, variant: Variant, *, has_abstention: bool) -> Verdict | None:
    """What the funnel's gates on form say of a text; an abstention is of no form that has no branch for it."""
    proposal = Proposal(case_id=asked.id, attempt=1, call=text, request=asked.request)
    case = FunnelCase(proposal, variant.catalogue, None, asked.world[0], AT)
    verdict = run_gates(case, _ENVELOPE)
    if verdict is not None:
        return verdict
    if isinstance(case.document, dict) and "abstain" in case.document:
        if has_abstention:
            return None
        return Verdict(Status.REPAIR, Stage.ENVELOPE, ("invalid_call_envelope",), "")
    return run_gates(case, SHAPE_GATES)


def is_refusal(text: str) -> bool:
    """Whether the model said that it makes no call: in prose, or by the typed branch."""
    if text.startswith("I cannot"):
        return True
    try:
        document = json.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and "abstain" in document and "tool" not in document


def _repairing(prompt: Prompt, text: str, judged: Judged) -> Prompt:
    """The prompt for a repair: what is wrong, the authoritative values, and the rest to be left as it is."""
    repair, call = judged.repair, _call_of(text)
    permitted = () if repair is None else repair.permitted
    tool, arguments = call or ("", {})
    return replace(
        prompt,
        errors=judged.verdict.reasons,
        anchors={} if repair is None else {name: str(value) for name, value in repair.anchors.items()},
        kept={"tool": tool} | {n: str(value) for n, value in arguments.items() if n not in permitted},
    )


def _call_of(text: str) -> tuple[str, dict[str, object]] | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    tool, arguments = document.get("tool"), document.get("arguments")
    return (tool, arguments) if isinstance(tool, str) and isinstance(arguments, dict) else None
