"""The door: who comes in, and what is let through."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import ClientPayloadError, web
from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.console import pages
from ticketgate.streams.console.caller import USER
from ticketgate.streams.console.door.people import Entry, write_entries
from ticketgate.streams.console.door.sessions import MOST_STREAMS
from ticketgate.streams.console.door.tokens import hashed
from ticketgate.streams.console.routes import EVERYBODY, ROUTES, Route

from ..conftest import ENTRIES, PAGES, TOKENS, Client, Opening, sign_in

SECRET = "p" * 32
PROXY = {"console_proxy": "127.0.0.0/8", "console_proxy_secret": SECRET}


async def csrf_of(client: Client) -> str:
    async with client.get("/") as response:
        found = re.search(r'name="csrf" value="([^"]+)"', await response.text())
        assert found is not None
        return found[1]


async def status(client: Client, path: str = "/", method: str = "GET", **given: object) -> int:
    async with client.request(method, path, allow_redirects=False, **given) as response:  # type: ignore[arg-type]
        await response.read()
        return response.status


async def until(ask: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Wait until it answers that."""
    async with asyncio.timeout(60):
        while await ask() != wanted:  # noqa: ASYNC110 - what it waits for is in another process, as it were
            await asyncio.sleep(0.02)


async def test_nobody_sees_a_page_before_signing_in(opening: Opening) -> None:
    client = await opening()

    async with client.get("/?rule=a%20b", allow_redirects=False) as refused:
        assert (refused.status, refused.headers["Location"]) == (303, "/sign-in?next=%2F%3Frule%3Da%2520b")
    await sign_in(client)
    async with client.get("/", allow_redirects=False) as let_in:
        assert let_in.status == 200
        assert "anna" in await let_in.text()


async def test_every_route_names_a_role_and_is_closed_to_whoever_has_less(opening: Opening) -> None:
    strangers, low, high = [await opening(routes=pages.ROUTES) for _ in range(3)]
    await sign_in(low, "ben")
    await sign_in(high, "cleo")
    routes = strangers.app[ROUTES]
    every = {(route.method, route.resource) for route in strangers.app.router.routes()}

    assert {(route.method, route.resource) for route in routes} == every
    for_everybody = {each.path for each in routes.values() if each.role == EVERYBODY}
    assert for_everybody == {
        *("/sign-in", "/signed-out", "/static/{hash}/{name:.+}", "/healthz", "/readyz", "/metrics"),
    }
    for each in routes.values():
        if each.role == EVERYBODY:
            continue
        path = re.sub(r"\{[^}]*\}", "x", each.path)
        assert await status(strangers, path, each.method) in (303, 401), each
        if each.role is not ConsoleRole.READ:
            assert await status(low, path, each.method) == 403, each
        if each.method not in ("GET", "HEAD"):
            # A person of every role, but no token of the session.
            assert await status(high, path, each.method) == 403, each


async def test_a_token_of_another_or_of_nobody_lets_nobody_in(opening: Opening) -> None:
    client = await opening()

    for name, token in (
        ("anna", TOKENS["ben"]),
        ("nobody", "x"),
        ("anna", ""),
        ("", ""),
        ("anna", "x" * 100_000),
    ):
        async with client.post("/sign-in", data={"name": name, "token": token}) as response:
            assert response.status == 401
            assert "do not belong together" in await response.text()
    assert await status(client) == 303


async def test_who_goes_on_guessing_waits_and_the_right_token_waits_too(opening: Opening) -> None:
    client = await opening()

    told = [await status(client, "/sign-in", "POST", data={"name": "anna", "token": "x"}) for _ in range(6)]
    async with client.post("/sign-in", data={"name": "anna", "token": TOKENS["anna"]}) as slowed:
        assert slowed.status == 429
        assert int(slowed.headers["Retry-After"]) >= 1

    assert told == [401] * 5 + [429]


@pytest.mark.parametrize(
    ("origin", "is_secure", "name"),
    [
        ("http://127.0.0.1:{port}", False, "ticketgate"),
        ("https://127.0.0.1:{port}", True, "__Host-ticketgate"),
    ],
)
async def test_the_cookie_says_nothing_and_goes_nowhere_else(
    opening: Opening, origin: str, is_secure: bool, name: str
) -> None:
    client = await opening()
    form = {"name": "anna", "token": TOKENS["anna"]}

    async with client.post(
        "/sign-in", data=form, headers={"Origin": origin.format(port=client.port)}, allow_redirects=False
    ) as response:
        (cookie,) = response.headers.getall("Set-Cookie")

    assert cookie.startswith(f"{name}=")
    parts = {each.strip().lower() for each in cookie.split(";")[1:]}
    assert parts == {"path=/", "httponly", "samesite=strict"} | ({"secure"} if is_secure else set())


