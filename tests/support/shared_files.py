"""Where the team's shared folder lies: beside the checkout. Tests that read it skip, saying so, where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def shared(*parts: str) -> Path:
    """A path below the shared folder; skips the test if it is not there."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no {path}: this test needs the shared folder beside the checkout")
    return path
