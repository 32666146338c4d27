"""Contracts: how a kind of model reads a ticket and questions, and what its outputs mean.

A manifest names its contract. A package adds one by an entry point in the group `ticketgate.contracts`, whose name is
the contract's and which is an `OpenContract`; code that opens models itself may call `register_contract`.
Not here: the model's folder and its graphs (`folder`, `session`).
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from ticketgate.agents.scoring.contracts import bi_encoder_head, option_markers, pair_logit
from ticketgate.agents.scoring.folder import ModelFolder
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.strict import JsonValue

__all__ = [
    "AskedApart",
    "Contract",
    "Embedding",
    "EmbeddingAhead",
    "OpenContract",
    "open_contract",
    "register_contract",
    "score_each",
]


class Contract(Protocol):
    """An opened model. Safe to call from several threads at once."""

    def score(self, states: Sequence[JsonValue], questions: Mapping[str, Question]) -> Sequence[Scores]:
        """One Scores a state, in order; what `Scorer.score` promises holds here too."""
        ...


@runtime_checkable
class AskedApart(Protocol):
    """A contract that can put questions of its own to each state of a batch, without an inference for each state."""

    def score_each(
        self, states: Sequence[JsonValue], asked: Sequence[Mapping[str, Question]]
    ) -> Sequence[Scores]:
        """One Scores a state, as `score` would give it for that state and its questions alone. What is put to several
        states is one object."""
        ...


@runtime_checkable
class Embedding(Protocol):
    """A model that can give single texts vectors, which a shortlist is made by."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, width]."""
        ...


@runtime_checkable
class EmbeddingAhead(Embedding, Protocol):
    """One that remembers a text for the ticket whose state it is, which is scored next."""

    def embed_ahead(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """[texts, width], as `embed`."""
        ...


OpenContract = Callable[[ModelFolder, int], Contract]
"""Opens a folder with so many threads. Raises ScorerError where the folder lacks what the contract needs."""

ENTRY_POINTS = "ticketgate.contracts"

_CONTRACTS: dict[str, OpenContract] = {
    bi_encoder_head.NAME: bi_encoder_head.BiEncoderHead,
    option_markers.NAME: option_markers.OptionMarkers,
    pair_logit.NAME: pair_logit.PairLogit,
}


def score_each(
    contract: Contract, states: Sequence[JsonValue], asked: Sequence[Mapping[str, Question]]
) -> Sequence[Scores]:
    """One Scores a state, each with its own questions; where the contract cannot do that, one state after another."""
    if all(questions is asked[0] for questions in asked):
        return contract.score(states, asked[0]) if asked else ()
    if isinstance(contract, AskedApart):
        return contract.score_each(states, asked)
    return [
        scores
        for state, questions in zip(states, asked, strict=True)
        for scores in contract.score([state], questions)
    ]


def register_contract(name: str, opener: OpenContract) -> None:
    """Add a contract. Raises ValueError if there is one of that name."""
    if name in _CONTRACTS:
        raise ValueError(f"contract {name!r} is registered already")
    _CONTRACTS[name] = opener


def open_contract(folder: ModelFolder, *, threads: int) -> Contract:
    """Open the folder by the contract it names. Raises ScorerError."""
    name = folder.manifest.contract
    if name in _CONTRACTS:
        return _CONTRACTS[name](folder, threads)
    packaged = entry_points(group=ENTRY_POINTS)
    if name not in packaged.names:
        raise folder.refusal(
            f'unknown contract "{name}"',
            remedy=f"the contracts known here are {', '.join(sorted({*_CONTRACTS, *packaged.names}))}",
        )
    try:
        opener: OpenContract = packaged[name].load()
    except (ImportError, AttributeError) as err:
        raise folder.refusal(
            f'contract "{name}" cannot be loaded from {packaged[name].value} ({err})',
            remedy="mend or remove the package that brings it",
        ) from err
    return opener(folder, threads)
