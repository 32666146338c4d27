"""Evidence over HTTP and from Redis: what is taken, what is waited for, what is no evidence."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from redis.asyncio import Redis
from ticketgate.agents.funnel.evidence import (
    Authority,
    EvidenceUnreadable,
    LookupUnavailable,
    World,
    look_up,
)
from ticketgate.agents.funnel.file.funnel_file import load_funnel_file, open_lookup
from ticketgate.agents.funnel.lookups.http import HttpAuthority
from ticketgate.agents.funnel.lookups.sources import SourcedLookup
from ticketgate.agents.funnel.lookups.template import Template
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.streams.parts.valkey import Valkey

from ...support.funnel import WORLD, authority, call, request

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def proposal(actor: str = "user_demo", tenant: str = "", **changed: Any) -> Proposal:
    asked = request(actor_id=actor, **changed)
    return Proposal(case_id="case_1", attempt=1, call=call(), request=asked, tenant=tenant)


def says(status: int = 200, body: Any = None) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=content)

    return answer


KNOWN = "known"


async def answers_others(lookup: SourcedLookup) -> None:
    """The server answers about somebody well, so that what it answers about others is theirs."""
    assert await lookup.authority(proposal(KNOWN)) == Authority(actor_id=KNOWN)
    assert await lookup.world(proposal(KNOWN)) == World()


@asynccontextmanager
async def serving(tmp_path: Path, who: Answer, how: Answer, **settings: Any) -> AsyncIterator[SourcedLookup]:
    """A look-up by a funnel file, at a server that answers so."""

    async def who_but_known(given: web.Request) -> web.StreamResponse:
        is_known = given.match_info["actor"] == KNOWN
        return web.json_response({"actor_id": KNOWN}) if is_known else await who(given)

    async def how_but_known(given: web.Request) -> web.StreamResponse:
        is_known = (await given.json())["request"]["actor_id"] == KNOWN
        return web.json_response({}) if is_known else await how(given)

    app = web.Application()
    app.router.add_get("/authority/{actor:.+}", who_but_known)
    app.router.add_post("/world", how_but_known)
    async with TestServer(app) as server:
        more = "\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items())
        file = tmp_path / "funnel.toml"
        file.write_text(
            f'''catalogue = "payments"
[lookup.authority]
adapter = "http"
url = "{server.make_url("/authority/")}{{actor_id}}"
{more}
[lookup.world]
adapter = "http"
url = "{server.make_url("/world")}"
{more}
'''
        )
        lookup = open_lookup(load_funnel_file(file))
        try:
            yield lookup
        finally:
            await lookup.close()


async def test_what_a_server_says_is_taken_whole(tmp_path: Path) -> None:
    asked: list[tuple[str, Any]] = []

    async def who(given: web.Request) -> web.StreamResponse:
        asked.append((given.path, given.headers.get("Authorization")))
        return web.json_response(authority().to_json())

    async def how(given: web.Request) -> web.StreamResponse:
        asked.append((given.path, await given.json()))
        return web.json_response(WORLD.to_json())

    async with serving(tmp_path, who, how) as lookup:
        evidence = await look_up(proposal(tenant="acme"), lookup)

    assert (evidence.authority, evidence.world, evidence.unreadable) == (authority(), WORLD, ())
    assert sorted(asked) == [
        ("/authority/user_demo", None),
        ("/world", {"tenant": "acme", "case_id": "case_1", "request": request().to_json()}),
    ]


async def test_an_actor_whom_nobody_knows_has_no_authority(tmp_path: Path) -> None:
    async with serving(tmp_path, says(404), says(body={})) as lookup:
        evidence = await look_up(proposal(), lookup)

    assert (evidence.authority, evidence.world, evidence.unreadable) == (None, World(), ())


@pytest.mark.parametrize("status", [301, 302, 401, 407, 429, 502, 503, 504])
async def test_a_server_that_is_away_or_refuses_the_token_is_waited_for(tmp_path: Path, status: int) -> None:
    async with serving(tmp_path, says(status), says(body={})) as lookup:
        with pytest.raises(LookupUnavailable, match=str(status)):
            await look_up(proposal(), lookup)


@pytest.mark.parametrize("status", [204, 400, 403, 404, 500])
async def test_any_other_status_among_good_ones_is_no_evidence(tmp_path: Path, status: int) -> None:
    async with serving(tmp_path, says(body=authority().to_json()), says(status)) as lookup:
        await answers_others(lookup)
        evidence = await look_up(proposal(), lookup)

    assert evidence.authority == authority()
    assert evidence.world == World()
    assert evidence.unreadable == (f"world:status {status}, where 200 is expected",)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "empty value"),
        (b"<html>", "not JSON"),
        (b'{"actor_id": "user_demo", "actor_id": "root"}', "duplicate key"),
        ([], "the answer: "),
        ({}, "actor_id: "),
        ({"actor_id": "user_demo", "limit": {"max_single_payment_gbp": "1"}}, "limit: unknown field"),
        (
            {"actor_id": "user_demo", "limits": {"max_single_payment_gbp": 1}},
            "limits.max_single_payment_gbp: ",
        ),
        ({"actor_id": "user_demo", "tools": "schedule_transfer"}, "tools: "),
        ({"actor_id": "user_other"}, "it is of another actor, user_other"),
    ],
)
async def test_an_answer_of_another_shape_is_no_evidence(tmp_path: Path, body: Any, why: str) -> None:
    async with serving(tmp_path, says(body=body), says(body={})) as lookup:
        await answers_others(lookup)
        evidence = await look_up(proposal(), lookup)

    assert evidence.authority is None
    (told,) = evidence.unreadable
    assert told.startswith(f"authority:{why}")


@pytest.mark.parametrize("world", [{"facts": {"balance": 1.5}}, {"facts": {"balance": None}}, {"fact": {}}])
async def test_a_world_is_read_as_strictly(tmp_path: Path, world: Any) -> None:
    async with serving(tmp_path, says(404), says(body=world)) as lookup:
        await answers_others(lookup)
        with pytest.raises(EvidenceUnreadable):
            await lookup.world(proposal())


async def test_an_answer_beyond_the_limit_is_no_evidence(tmp_path: Path) -> None:
    huge = {"facts": {"note": "x" * 5000}}
    async with serving(tmp_path, says(404), says(body=huge), max_bytes=4096) as lookup:
        await answers_others(lookup)
        with pytest.raises(EvidenceUnreadable, match="too large"):
            await lookup.world(proposal())


async def test_no_answer_in_time_is_waited_for(tmp_path: Path) -> None:
    async def never(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(tmp_path, never, says(body={}), timeout_s=0.2) as lookup:
        with pytest.raises(LookupUnavailable, match=r"no answer in 0\.2 s"):
            await lookup.authority(proposal())


async def test_a_server_that_is_gone_is_waited_for(tmp_path: Path) -> None:
    async def hangs_up(given: web.Request) -> web.StreamResponse:
        assert given.transport is not None
        given.transport.close()
        return web.Response()

    async with serving(tmp_path, hangs_up, says(body={})) as lookup:
        with pytest.raises(LookupUnavailable, match="no connection"):
            await lookup.authority(proposal())


async def test_one_that_is_away_outweighs_one_that_is_unreadable(tmp_path: Path) -> None:
    async with serving(tmp_path, says(500), says(503)) as lookup:
        with pytest.raises(LookupUnavailable):
            await look_up(proposal(), lookup)


async def test_no_redirect_carries_the_token_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVIDENCE_TOKEN", "s3cret")
    tokens: list[str | None] = []

    async def who(given: web.Request) -> web.StreamResponse:
        tokens.append(given.headers.get("Authorization"))
        raise web.HTTPFound("/authority/root")

    async with serving(tmp_path, who, says(body={}), token_env="EVIDENCE_TOKEN") as lookup:  # noqa: S106 - its name
        with pytest.raises(LookupUnavailable, match="302"):
            await lookup.authority(proposal())

    assert tokens == ["Bearer s3cret"]


@pytest.mark.parametrize("actor", ["../root", "a/b", "a?b#c", "a%2Fb", "é", "a b", "{actor_id}"])
async def test_an_actor_id_is_one_part_of_the_path(tmp_path: Path, actor: str) -> None:
    async def who(given: web.Request) -> web.StreamResponse:
        _, where, part = given.raw_path.split("/")
        return web.json_response({"actor_id": unquote(part) if where == "authority" else where})

    async with serving(tmp_path, who, says(body={})) as lookup:
        assert await lookup.authority(proposal(actor)) == Authority(actor_id=actor)


@pytest.mark.parametrize("actor", [".", ".."])
async def test_an_actor_id_cannot_climb(tmp_path: Path, actor: str) -> None:
    async with serving(tmp_path, says(body={}), says(body={})) as lookup:
        with pytest.raises(EvidenceUnreadable, match="dots"):
            await lookup.authority(proposal(actor))


@pytest.mark.parametrize("changed", [{"tenant": ".."}, {"operation": ".."}, {"tenant": "."}])
async def test_nor_can_any_other_part_of_the_url(changed: dict[str, str]) -> None:
    url = Template.read("http://127.0.0.1:9/{tenant}/{operation}/{actor_id}", must=("actor_id",))
    source = HttpAuthority(url=url, timeout_s=1, max_bytes=1024)

    with pytest.raises(EvidenceUnreadable, match="dots"):
        await source.authority(proposal(**changed))


@pytest.fixture
async def redis(valkey: Valkey) -> AsyncIterator[Redis]:
    client = Redis.from_url(valkey.url)
    try:
        yield client
    finally:
        await client.aclose()


def in_redis(tmp_path: Path, url: str) -> SourcedLookup:
    file = tmp_path / "funnel.toml"
    file.write_text(
        f'''catalogue = "payments"
[lookup.authority]
adapter = "redis"
url = "{url}"
key = "authority:{{tenant}}:{{actor_id}}"
[lookup.world]
adapter = "redis"
url = "{url}"
key = "world:{{operation}}:{{values.account_id}}"
timeout_s = 1
'''
    )
    return open_lookup(load_funnel_file(file))


async def test_redis_gives_what_stands_under_the_keys(tmp_path: Path, valkey: Valkey, redis: Redis) -> None:
    await redis.set("authority:acme:user_demo", json.dumps(authority().to_json()))
    await redis.set("world:schedule:acct_demo", json.dumps(WORLD.to_json()))
    lookup = in_redis(tmp_path, valkey.url)

    evidence = await look_up(proposal(tenant="acme"), lookup)

    await lookup.close()
    assert (evidence.authority, evidence.world, evidence.unreadable) == (authority(), WORLD, ())


async def test_what_redis_lacks_is_nobody_and_no_facts(tmp_path: Path, valkey: Valkey) -> None:
    lookup = in_redis(tmp_path, valkey.url)

    evidence = await look_up(proposal(values={}), lookup)

    await lookup.close()
    assert (evidence.authority, evidence.world, evidence.unreadable) == (None, World(), ())


async def test_what_redis_holds_in_another_shape_is_no_evidence(
    tmp_path: Path, valkey: Valkey, redis: Redis
) -> None:
    await redis.hset("authority::user_demo", mapping={"tools": "all"})
    await redis.set("world:schedule:acct_demo", "{")
    lookup = in_redis(tmp_path, valkey.url)

    evidence = await look_up(proposal(), lookup)

    await lookup.close()
    assert evidence.unreadable[0] == "authority:the key holds no text"
    assert evidence.unreadable[1].startswith("world:not JSON")


async def test_a_redis_that_is_away_is_waited_for(tmp_path: Path, valkey: Valkey) -> None:
    lookup = in_redis(tmp_path, valkey.url)
    valkey.stop()

    with pytest.raises(LookupUnavailable, match="no Redis answers"):
        await look_up(proposal(), lookup)

    await lookup.close()


def test_two_proposals_of_different_parts_never_share_a_key() -> None:
    key = Template.read("authority:{tenant}:{actor_id}", must=("actor_id",))

    assert key.fill(proposal("b:c", tenant="a")) == "authority:a:b%3Ac"
    assert key.fill(proposal("c", tenant="a:b")) == "authority:a%3Ab:c"
    assert key.fill(proposal("a@b.example-1_x~")) == "authority::a@b.example-1_x~"


async def test_what_was_looked_up_is_told_as_it_can_be_read_again() -> None:
    class Both:
        async def authority(self, proposal: Proposal) -> Authority | None:
            return authority(version="a7")

        async def world(self, proposal: Proposal) -> World:
            return World(facts={"b": "1"}, request_version=2, version="w3")

    evidence = await look_up(proposal(), Both())

    assert evidence.to_json() == {
        "authority": {
            "actor_id": "user_demo",
            "tools": ["quote_transfer", "schedule_transfer"],
            "limits": {"max_single_payment_gbp": "1000.00"},
            "confirmations": [
                {
                    "event_id": "ev_1",
                    "actor_id": "user_demo",
                    "operation": "schedule",
                    "bound": dict(authority().confirmations[0].bound),
                    "confirmed_at": "2026-09-01T11:58:00.000Z",
                }
            ],
            "version": "a7",
        },
        "world": {"facts": {"b": "1"}, "request_version": 2, "version": "w3"},
    }
