"""Which language a text is written in, as far as a model has to know it: one that its card names, or another.

Promise: a text counts as foreign only where the evidence is strong. Of public English tickets (banking77, clinc and
bitext) at most 1 in 200 does, of short sentences in other languages more than 9 in 10; single words ("Danke") pass.
Source: py3langid, naive Bayes over byte n-grams in 139 languages.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from ticketgate.codecs.values.strict import JsonValue

# How much more probable, as a natural logarithm, the best other language must be than the best of those named. At 0 one
# English ticket in 40 would count as foreign, and at 20 every third short sentence of other languages would pass.
LEAST_MARGIN: Final = 8.0

# Languages that a short text cannot be told apart from by n-grams, and that are read as well.
KIN: Final = {"en": ("pcm",)}

# Beyond this a text's language does not change any more, and the time it takes would.
MOST_CHARACTERS: Final = 2000

# Below this there is nothing to tell a language by.
LEAST_LETTERS: Final = 4

# Addresses, numbers and codes belong to no language.
_NO_WORDS = re.compile(r"\S*[\d@/_\\]\S*")


class Languages:
    """The languages that a model reads. Safe to use from several threads at once."""

    def __init__(self, named: Sequence[str]) -> None:
        """`named`: ISO 639 codes. Raises ValueError, which names those that cannot be told."""
        self._named = tuple(named)
        self._identifier = _identifier()
        if unknown := set(named) - set(self._identifier.labels):
            raise ValueError(f"no language that can be told: {', '.join(sorted(unknown))}")
        self._read = frozenset(named).union(*(KIN.get(name, ()) for name in named))

    def refusal(self, state: JsonValue) -> str | None:
        """Why the model should not be asked about this state, or None."""
        return self.refusal_of(words(state))

    def refusal_of(self, text: str) -> str | None:
        """As `refusal`, of a state's texts."""
        text = _NO_WORDS.sub(" ", text)
        if sum(map(str.isalpha, text)) < LEAST_LETTERS:
            return None
        ranked: list[tuple[str, float]] = self._identifier.rank(text)
        other, margin = self._best(ranked)
        if margin <= LEAST_MARGIN:
            return None
        return f'the text reads as language "{other}", and this model reads {", ".join(self._named)}'

    def _best(self, ranked: Sequence[tuple[str, float]]) -> tuple[str, float]:
        """The best language that is not read, and by how much it is better than the best that is."""
        read = next(score for name, score in ranked if name in self._read)
        other, score = next(pair for pair in ranked if pair[0] not in self._read)
        return other, score - read


def words(state: JsonValue) -> str:
    """The beginning of a state's texts; not its keys, which are the sender's system's and not the writer's."""
    found: list[str] = []
    room = MOST_CHARACTERS
    todo = [state]
    while todo and room > 0:
        item = todo.pop()
        if isinstance(item, str):
            found.append(item[:room])
            room -= len(item)
        elif isinstance(item, dict):
            todo.extend(item[key] for key in sorted(item, reverse=True))
        elif isinstance(item, list):
            todo.extend(reversed(item))
    return "\n".join(found)


@cache
def _identifier() -> Any:
    """One for the process: its tables take 90 MB and half a second to read."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)
