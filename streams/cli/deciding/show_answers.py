"""Answers for a person: a bar and a percentage for each option.

Promise: no percentage stands on the other side of a threshold: it is cut, not rounded, so 0.49996 is 49.9 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_FLOOR, Decimal
from typing import assert_never

from rich.bar import Bar
from rich.console import RenderableType
from ticketgate.agents.plural import counted
from ticketgate.agents.scoring.systemone import Response
from ticketgate.codecs.systemone.answers import Answer, ChoiceAnswer, NoulAnswer, ScoreAnswer
from ticketgate.codecs.systemone.questions import Question, ScoreQuestion
from ticketgate.streams.cli.output import print_table, say

BAR_COLUMNS = 24
# A choice may have 255 options; beyond the first dozen they say little to a reader.
MOST_SHOWN = 12
LABEL_CHARS = 40

Row = tuple[RenderableType, ...]


def show(response: Response) -> None:
    """A table of bars on stdout; which model said so on stderr."""
    rows = [
        row
        for name, found in response.answers.items()
        for row in _rows(name, response.questions[name], found)
    ]
    print_table(("question", "answer", "", "probability", ""), rows)
    say(f"model {response.model}, {counted(response.input_tokens, 'token')} read")
    if response.abstention is not None:
        say(f"the model abstains, so a worker would send this to review: {response.abstention}")
    if response.truncated:
        say(f"too long for the model, so answered on its beginning: {', '.join(response.truncated)}")


def percent(probability: float) -> str:
    """`93.0 %`: cut to a tenth."""
    cut = (Decimal(repr(float(probability))) * 100).quantize(Decimal("0.1"), rounding=ROUND_FLOOR)
    return f"{cut:>5} %"


def _rows(name: str, question: Question, found: Answer) -> Iterator[Row]:
    """One for a noul; else one an option or level, the most probable of many."""
    match found:
        case NoulAnswer():
            yield (
                name,
                "true" if found.noul >= 0.5 else "false",
                "true",
                _bar(found.noul),
                percent(found.noul),
            )
            return
        case ChoiceAnswer():
            said, labels = found.choice, {label: label for label in found.probabilities}
        case ScoreAnswer():
            levels = question.criteria if isinstance(question, ScoreQuestion) else ()
            labels = {str(level): f"{level} {_short(text)}" for level, text in enumerate(levels)}
            said = f"{found.score:.3g}"
        case _:
            assert_never(found)
    chances = found.probabilities
    shown = sorted(chances, key=lambda label: chances[label], reverse=True)[:MOST_SHOWN]
    # In the question's order, unless some are left out.
    for place, label in enumerate(shown if len(shown) < len(chances) else chances):
        first = (name, said) if place == 0 else ("", "")
        yield (*first, _short(labels[label]), _bar(chances[label]), percent(chances[label]))
    if left_out := len(chances) - len(shown):
        yield ("", "", f"… {left_out} less probable", "", "")


def _bar(probability: float) -> Bar:
    return Bar(1.0, 0.0, float(probability), width=BAR_COLUMNS)


def _short(text: object) -> str:
    written = text if isinstance(text, str) else str(text)
    written = " ".join(written.split())
    return written if len(written) <= LABEL_CHARS else f"{written[: LABEL_CHARS - 1]}…"