async def test_signing_in_gives_the_session_another_name_and_ends_the_old_one(opening: Opening) -> None:
    client = await opening()

    await sign_in(client)
    before = {each.value for each in client.session.cookie_jar}
    await sign_in(client, "ben")
    after = {each.value for each in client.session.cookie_jar}

    assert len(before) == len(after) == 1
    assert before != after
    assert (
        await status(client, headers={"Cookie": f"ticketgate={before.pop()}"}) == 200
    )  # the jar's own goes first
    client.session.cookie_jar.clear()
    assert await status(client) == 303


async def test_signing_out_ends_the_session_on_the_server(opening: Opening) -> None:
    client = await opening()
    await sign_in(client)
    (cookie,) = client.session.cookie_jar
    token = await csrf_of(client)

    assert await status(client, "/sign-out", "POST", data={"csrf": token}) == 303

    client.session.cookie_jar.clear()
    assert await status(client, headers={"Cookie": f"{cookie.key}={cookie.value}"}) == 303


async def test_what_changes_anything_needs_the_token_of_the_session_and_a_page_of_ours(
    opening: Opening,
) -> None:
    client, other = await opening(), await opening()
    await sign_in(client)
    await sign_in(other)
    own, foreign = await csrf_of(client), await csrf_of(other)
    here = f"http://127.0.0.1:{client.port}"

    async def out(**given: object) -> int:
        return await status(client, "/sign-out", "POST", **given)

    for data in ({}, {"csrf": ""}, {"csrf": foreign}, {"csrf": own[:-1]}, {"csrf": "\u00e9\u202e"}):
        assert await out(data=data) == 403
    assert await out(headers={"X-CSRF-Token": foreign}, data={"csrf": own}) == 403
    for headers in (
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": here, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ):
        assert await out(headers=headers, data={"csrf": own}) == 403
    assert await status(client) == 200
    assert await out(headers={"Origin": here, "Sec-Fetch-Site": "same-origin"}, data={"csrf": own}) == 303


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "elsewhere.example"}, 421),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({"Host": "desk.example"}, 200),
    ],
)
async def test_only_by_a_name_of_ours_and_not_as_a_part_of_another_page(
    opening: Opening, headers: dict[str, str], code: int
) -> None:
    client = await opening(console_hosts="desk.example")
    await sign_in(client)
    (cookie,) = client.session.cookie_jar

    assert await status(client, headers={"Cookie": f"{cookie.key}={cookie.value}", **headers}) == code


async def test_a_link_from_elsewhere_is_asked_for_once_more_as_the_browser_keeps_the_cookie_back(
    opening: Opening,
) -> None:
    client = await opening()

    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    async with client.get('/?rule="><script>', headers=headers) as response:
        text = await response.text()

    assert 'content="0; url=/?rule=' in text
    assert "<script" not in text


@pytest.mark.parametrize(
    "following",
    [
        "//elsewhere.example",
        "/\\elsewhere.example",
        "https://elsewhere.example",
        "/\n/x",
        "",
        "x",
        "/" * 5000,
    ],
)
async def test_signing_in_leads_to_no_other_place(opening: Opening, following: str) -> None:
    client = await opening()
    form = {"name": "anna", "token": TOKENS["anna"], "next": following}

    async with client.post("/sign-in", data=form, allow_redirects=False) as response:
        assert response.headers["Location"] == "/"


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"Content-Type": "application/json"}, b"{}", 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x--", 415),
        ({"Content-Type": "application/x-www-form-urlencoded; charset=utf-16"}, b"a=b", 415),
        ({"Content-Type": "application/x-www-form-urlencoded", "Content-Encoding": "gzip"}, b"a=b", 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"name=" + b"x" * 300_000, 413),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"name=\xff\xfe", 400),
    ],
)
async def test_what_is_no_form_of_ours_is_refused_in_a_page(
    opening: Opening, headers: dict[str, str], body: bytes, code: int
) -> None:
    client = await opening()

    async with client.post("/sign-in", data=body, headers=headers) as response:
        text = await response.text()
        assert (response.status, response.content_type) == (code, "text/html")
        assert response.headers["X-Request-Id"] in text


