"""What an executor cannot go on from: no such provider, or an entry that is gone."""


class ProviderMissing(Exception):
    """The funnel file names no such provider. Nothing was sent; a person mends the file."""

    def __init__(self, provider: str, key: str) -> None:
        super().__init__(
            f"effect {key}: no provider {provider!r}; the funnel file must name it, also while effects of it are open"
        )
        self.provider, self.key = provider, key


class EntryLost(Exception):
    """The ledger has lost an entry that it had. Nothing more is done about the effect: `ticketgate ledger rebuild`."""

    def __init__(self, key: str) -> None:
        super().__init__(f"effect {key} is no longer in the ledger; run `ticketgate ledger rebuild`")
        self.key = key
