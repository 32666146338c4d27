"""The scorer that the settings name, opened. Loads no more than that scorer needs."""

from __future__ import annotations

from ticketgate.agents.scoring import Scorer, open_scorer
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
