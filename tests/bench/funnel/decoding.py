"""One answer of the toy model, sampled free or under a mask.

Promise: under a mask the tokens that cannot lead to a text of the automaton's language have probability 0, and the rest
keep their ratios. Sampling is by Gumbel noise drawn for the whole vocabulary at each step, so that two decoders with
the same dice write the same tokens up to the first that the mask forbids.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .automaton import Machine, run
from .contents import State
from .model import ToyModel
from .vocabulary import END, INDEX, TEXTS, TOKENS

# An answer that has not ended by then is cut, as a provider cuts it. A call has some seventy tokens.
MAX_TOKENS = 160

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Row:
    """What an automaton allows in one state: the tokens, and by token the state after it, None if dead."""

    allowed: Mask
    after: tuple[State | None, ...]


@dataclass(slots=True)
class TokenMask:
    """Which tokens an automaton allows in each of its states, found when first asked for and kept.

    first_use_s, first_uses: what the states took that were met for the first time, with building the automaton.
    """

    machine: Machine
    first_use_s: float = 0.0
    first_uses: int = 0
    _by_state: dict[State, Row] = field(default_factory=dict)

    def row(self, state: State) -> Row:
        """The tokens after which the automaton is alive, and the end where it accepts."""
        row = self._by_state.get(state)
        if row is None:
            started = time.perf_counter()
            after = tuple(run(self.machine, state, text) for text in TEXTS)
            allowed = np.fromiter((each is not None for each in after), dtype=np.bool_, count=len(after))
            allowed[INDEX[END]] = self.machine.accepts(state)
            row = self._by_state[state] = Row(allowed, after)
            self.first_use_s += time.perf_counter() - started
            self.first_uses += 1
        return row


def build_mask(build: Callable[[], Machine]) -> TokenMask:
    """A mask whose automaton is built, and timed, now."""
    started = time.perf_counter()
    machine = build()
    return TokenMask(machine, time.perf_counter() - started)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model wrote. is_whole: it ended by itself. forced: steps at which the mask forbade what would have been
    sampled. sampling_s: logits and draws; masking_s: of states met before."""

    text: str
    tokens: int
    is_whole: bool
    masked_steps: int = 0
    forced: int = 0
    sampling_s: float = 0.0
    masking_s: float = 0.0


def distribution(logits: NDArray[np.float64], mask: Mask | None = None) -> NDArray[np.float64]:
    """The next-token distribution: softmax, of what the mask leaves. Raises ValueError if it leaves nothing."""
    left = logits if mask is None else np.where(mask, logits, -np.inf)
    most = left.max()
    if most == -np.inf:
        raise ValueError("the mask leaves no token; the automaton was not alive")
    weights = np.exp(left - most)
    return np.asarray(weights / weights.sum())


def decode(model: ToyModel, dice: random.Random, mask: TokenMask | None = None) -> Answer:
    """Sample one answer. Free where there is no mask."""
    noise = np.random.Generator(np.random.PCG64(dice.getrandbits(64)))
    place = model.start()
    state: State = None if mask is None else mask.machine.start()
    text: list[str] = []
    masked = forced = 0
    sampling_s = masking_s = 0.0
    is_whole = False
    while len(text) < MAX_TOKENS:
        started = time.perf_counter()
        noisy = model.logits(place) - np.log(-np.log(noise.random(len(TOKENS))))
        chosen = int(noisy.argmax())
        sampling_s += time.perf_counter() - started
        if mask is not None:
            before = mask.first_use_s
            started = time.perf_counter()
            row = mask.row(state)
            if not row.allowed[chosen]:
                forced += 1
                chosen = int(np.where(row.allowed, noisy, -np.inf).argmax())
            state = row.after[chosen]
            masked += 1
            masking_s += time.perf_counter() - started - (mask.first_use_s - before)
        token = TOKENS[chosen]
        if token == END:
            is_whole = True
            break
        text.append(token)
        place = model.advance(place, token)
    return Answer("".join(text), len(text) + is_whole, is_whole, masked, forced, sampling_s, masking_s)