async def test_a_form_that_cannot_be_read_is_refused_however_its_token_comes(opening: Opening) -> None:
    async def page(request: web.Request) -> web.StreamResponse:
        await request.post()
        return web.Response()

    route = Route(method="POST", path="/page", handler=page, role=ConsoleRole.READ)
    client = await opening(routes=(*PAGES, route))
    await sign_in(client)
    headers = {"X-CSRF-Token": await csrf_of(client), "Content-Type": "application/x-www-form-urlencoded"}

    assert await status(client, "/page", "POST", data=b"name=\xff\xfe", headers=headers) == 400
    assert await status(client, "/page", "POST", data=b"name=a", headers=headers) == 200


async def test_a_body_of_unknown_length_is_bounded_too(opening: Opening) -> None:
    client = await opening()

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b"x" * 10_000

    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert await status(client, "/sign-in", "POST", data=endless(), headers=headers) == 413


async def test_every_answer_says_what_a_page_may_do(opening: Opening) -> None:
    client = await opening()
    await sign_in(client)

    for path in ("/", "/sign-in", "/nowhere", "/healthz", "/static/x/y.js"):
        async with client.get(path, allow_redirects=False) as response:
            said = response.headers["Content-Security-Policy"].split("; ")
            policy = {each.partition(" ")[0]: each.partition(" ")[2] for each in said}
            assert policy["default-src"] == "'none'"
            assert {policy[name] for name in ("script-src", "style-src", "img-src", "connect-src")} == {
                "'self'"
            }
            assert (policy["frame-ancestors"], policy["base-uri"]) == ("'none'", "'none'")
            assert "unsafe" not in response.headers["Content-Security-Policy"]
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Referrer-Policy"] == "same-origin"
            assert response.headers["Cache-Control"] == "no-store"
            assert response.headers["Cross-Origin-Opener-Policy"] == "same-origin"
            assert "Server" not in response.headers


async def test_static_files_are_kept_and_change_their_address_with_their_content(opening: Opening) -> None:
    client = await opening()

    async with client.get("/sign-in") as page:
        (address,) = re.findall(r'href="(/static/[^"]+\.css)"', await page.text())
    async with client.get(address) as found:
        assert (found.status, found.content_type) == (200, "text/css")
        assert "immutable" in found.headers["Cache-Control"]
    for wrong in (
        re.sub("/static/[0-9a-f]+/", "/static/0000000000000000/", address),
        "/static/x/../../app.py",
    ):
        assert await status(client, wrong) == 404


async def test_removing_a_person_ends_their_session_and_what_it_has_open(
    tmp_path: Path, opening: Opening
) -> None:
    async def news(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b": hello\n\n")
        await asyncio.Event().wait()
        return response

    route = Route(method="GET", path="/news", handler=news, role=ConsoleRole.READ, is_stream=True)
    client = await opening(routes=(*PAGES, route))
    await sign_in(client)
    async with client.get("/news") as stream:
        assert await stream.content.readline() == b": hello\n"

        write_entries(
            tmp_path / "users.json", {name: entry for name, entry in ENTRIES.items() if name != "anna"}
        )

        async with asyncio.timeout(60):
            # Cut off in the middle, for such an answer has no end.
            with pytest.raises(ClientPayloadError):
                await stream.read()
    assert await status(client) == 303


@pytest.mark.parametrize(
    "changed",
    [
        Entry(role=ConsoleRole.READ, token=ENTRIES["anna"].token),
        Entry(role=ConsoleRole.SETTLE, token=hashed("another")),
        Entry(role=ConsoleRole.SETTLE, token=None),
    ],
)
async def test_any_change_of_a_person_ends_their_session_and_nobody_elses(
    tmp_path: Path, opening: Opening, changed: Entry
) -> None:
    anna, ben = await opening(), await opening()
    await sign_in(anna)
    await sign_in(ben, "ben")

    write_entries(tmp_path / "users.json", {**ENTRIES, "anna": changed})

    await until(lambda: status(anna), 303)
    assert await status(ben) == 200


