"""Which model answers a request that names one: the same in `run`, `serve` and a worker's web port.

Promise: a name in a request chooses among what the settings name and opens nothing: a configured alias is answered by
its model, every other name by the default one. Neither a folder nor a URL can be named. The answer says who answered,
and what was asked for where that was another name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ticketgate.agents.scoring.scorer import Closable, Scorer


@dataclass(frozen=True, slots=True)
class Models:
    """The scorers that may answer. aliases: by the name that a request gives."""

    default: Scorer
    aliases: Mapping[str, Scorer] = field(default_factory=dict)

    def named(self, name: str | None) -> Scorer:
        """Who answers a request that names `name`, None if it names none."""
        return self.default if name is None else self.aliases.get(name, self.default)

    @property
    def every(self) -> tuple[Scorer, ...]:
        """Each scorer once, the default first."""
        return tuple({id(each): each for each in (self.default, *self.aliases.values())}.values())

    def close(self) -> None:
        """Close what can be closed."""
        for scorer in self.every:
            if isinstance(scorer, Closable):
                scorer.close()


def is_name_of(name: str, model_id: str) -> bool:
    """Whether a request that gives `name` means the model that answered: by its id, with or without its version, or by
    `jev-…`, which the protocol's clients send unless told otherwise."""
    return name.startswith("jev-") or name in (model_id, model_id.partition("@")[0])
