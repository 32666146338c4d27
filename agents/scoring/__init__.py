"""Scorers: what answers a policy's questions about tickets.

Importing this package loads no inference engine: onnxruntime, tokenizers and numpy come in only when an
ONNX model is opened, so that `ticketgate check` and `policy lint` start quickly.
Not here: whether an answer may be believed, which the gate `answers` judges (`deciding`).
"""

from pathlib import Path

from ticketgate.agents.scoring.fixed import SETTING as _SCORER_SETTING
from ticketgate.agents.scoring.fixed import FixedScorer
from ticketgate.agents.scoring.scorer import Failure, Scorer, ScorerError, ScorerUnavailable, Scores
from ticketgate.agents.scoring.shipped import default_model_path
from ticketgate.codecs.values.redact import redact

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


def open_scorer(
    spec: str,
    *,
    model: Path | None = None,
    threads: int = 1,
    remote_key: str | None = None,
    remote_model: str | None = None,
    timeout_s: float = 45.0,
) -> Scorer:
    """Open the scorer that a setting names: `onnx`, `fixed:PATH` or `remote:URL`.

    For `onnx`, `model` is the folder, the default model if None, and `threads` how many threads one inference
    may use. For `remote`, `remote_key` is sent to the server, `remote_model` asked for, and `timeout_s` the
    longest that a batch may take. Raises ScorerError, in one line, if there is no such scorer or it cannot be
    opened.
    """
    kind, _, argument = spec.partition(":")
    if spec == "onnx":
        from ticketgate.agents.scoring.onnx import OnnxScorer

        return OnnxScorer.open(model or default_model_path(), threads=threads)
    if kind == "fixed" and argument:
        return FixedScorer.from_file(Path(argument))
    if kind == "remote" and argument:
        from ticketgate.agents.scoring.remote import DEFAULT_MODEL, RemoteScorer

        return RemoteScorer.open(
            argument, key=remote_key, model=remote_model or DEFAULT_MODEL, timeout_s=timeout_s
        )
    raise ScorerError(
        f"there is no scorer {redact(spec)!r}",
        remedy="use onnx (the local model), fixed:PATH (answers from a file) or remote:URL (a System One server)",
        setting=_SCORER_SETTING,
    )
