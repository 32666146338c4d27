"""Batches that nobody can read, told of on stderr while a command reads on behind them."""

from __future__ import annotations

from ticketgate.streams.cli.output import say
from ticketgate.streams.kafka.reading.salvage import Gap, UnreadableBatch


class Gaps:
    """Those that were told of so far; given to what reads as its `pass_over`."""

    def __init__(self) -> None:
        self.found: list[Gap] = []

    def __call__(self, batch: UnreadableBatch) -> None:
        """Say it and keep where it is."""
        say(f"ticketgate: {batch}; reading goes on behind it")
        self.found.append(Gap(batch.source, batch.offsets))