async def test_a_file_that_breaks_changes_nobody_s_rights_and_is_told(
    tmp_path: Path, opening: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    client = await opening()
    await sign_in(client)

    (tmp_path / "users.json").write_text('{"anna": {"role": "administer"')

    async def is_told() -> bool:
        return "users and keys stay as they were" in caplog.text

    await until(is_told, True)
    assert await status(client) == 200


async def test_a_proxy_s_word_counts_with_its_secret_from_its_address(opening: Opening) -> None:
    client = await opening(**PROXY)
    told = {"X-Ticketgate-Proxy-Secret": SECRET, "X-Forwarded-User": "anna"}

    async with client.get("/", headers=told) as response:
        assert response.status == 200
        assert "anna" in await response.text()
    # The same session for the same person, and another for another.
    (first,) = [each.value for each in client.session.cookie_jar]
    assert await status(client, headers=told) == 200
    assert [each.value for each in client.session.cookie_jar] == [first]
    async with client.get("/", headers={**told, "X-Forwarded-User": "ben"}) as response:
        assert "ben" in await response.text()
    assert [each.value for each in client.session.cookie_jar] != [first]
    # A session that a proxy opened is nothing without one.
    assert await status(client) == 303


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        (PROXY, {"X-Forwarded-User": "anna"}),
        (PROXY, {"X-Forwarded-User": "anna", "X-Ticketgate-Proxy-Secret": "q" * 32}),
        (PROXY, {"X-Forwarded-User": "anna", "X-Ticketgate-Proxy-Secret": "é"}),
        (
            {**PROXY, "console_proxy": "10.1.2.3"},
            {"X-Forwarded-User": "anna", "X-Ticketgate-Proxy-Secret": SECRET},
        ),
        ({}, {"X-Forwarded-User": "anna", "X-Ticketgate-Proxy-Secret": ""}),
    ],
)
async def test_anybody_else_s_word_is_nothing_and_is_told_of(
    opening: Opening,
    settings: dict[str, str],
    headers: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = await opening(**settings)

    assert await status(client, headers=headers) == 303
    assert "is not believed: TICKETGATE_CONSOLE_PROXY" in caplog.text
    assert SECRET not in caplog.text


async def test_a_proxy_that_passes_on_what_a_browser_said_is_refused(opening: Opening) -> None:
    client = await opening(**PROXY)
    headers = [
        *(("X-Ticketgate-Proxy-Secret", SECRET), ("X-Forwarded-User", "cleo"), ("X-Forwarded-User", "ben")),
    ]

    assert await status(client, headers=headers) == 400


async def test_whom_a_proxy_names_and_nobody_knows_is_told_so(opening: Opening) -> None:
    client = await opening(**PROXY)
    headers = {"X-Ticketgate-Proxy-Secret": SECRET, "X-Forwarded-User": "mallory"}

    async with client.get("/", headers=headers) as response:
        assert response.status == 403
        assert "nobody of that name may come in" in await response.text()


async def test_a_fault_of_ours_tells_its_number_and_nothing_of_the_inside(
    opening: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        raise RuntimeError(f"inside, of {request[USER].name}")

    route = Route(method="GET", path="/fail", handler=fail, role=ConsoleRole.READ)
    client = await opening(routes=(*PAGES, route))
    await sign_in(client)

    async with client.get("/fail") as response:
        text = await response.text()
        assert response.status == 500
        assert "inside" not in text
        number = response.headers["X-Request-Id"]
    assert number in text
    assert number in caplog.text


async def test_what_takes_too_long_ends_and_says_that_nobody_knows(opening: Opening) -> None:
    async def hang(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    route = Route(method="GET", path="/hang", handler=hang, role=ConsoleRole.READ)
    client = await opening(routes=(*PAGES, route), web_timeout="2s")
    await sign_in(client)

    async with client.get("/hang") as response:
        assert response.status == 503
        assert "look whether it arrived" in await response.text()


async def test_a_script_whose_session_ended_is_led_to_sign_in(opening: Opening) -> None:
    client = await opening()
    headers = {"HX-Request": "true", "HX-Current-URL": f"http://127.0.0.1:{client.port}/?rule=a"}

    async with client.post("/", headers=headers, data={"a": "b"}) as posted:
        assert posted.status == 405
    async with client.get("/", headers=headers) as response:
        assert response.status == 401
        assert response.headers["HX-Redirect"] == "/sign-in?next=%2F%3Frule%3Da"


async def test_of_more_streams_than_a_browser_can_hold_the_oldest_ends(opening: Opening) -> None:
    async def news(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"x")
        await asyncio.Event().wait()
        return response

    route = Route(method="GET", path="/news", handler=news, role=ConsoleRole.READ, is_stream=True)
    client = await opening(routes=(*PAGES, route))
    await sign_in(client)

    opened = [await client.get("/news") for _ in range(MOST_STREAMS + 2)]
    async with asyncio.timeout(60):
        for each in opened[:2]:
            with pytest.raises(ClientPayloadError):
                await each.read()

    assert {each.status for each in opened} == {200}
    assert [await each.content.read(1) for each in opened[2:]] == [b"x"] * MOST_STREAMS
    for each in opened:
        each.close()


def test_no_token_and_no_hash_shows_in_a_repr() -> None:
    assert (ENTRIES["anna"].token or "?") not in repr(ENTRIES)
