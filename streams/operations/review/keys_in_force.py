"""The keys that settlements may be signed by, as their files say now.

Promise: a key that was taken out is known no more from the next look on, one that was put in is. Files that cannot be
used keep the keys that were good, and are told of once a change in the log, and for as long as they lie there in
`error`.
"""

from __future__ import annotations

import logging
from pathlib import Path

from ticketgate.agents.settling.console_keys import ConsoleKeys, ConsoleKeysError, load_console_keys
from ticketgate.codecs.files.watched import FilesWatch

log = logging.getLogger(__name__)


class KeysInForce:
    """`keys` are those to believe by now; who holds it calls `look` from time to time."""

    def __init__(self, path: Path) -> None:
        """Raises ConsoleKeysError."""
        self.keys: ConsoleKeys = load_console_keys(path)
        self.error: str | None = None
        self._watch = FilesWatch(
            lambda files: load_console_keys(path, files=files),
            fault=ConsoleKeysError,
            take_over=self._take_over,
            keep_old=self._keep_old,
        )

    async def look(self) -> None:
        """Take the files over if they have changed and can be used."""
        await self._watch.look()

    async def _take_over(self, keys: ConsoleKeys) -> None:
        was, self.keys = self.keys, keys
        self.error = None
        if was == keys:
            return
        gone = ", ".join(sorted(set(was) - set(keys))) or "none"
        log.info("the console keys %s are in force; gone: %s", ", ".join(sorted(keys)), gone)

    def _keep_old(self, err: ConsoleKeysError) -> None:
        self.error = str(err)
        log.error("the console keys were not taken over: %s; those of before stay in force", err)
