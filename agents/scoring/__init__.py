"""Scorers: what answers a policy's questions about tickets.

Importing this package loads no inference engine: onnxruntime, tokenizers and numpy come in only when an
ONNX model is opened, so that `ticketgate check` and `policy lint` start quickly.
"""

from pathlib import Path

from ticketgate.agents.scoring.fixed import SETTING as _SCORER_SETTING
from ticketgate.agents.scoring.fixed import FixedScorer
from ticketgate.agents.scoring.scorer import Failure, Scorer, ScorerError, ScorerUnavailable, Scores

__all__ = [
    "Failure",
    "FixedScorer",
    "Scorer",
    "ScorerError",
    "ScorerUnavailable",
    "Scores",
    "default_model_path",
    "open_scorer",
]


def default_model_path() -> Path:
    """The folder of the model that ships with ticketgate."""
    return Path(__file__).resolve().parent / "minilm"


def open_scorer(spec: str, *, model: Path | None = None, threads: int = 1) -> Scorer:
    """Open the scorer that a setting names: `onnx`, or `fixed:PATH`.

    `model` is the folder for `onnx`, the default model if None. `threads` is how many threads one
    inference may use. Raises ScorerError, in one line, if there is no such scorer or it cannot be opened.
    """
    kind, _, argument = spec.partition(":")
    if spec == "onnx":
        from ticketgate.agents.scoring.onnx import OnnxScorer

        return OnnxScorer.open(model or default_model_path(), threads=threads)
    if kind == "fixed" and argument:
        return FixedScorer.from_file(Path(argument))
    raise ScorerError(
        f"there is no scorer {spec!r}",
        remedy="use onnx (the local model) or fixed:PATH (answers from a file)",
        setting=_SCORER_SETTING,
    )
