"""Sessions: who is signed in, since when, and until when.

Promise: what a browser holds is a random name of a session, of which only the digest is here. A session ends when it is
left alone, when it is old, when its person signs out, or when that person's entry changes in any way; what it still has
under way ends with it. A restart ends all. There are never more than so many.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ticketgate.streams.console.door.people import People, Person

# A person with a browser on each of several machines has some; a script that signs in each time has many.
MOST_OF_ONE = 32
MOST = 10_000
NAME_BYTES = 32
# Events for several pages of one browser: each holds a connection, of which browsers open six to a host, and with all
# of them held no page would load any more.
MOST_STREAMS = 4


def awake_and_asleep_s() -> float:
    """Seconds that only rise, also while the machine sleeps, so that a night ends a session."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(slots=True, kw_only=True, eq=False)
class Session:
    """One. by_proxy: it was opened because a proxy named the person, and holds only where one does."""

    digest: bytes = field(repr=False)
    person: Person
    subject: str
    csrf: str = field(repr=False)
    by_proxy: bool
    opened_at: float
    used_at: float
    # By arrival.
    streams: dict[asyncio.Task[object], None] = field(default_factory=dict, repr=False)


class Sessions:
    """All of one console. idle_s, longest_s: as the settings say. clock: seconds that only rise."""

    def __init__(
        self,
        people: People,
        *,
        idle_s: float,
        longest_s: float,
        clock: Callable[[], float] = awake_and_asleep_s,
    ) -> None:
        self._people, self._idle_s, self._longest_s, self._clock = people, idle_s, longest_s, clock
        self._sessions: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, person: Person, *, subject: str, by_proxy: bool = False) -> tuple[str, Session]:
        """A new session, and the name by which the browser has it."""
        name, now = secrets.token_urlsafe(NAME_BYTES), self._clock()
        session = Session(
            digest=_digest(name),
            person=person,
            subject=subject,
            csrf=secrets.token_urlsafe(NAME_BYTES),
            by_proxy=by_proxy,
            opened_at=now,
            used_at=now,
        )
        own = [each for each in self._sessions.values() if each.person.name == person.name]
        while len(own) >= MOST_OF_ONE:
            self.end(own.pop(own.index(min(own, key=lambda each: each.used_at))))
        if len(self._sessions) >= MOST:
            self.end(min(self._sessions.values(), key=lambda each: each.used_at))
        self._sessions[session.digest] = session
        return name, session

    def find(self, name: str, *, is_use: bool = True) -> Session | None:
        """The session of that name, if it still holds. is_use: whether a person asked, and not a page on its own."""
        session = self._sessions.get(_digest(name))
        if session is None:
            return None
        if not self._holds(session):
            self.end(session)
            return None
        if is_use:
            session.used_at = self._clock()
        return session

    def end(self, session: Session) -> None:
        """End it, with what it has under way."""
        self._sessions.pop(session.digest, None)
        for task in [*session.streams]:
            task.cancel()

    def end_all(self) -> None:
        """End each."""
        for session in [*self._sessions.values()]:
            self.end(session)

    def sweep(self) -> None:
        """End those that hold no more."""
        for session in [*self._sessions.values()]:
            if not self._holds(session):
                self.end(session)

    def _holds(self, session: Session) -> bool:
        now = self._clock()
        return (
            now - session.used_at < self._idle_s
            and now - session.opened_at < self._longest_s
            and self._people.get(session.person.name) == session.person
        )


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
