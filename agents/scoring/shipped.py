"""The model that ships with ticketgate."""

from pathlib import Path


def default_model_path() -> Path:
    """Its folder."""
    return Path(__file__).resolve().parent / "bge"
