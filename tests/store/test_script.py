"""A script reads by name what it was given by name, and whatever does not fit is refused before anything is sent."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest
import ticketgate.store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis
from ticketgate.agents.effects.adapters import redis as adapter
from ticketgate.store.ledger.scripts import Step
from ticketgate.store.script import Fragment, Script, ScriptMisused, Value

GUARD = Fragment("if lane == '' then return 0 end", keys=["lane"])
ALL = Script(
    "all",
    "return {lane, mark, claims, lifetime, values}",
    after=[GUARD],
    keys=["mark"],
    more_keys="claims",
    arguments=["lifetime"],
    more_arguments="values",
)


@pytest.mark.redis
async def test_each_name_reads_what_it_was_given(redis: Redis) -> None:
    found = await ALL(redis, values=["v1", b"v2", 3], claims=["c1", "c2"], lifetime=7, mark="m", lane="l")

    assert found == [b"l", b"m", [b"c1", b"c2"], b"7", [b"v1", b"v2", b"3"]]


@pytest.mark.redis
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(data=st.data(), keys=st.integers(0, 5), arguments=st.integers(0, 5))
async def test_however_many_names_there_are(
    redis: Redis, data: st.DataObject, keys: int, arguments: int
) -> None:
    key_names, names = [f"key{n}" for n in range(keys)], [f"argument{n}" for n in range(arguments)]
    lists = [name for name in ("more_keys", "more_arguments") if data.draw(st.booleans())]
    script = Script(
        "drawn",
        f"return {{{', '.join([*key_names, *names, *lists])}}}",
        keys=key_names,
        arguments=names,
        more_keys="more_keys" if "more_keys" in lists else None,
        more_arguments="more_arguments" if "more_arguments" in lists else None,
    )
    value = st.binary(max_size=8)
    named = {name: data.draw(value) for name in [*key_names, *names]}
    listed = {name: data.draw(st.lists(value, max_size=5)) for name in lists}

    async with redis.pipeline(transaction=False) as pipeline:
        script.queue(pipeline, **named, **listed)
        (found,) = await pipeline.execute()

    assert found == [*named.values(), *listed.values()]


@pytest.mark.redis
async def test_a_list_may_be_longer_than_what_lua_unpacks(redis: Redis) -> None:
    script = Script("count", "return {#claims, #values}", more_keys="claims", more_arguments="values")

    assert await script(redis, claims=["c"] * 10_000, values=["v"] * 20_000) == [10_000, 20_000]


NAMED: dict[str, Value | list[Value]] = {
    "lane": "l",
    "mark": "m",
    "claims": ["c"],
    "lifetime": 7,
    "values": [],
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mark": None}, "script all: mark is missing"),
        ({"lifetime": None, "life": 7}, "lifetime is missing, it reads no life"),
        ({"mark": ["m"]}, "mark is one value, and not list"),
        ({"lifetime": 7.5}, "lifetime is one value, and not float"),
        ({"claims": "c"}, "claims is a list, and not str"),
        ({"values": b"v"}, "values is a list, and not bytes"),
    ],
)
async def test_a_call_that_does_not_fit_sends_nothing(changes: dict[str, object], said: str) -> None:
    given = {name: value for name, value in {**NAMED, **changes}.items() if value is not None}
    # Nothing listens there: had anything been sent, it would be a connection's error.
    redis = Redis(port=1)

    with pytest.raises(ScriptMisused, match=said):
        await ALL(redis, **given)  # type: ignore[arg-type]  # a caller's mistake
    async with redis.pipeline() as pipeline:
        with pytest.raises(ScriptMisused, match=said):
            ALL.queue(pipeline, **given)  # type: ignore[arg-type]  # a caller's mistake
        assert not pipeline.command_stack


@pytest.mark.parametrize(
    ("text", "keys", "arguments", "said"),
    [
        ("return mark", ["mark", "lane"], [], "lane is declared and not read"),
        ("return mark", ["mark"], ["mark"], "mark is declared twice"),
        ("return end", ["end"], [], "'end' cannot be a name in Lua"),
        ("return redis", ["redis"], [], "'redis' cannot be a name in Lua"),
        ("return 'a-b'", ["a-b"], [], "'a-b' cannot be a name in Lua"),
        ("return KEYS[2] .. mark", ["mark"], [], "KEYS or ARGV"),
        ("return mark .. ARGV[1]", ["mark"], [], "KEYS or ARGV"),
        ("local found, mark = 1, 2 return mark", ["mark"], [], "hides mark behind a local variable"),
        ("local function mark() end return mark", ["mark"], [], "hides mark behind a local variable"),
    ],
)
def test_a_script_that_could_not_work_is_refused_where_it_stands(
    text: str, keys: list[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(ScriptMisused, match=said):
        Script("planted", text, keys=keys, arguments=arguments)


def test_a_fragment_cannot_hide_what_its_script_reads() -> None:
    with pytest.raises(ScriptMisused, match="hides mark"):
        Script("planted", "return mark", after=[Fragment("local mark = 1")], keys=["mark"])


def scripts() -> Iterator[Script]:
    """All scripts of the product."""
    names = [each.name for each in pkgutil.walk_packages(ticketgate.store.__path__, "ticketgate.store.")]
    for module in (*(importlib.import_module(name) for name in names), adapter):
        for value in vars(module).values():
            yield from [value] if isinstance(value, Script) else []
            yield from (value.in_lane, value.outside) if isinstance(value, Step) else ()


SCRIPTS = {script.name: script for script in scripts()}


def test_scripts_are_told_apart_by_their_names() -> None:
    assert len(SCRIPTS) == len({id(script) for script in scripts()})
    assert len(SCRIPTS) > 25


# What a server gives to scripts, as far as ours need it.
GIVEN = {"redis", "string", "table", "math", "tonumber", "ipairs", "unpack", "KEYS", "ARGV"}
WORDS = {
    "and",
    "do",
    "else",
    "elseif",
    "end",
    "false",
    "for",
    "function",
    "if",
    "in",
    "local",
    "nil",
    "not",
    "or",
}
WORDS |= {"return", "then", "true"}


def unknown_names(text: str) -> set[str]:
    """What a text reads that neither it nor the server gives a name to: Lua would tell when it comes there."""
    text = re.sub(r"'[^']*'|--[^\n]*", "", text)
    own = re.findall(r"\b(?:local|for|function)[ \t]+(?:function[ \t]+)?([\w, \t]+)", text)
    own += re.findall(r"function \w+\(([\w, ]*)\)", text)
    named = {name for each in own for name in re.findall(r"\w+", each)}
    return set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)) - named - GIVEN - WORDS


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_reads_no_name_that_nobody_gave(name: str) -> None:
    assert not unknown_names(SCRIPTS[name].text)


def test_a_name_that_nobody_gave_is_found() -> None:
    script = Script("planted", "local a = mark\nfor i, b in ipairs(a) do c(i, b, markk) end", keys=["mark"])

    assert unknown_names(script.text) == {"c", "markk"}


@pytest.mark.redis
@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_is_lua(redis: Redis, name: str) -> None:
    assert await redis.script_load(SCRIPTS[name].text)
