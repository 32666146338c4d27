"""All that the pages of one console share, opened and closed together.

Promise: what a page shows of a press is what this console knows, or, once there is one, what `settled` says.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from aiohttp import web
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.console.desk.jobs import Jobs
from ticketgate.streams.console.desk.notes import NOT_TAKEN, Notes, Press, PressStage
from ticketgate.streams.console.desk.policies import Policies
from ticketgate.streams.console.desk.presses import Presses, Sends
from ticketgate.streams.console.desk.records import Kept, Records, Topics
from ticketgate.streams.console.desk.view_reader import Follows, ViewNotThere, ViewReader
from ticketgate.streams.operations.review.feeding import claim_ttl_ms
from ticketgate.streams.operations.review.following import Following
from ticketgate.streams.operations.review.people import log_reading, names
from ticketgate.streams.operations.review.view import View

log = logging.getLogger(__name__)

# What was pressed is of interest for a working day; that is what a person asks about.
PRESSES_KEPT_MS = 24 * 3_600_000
TIDY_EVERY_S = 600.0
# Lists of up to 200 tickets that somebody is about to settle at once.
MOST_FROZEN = 50
# Names change when somebody signs in for the first time.
NAMES_KEPT_S = 5.0


class News:
    """Tells whoever waits that something has changed."""

    def __init__(self) -> None:
        self.revision = 0
        self._changed = asyncio.Event()

    def announce(self) -> None:
        """Something has changed."""
        self.revision += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, seen: int, seconds: float) -> int:
        """The revision, as soon as it is beyond `seen`, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.revision == seen:
                    await self._changed.wait()
        return self.revision


class ConsoleDesk:
    """What the pages ask and tell."""

    def __init__(
        self,
        settings: Settings,
        *,
        following: Follows | None = None,
        topics: Topics | None = None,
        sender: Sends | None = None,
    ) -> None:
        """following, topics, sender: in place of those that stand on a broker. Raises OSError, sqlite3.Error, and
        `CommandError` for files that another console uses."""
        self.settings = settings
        self.news = News()
        self.following = following or Following(settings, settings.review_view, on_news=self.on_news)
        self.view = ViewReader(settings.review_view, self.following, claim_ttl_ms=claim_ttl_ms(settings))
        self.notes = Notes(settings.review_view.with_suffix(".notes.sqlite3"))
        self.policies = Policies(settings.policy)
        self.records = Records(settings, topics)
        self.presses = Presses(settings, self.notes, on_news=self.news.announce, sender=sender)
        self.jobs = Jobs()
        self.frozen: Kept[object] = Kept(MOST_FROZEN)
        self._names: dict[str, str] = {}
        self._names_until = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._fed = asyncio.Event()

    def start(self) -> None:
        """Begin to follow the topics."""
        self.following.start()
        self.presses.start()
        self._tasks = [
            asyncio.create_task(self._tell_presses(), name="console outcomes"),
            asyncio.create_task(self._tidy(), name="console tidying"),
        ]

    async def stop(self) -> None:
        """Let go of everything. What was pressed and is not due yet is not sent."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.presses.stop()
        await self.jobs.close()
        await self.following.stop()
        await self.view.close()
        await self.records.close()
        self.notes.close()

    def name_of(self, subject: str) -> str:
        """Whom a pseudonym stands for here; itself where nobody knows."""
        if time.monotonic() > self._names_until:
            with contextlib.suppress(CommandError):
                self._names = names(self.settings.people_file)
            self._names_until = time.monotonic() + NAMES_KEPT_S
        return self._names.get(subject, subject)

    def log_texts(self, by: str, page: str, keys: list[str]) -> None:
        """Write down whose text is about to be shown. Raises `CommandError`: what cannot be logged is not shown."""
        log_file = self.settings.reading_log
        log_reading(log_file, at=datetime.now(UTC), by=by, command=f"console {page}", tickets=keys)

    def on_news(self) -> None:
        """The view has changed."""
        self._fed.set()
        self.news.announce()

    async def _tell_presses(self) -> None:
        """Note what became of what was sent, as soon as the view has it."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(TIDY_EVERY_S):
                    await self._fed.wait()
            self._fed.clear()
            for press in (*self.notes.at_stage(PressStage.SENT), *self.notes.at_stage(PressStage.SENDING)):
                with contextlib.suppress(ViewNotThere):
                    await self._tell(press)

    async def _tell(self, press: Press) -> None:
        def ask(view: View) -> list[dict[str, object]]:
            return view.settlements(id=press.id)

        told = [row for row in await self.view.ask(ask) if row["outcome"]]
        if told:
            # Of several with one id the lane took the first; the others are its copies.
            effective = next((row for row in told if not row["code"]), told[0])
            reasons = effective["reasons"]
            reason = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
            self._told(press, str(effective["outcome"]), reason)
        elif press.stage is PressStage.SENT and self._is_over(press):
            self._told(press, NOT_TAKEN, "no worker took it in its time; the ticket waits as before")

    def _told(self, press: Press, outcome: str, reason: str) -> None:
        if self.notes.move(press.id, of=press.stage, to=PressStage.TOLD, outcome=outcome, reason=reason):
            self.news.announce()

    def _is_over(self, press: Press) -> bool:
        lifetime_ms = self.settings.settlement_lifetime.total_seconds() * 1000
        return self.following.state.is_current and now_ms() > press.pressed_ms + lifetime_ms

    async def _tidy(self) -> None:
        while True:
            self.notes.forget_before(now_ms() - PRESSES_KEPT_MS)
            await asyncio.sleep(TIDY_EVERY_S)


def now_ms() -> int:
    """This machine's clock, in ms since 1970: for ages, and for what a person is told of time."""
    return round(time.time() * 1000)


DESK: web.AppKey[ConsoleDesk] = web.AppKey("desk", ConsoleDesk)


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[ConsoleDesk]:
    """A desk for as long as a console runs."""
    desk = ConsoleDesk(settings)
    desk.start()
    try:
        yield desk
    finally:
        await desk.stop()
