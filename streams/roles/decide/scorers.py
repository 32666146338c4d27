"""The scorer that the settings name, opened. Loads no more than that scorer needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ticketgate.agents.scoring import Scorer, open_scorer
from ticketgate.agents.scoring.models import Models
from ticketgate.streams.config.settings import Settings

# A scorer that gives no answer within scorer_timeout counts as hung and ends its process; one that waits for a server
# must have given up by then.
REMOTE_SHARE = 0.8


def require_scorer(settings: Settings) -> Scorer:
    """The scorer that the settings name. Raises `ScorerError`."""
    key = settings.scorer_key
    return open_scorer(
        settings.scorer,
        model=settings.model,
        threads=settings.scorer_threads,
        remote_key=None if key is None else key.get_secret_value(),
        remote_model=settings.scorer_model,
        timeout_s=settings.scorer_timeout.total_seconds() * REMOTE_SHARE,
    )


def require_models(settings: Settings, *, only: str | None = None) -> Models:
    """The scorer that the settings name, and those of the aliases. `only`: of one request, the alias that it names, so
    that no other is opened. Raises `ScorerError`."""
    folders = dict(each.split("=", 1) for each in settings.model_aliases)
    if only is not None:
        folders = {name: folder for name, folder in folders.items() if name == only}
    return with_aliases(settings, require_scorer(settings), folders)


def with_aliases(settings: Settings, default: Scorer, folders: Mapping[str, str] | None = None) -> Models:
    """The default with the models of the aliases, each folder opened once. Raises `ScorerError`."""
    named = dict(each.split("=", 1) for each in settings.model_aliases) if folders is None else folders
    opened: dict[str, Scorer] = {}
    for folder in named.values():
        if folder not in opened:
            opened[folder] = open_scorer("onnx", model=Path(folder), threads=settings.scorer_threads)
    return Models(default, {name: opened[folder] for name, folder in named.items()})
