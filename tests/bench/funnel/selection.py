"""How the toy model picks a tool: by words that the request has in common with names and descriptions."""

from __future__ import annotations

import re

from .prompt import Prompt, Told
from .request_set import Asked
from .weights import Weights

_STEM = 5
_EMPTY_WORDS = {
    "a",
    "an",
    "and",
    "as",
    "at",
    "be",
    "but",
    "by",
    "for",
    "give",
    "i",
    "if",
    "is",
    "it",
    "of",
    "on",
    "only",
    "or",
    "that",
    "the",
    "this",
    "to",
    "what",
    "with",
    "would",
}
# Verbs that a request may begin with.
_VERBS = ("schedule", "cancel", "refund", "change")


def scores(asked: Asked, prompt: Prompt, weights: Weights) -> dict[str, float]:
    """Each offered tool's logit."""
    return {name: _score(asked, tool, weights) for name, tool in prompt.tools.items()}


def verb_of(asked: Asked) -> str:
    """The verb that the request begins with; empty if it begins otherwise."""
    first = asked.utterance.split()[0].lower()
    return first if first in _VERBS else ""


def is_foreign(asked: Asked, prompt: Prompt) -> bool:
    """Whether the request begins with a verb that is in no tool's name or purpose."""
    verb = verb_of(asked)
    words = {stem for tool in prompt.tools.values() for stem in _stems(f"{tool.name} {tool.purpose}")}
    return bool(verb) and verb[:_STEM] not in words


def vagueness(asked: Asked, prompt: Prompt, weights: Weights) -> float:
    """How far even the best tool's score is below 3."""
    return max(0.0, 3.0 - max(scores(asked, prompt, weights).values(), default=0.0))


def _score(asked: Asked, tool: Told, w: Weights) -> float:
    said = _stems(asked.utterance)
    is_question = "?" in asked.utterance and tool.purpose.startswith("Returns")
    return (
        w.name_word * len(said & _stems(tool.name))
        + w.purpose_word * len(said & _stems(tool.purpose))
        + w.does_not_word * len(said & _stems(tool.does_not))
        + w.question_for_observation * is_question
    )


def _stems(text: str) -> set[str]:
    words = re.findall(r"[a-z]+", text.lower().replace("_", " "))
    return {word[:_STEM] for word in words if word not in _EMPTY_WORDS}
