"""What a person gave cannot be used: the error that a command prints as one line."""

from __future__ import annotations


class CommandError(Exception):
    """What a person gave cannot be used. One line, exit code 2."""
