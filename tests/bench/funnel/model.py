"""The toy language model: a logit for every next token, given what was written, the request and the prompt.

Promise: it is a next-token distribution and nothing else. Whoever samples, free or masked, asks the same function, and
mistakes arise where a sample falls on them. It knows no truth, no authority and no world. Inside, a state says what it
takes itself to be writing: a slot with its choices (token sequences with logits), and the tokens of the slot written
so far. A token that no choice goes on with is taken for noise in structure, and for a character in a value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .prompt import Prompt
from .request_set import FLOOR, Asked
from .selection import is_foreign, scores, vagueness, verb_of
from .slots import Choice, Slot
from .values import value_choices
from .vocabulary import END, INDEX, TOKENS, WRONG_KEYS, spell
from .weights import WEIGHTS, Weights

_REASONS = ("unsupported_operation", "ambiguous_request", "missing_information")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the model is: the slot, and what of it is written."""

    slot: Slot
    written: tuple[str, ...] = ()


@dataclass(slots=True)
class ToyModel:
    """The model for one request and prompt."""

    asked: Asked
    prompt: Prompt
    weights: Weights = WEIGHTS
    _choices: dict[Slot, tuple[Choice, ...]] = field(default_factory=dict)

    def start(self) -> Place:
        """Nothing written."""
        return Place(Slot("open"))

    def logits(self, place: Place) -> NDArray[np.float64]:
        """The logits of all tokens, in the vocabulary's order."""
        found = np.full(len(TOKENS), self.weights.floor)
        going_on = self._going_on(place)
        if not going_on:
            found[INDEX[self._by_place(place)]] = 0.0
        for token, logit in going_on.items():
            found[INDEX[token]] = logit
        return found

    def advance(self, place: Place, token: str) -> Place:
        """Where the model is after a token, whoever chose it."""
        written = (*place.written, token)
        still = [each for each in self.choices(place.slot) if each.tokens[: len(written)] == written]
        for each in still:
            if each.tokens == written:
                return Place(each.then)
        if still:
            return Place(place.slot, written)
        if place.slot.kind != "value":
            return place
        # An unforeseen character of a value; a quote or a comma ends it for the model too.
        is_closed = token == '"' and len(written) > 1  # noqa: S105 - a token of text
        if is_closed:
            return Place(self.choices(place.slot)[0].then)
        return Place(place.slot, written)

    def choices(self, slot: Slot) -> tuple[Choice, ...]:
        """What the model may mean to write in a slot; the first is what it is there for."""
        if slot not in self._choices:
            self._choices[slot] = tuple(getattr(self, f"_{slot.kind}")(slot))
        return self._choices[slot]

    def _going_on(self, place: Place) -> dict[str, float]:
        """Next tokens by the choices that agree with what is written; several choices add up."""
        count = len(place.written)
        found: dict[str, list[float]] = {}
        for choice in self.choices(place.slot):
            if len(choice.tokens) > count and choice.tokens[:count] == place.written:
                found.setdefault(choice.tokens[count], []).append(choice.logit)
        return {token: _log_sum(logits) for token, logits in found.items()}

    def _by_place(self, place: Place) -> str:
        """Off every choice: the token at this place of what was meant, at last the closing quote."""
        meant = self.choices(place.slot)[0].tokens
        return meant[min(len(place.written), len(meant) - 1)]

    # The slots in the order of a call.

    def _open(self, slot: Slot) -> list[Choice]:
        w, after = self.weights, Slot("call_id_key")
        return [
            Choice(("{",), 0.0, after),
            Choice(("```json", "{"), w.fence + self._structure(), after),
            Choice(("I cannot do that.",), self._refusal(), Slot("stop")),
        ]

    def _call_id_key(self, slot: Slot) -> list[Choice]:
        return self._key("call_id", Slot("call_id"))

    def _call_id(self, slot: Slot) -> list[Choice]:
        return [Choice(('"', "c_", "1", '"'), 0.0, Slot("comma", then="tool_key"))]

    def _comma(self, slot: Slot) -> list[Choice]:
        """Between members of the call: a comma, two, or none and on with the next key."""
        w, after = self.weights, Slot(slot.then, slot.tool)
        skipped = [
            Choice(each.tokens, each.logit + w.no_comma + self._structure(), each.then)
            for each in self.choices(after)[:1]
        ]
        return [
            Choice((",",), 0.0, after),
            Choice((",,",), w.two_commas + self._structure(), after),
            *skipped,
        ]

    def _tool_key(self, slot: Slot) -> list[Choice]:
        w = self.weights
        logit = w.abstain_untold
        if self.prompt.has_abstention:
            logit = (
                w.abstain
                + w.abstain_foreign * is_foreign(self.asked, self.prompt)
                + w.abstain_vague * vagueness(self.asked, self.prompt, w)
            )
        return [
            *self._key("tool", Slot("tool")),
            Choice(('"abstain"', ":"), logit, Slot("reason")),
        ]

    def _reason(self, slot: Slot) -> list[Choice]:
        likely = 0 if is_foreign(self.asked, self.prompt) else 1
        return [
            Choice(('"', reason, '"'), 0.0 if place == likely else -2.0, Slot("last_brace"))
            for place, reason in enumerate(_REASONS)
        ]

    def _tool(self, slot: Slot) -> list[Choice]:
        w = self.weights
        by_name = scores(self.asked, self.prompt, w)
        if kept := self.prompt.kept.get("tool"):
            by_name[kept] = by_name.get(kept, 0.0) + w.kept
        again = w.asked_again_tool if "unknown_tool" in self.prompt.errors else 0.0
        choices = [
            Choice(('"', *spell(name), '"'), score + again, Slot("comma", name, then="arguments_key"))
            for name, score in by_name.items()
        ]
        # A tool that is not there gets the fields of the one that seems nearest.
        nearest = max(by_name, key=lambda name: by_name[name])
        after = Slot("comma", nearest, then="arguments_key")
        if is_foreign(self.asked, self.prompt):
            imagined = spell(f"{verb_of(self.asked)}_transfer")
            choices.append(Choice(('"', *imagined, '"'), w.imagined_tool, after))
        return [*choices, Choice(('"', "transfer", '"'), w.invented_tool, after)]

    def _arguments_key(self, slot: Slot) -> list[Choice]:
        return self._key("arguments", Slot("arguments", slot.tool))

    def _arguments(self, slot: Slot) -> list[Choice]:
        return [Choice(("{",), 0.0, Slot("field", slot.tool))]

    def _field(self, slot: Slot) -> list[Choice]:
        """The next key among the arguments; or an idempotency key, or a field that nobody asked for."""
        w, told = self.weights, self.prompt.tools[slot.tool]
        left = [name for name in told.fields if name in told.required and name not in slot.done]
        if not left:
            return [Choice(("}",), 0.0, Slot("last_brace"))]
        choices = self._key(left[0], slot.value_of(left[0]))
        if "idempotency_key" in told.fields and "idempotency_key" not in slot.done:
            logit = w.own_key + self._about("idempotency_key")
            choices.append(Choice(('"idempotency_key"', ":"), logit, slot.value_of("idempotency_key")))
        for added in ("currency", "note"):
            if added not in slot.done:
                logit = w.extra_field + self._about(added)
                choices.append(Choice((f'"{added}"', ":"), logit, slot.value_of(added)))
        return choices

    def _value(self, slot: Slot) -> list[Choice]:
        told = self.prompt.tools[slot.tool]
        after = Slot("between", slot.tool, done=slot.done)
        written = value_choices(
            slot.field, told.kinds.get(slot.field, "text"), self.asked, self.prompt, self.weights
        )
        return [Choice(spell(each.text), each.logit, after) for each in written]

    def _between(self, slot: Slot) -> list[Choice]:
        """After a value: on, or the end; perhaps too early, or with a comma too many."""
        w, told = self.weights, self.prompt.tools[slot.tool]
        left = [name for name in told.fields if name in told.required and name not in slot.done]
        last, on = Slot("last_brace"), Slot("field", slot.tool, done=slot.done)
        if not left:
            return [
                Choice(("}",), 0.0, last),
                Choice((",", "}"), w.comma_at_the_end + self._structure(), last),
            ]
        early = w.drop_condition if left == [FLOOR] else w.early_end
        early += sum(self._about(name) for name in left)
        skipped = self.choices(on)[0]
        return [
            Choice((",",), 0.0, on),
            Choice((",,",), w.two_commas + self._structure(), on),
            Choice(skipped.tokens, w.no_comma + self._structure(), skipped.then),
            Choice(("}",), early, last),
        ]

    def _last_brace(self, slot: Slot) -> list[Choice]:
        w = self.weights
        return [
            Choice(("}",), 0.0, Slot("stop")),
            Choice((END,), w.no_last_brace + self._structure(), Slot("stop")),
        ]

    def _stop(self, slot: Slot) -> list[Choice]:
        w = self.weights
        return [
            Choice((END,), 0.0, Slot("stop")),
            Choice(("}", END), w.brace_too_many + self._structure(), Slot("stop")),
            Choice(("Done.", END), w.prose_after + self._structure(), Slot("stop")),
        ]

    # What several slots ask.

    def _key(self, name: str, after: Slot) -> list[Choice]:
        w = self.weights
        choices = [
            Choice((f'"{name}"', ":"), 0.0, after),
            Choice((f'"{name}"', "="), w.no_colon + self._structure(), after),
        ]
        if name in WRONG_KEYS:
            logit = w.wrong_key + self._structure() + self._about(name)
            choices.append(Choice((f'"{WRONG_KEYS[name]}"', ":"), logit, after))
        return choices

    def _structure(self) -> float:
        """How much likelier a slip of serialisation is here."""
        tempted = self.weights.structure_tempted if self.asked.tempting else 0.0
        return tempted + (self.weights.asked_again_structure if self.prompt.errors else 0.0)

    def _about(self, name: str) -> float:
        """Less of a slip that the errors name the field of."""
        is_named = any(name in error.split(":") for error in self.prompt.errors)
        return self.weights.asked_again_field if is_named else 0.0

    def _refusal(self) -> float:
        w = self.weights
        return (
            w.refuse
            + w.refuse_foreign * is_foreign(self.asked, self.prompt)
            + w.refuse_vague * vagueness(self.asked, self.prompt, w)
            + (w.refuse_typed_instead if self.prompt.has_abstention else 0.0)
            + (w.asked_again_refuse if self.prompt.errors else 0.0)
        )


def _log_sum(logits: list[float]) -> float:
    most = max(logits)
    return most + math.log(sum(math.exp(each - most) for each in logits))
