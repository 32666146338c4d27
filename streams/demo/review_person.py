"""A scripted person at the console: goes through its pages by links and forms, as a browser without a script does.

Promise: what the policy accepts with the fewest changes is accepted, and the rest rejected; no judgement of what is
true, only one that is quick. What became of a press is what the page of presses says.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser

from aiohttp import ClientSession, CookieJar
from ticketgate.streams.demo.ground import OUTCOME_TIMEOUT_S, POLL_S
from ticketgate.streams.demo.person import PERSON

OPEN = ("pressed", "sending", "sent")
WHY = "pressed by a script"


@dataclass(frozen=True, slots=True)
class Pressed:
    """One press. path: the ticket's page. stage: what became of it, in the page's own word."""

    path: str
    action: str
    id: str
    stage: str = ""


@dataclass(slots=True)
class Form:
    """A form of a page: where it goes, and what it sends as it stands."""

    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)

    def get(self, name: str) -> str:
        """The first value of a field; empty for none."""
        return next((value for key, value in self.fields if key == name), "")


class Page(HTMLParser):
    """What the person sees of a page. links: by class. said: what `data-said` has, by press."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: dict[str, list[str]] = {}
        self.forms: list[Form] = []
        self.said: dict[str, str] = {}
        self.is_whole = True
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """As HTMLParser calls it."""
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in given:
            for each in (given.get("class") or given.get("rel", "")).split():
                self.links.setdefault(each, []).append(given["href"])
        elif tag == "form":
            self.forms.append(Form(given.get("action", "")))
        elif tag == "input" and self.forms and given.get("type") == "hidden":
            self.forms[-1].fields.append((given.get("name", ""), given.get("value", "")))
        if "data-said" in given:
            press, _, stage = given["data-said"].partition(" ")
            self.said[press] = stage
        if given.get("id") == "again":
            self.is_whole = False


class ReviewPerson:
    """Signs in, and settles what waits."""

    def __init__(self, url: str, token: str) -> None:
        self._token = token
        # An address has no domain, and cookies of one are kept only if asked for.
        self._browser = ClientSession(base_url=url, cookie_jar=CookieJar(unsafe=True))

    async def close(self) -> None:
        """Leave."""
        await self._browser.close()

    async def settle(self, count: int) -> list[Pressed]:
        """Settle `count` tickets, and wait until the page says what became of each. Raises `TimeoutError` if they do
        not come to the list in time."""
        await self._send("/sign-in", [("name", PERSON), ("token", self._token), ("next", "/")])
        pressed = [await self._press(path) for path in await self._listed(count)]
        said = await self._told({each.id for each in pressed})
        return [Pressed(each.path, each.action, each.id, said.get(each.id, "not told")) for each in pressed]

    async def _listed(self, count: int) -> list[str]:
        deadline = time.monotonic() + OUTCOME_TIMEOUT_S
        while True:
            found: list[str] = []
            following: str | None = "/"
            while following is not None:
                page = await self._open(following)
                found += page.links.get("open", [])
                following = next(iter(page.links.get("next", [])), None)
            if len(found) >= count:
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(found)} of {count} tickets came to the list")
            await asyncio.sleep(POLL_S)

    async def _press(self, path: str) -> Pressed:
        page = await self._open(path)
        if suggested := page.links.get("suggestion"):
            page = await self._open(suggested[0])
        forms = {form.get("action"): form for form in page.forms if form.action.endswith("/settle")}
        action = "accept" if "accept" in forms else "reject"
        form = forms[action]
        await self._send(form.action, [*form.fields, ("why", WHY)])
        return Pressed(path, action, form.get("id"))

    async def _told(self, wanted: set[str]) -> dict[str, str]:
        deadline = time.monotonic() + OUTCOME_TIMEOUT_S
        while True:
            said = (await self._open("/presses")).said
            is_open = any(said.get(each, OPEN[0]) in OPEN for each in wanted)
            if not is_open or time.monotonic() > deadline:
                return said
            await asyncio.sleep(POLL_S)

    async def _open(self, path: str) -> Page:
        async with self._browser.get(path) as response:
            return Page(await response.text())

    async def _send(self, path: str, fields: list[tuple[str, str]]) -> None:
        async with self._browser.post(path, data=fields, allow_redirects=False) as response:
            await response.read()
            if response.status >= 400:
                raise RuntimeError(f"the console answered {response.status} to {path}")
