"""Scripts in Redis: how each one is written, and called by name.

A script declares the names of the keys and arguments that it reads, and its text uses them; the first lines, which
read KEYS and ARGV, are generated here and nowhere else. Where more of a kind follow, they are one list with a name of
its own. What several scripts begin with is a `Fragment`, which declares the names that it reads, so that a script
takes the names of its fragments and its own:

    GUARD = Fragment(
        "if redis.call('GET', token) ~= own_token then return 0 end", keys=["token"], arguments=["own_token"]
    )
    RAISE = Script(
        "raise", "redis.call('SET', mark, least) return 1", after=[GUARD], keys=["mark"], arguments=["least"]
    )
    await RAISE(redis, token="…", own_token="…", mark="…", least=7)

Promise: what is declared is read, and what is called is declared: a name that is missing, unknown, or a list where one
value belongs raises `ScriptMisused` in Python, before anything is sent. Each call is one EVAL of the whole text, so a
server that has just started knows it, and a user of Redis needs no right to load scripts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline

Value = str | bytes | int
"""A key's name or an argument; Lua reads each as a string."""

# What a local variable may not be called, or the text would read something else under a name that it needs.
_TAKEN: Final = re.compile(
    "and|break|do|else|elseif|end|false|for|function|if|in|local|nil|not|or|repeat|return|then|true|until|while|"
    "ipairs|math|next|pairs|redis|string|table|tonumber|tostring|type|unpack"
)

_LOCALS: Final = re.compile(r"\blocal[ \t]+(?:function[ \t]+)?([\w, \t]+)")


class ScriptMisused(TypeError):
    """A script is declared or called with names that do not fit: a mistake in the code that does so, told before
    anything is sent. `script` is its name."""

    def __init__(self, script: str, why: str) -> None:
        super().__init__(f"script {script}: {why}")
        self.script = script


class Fragment:
    """A piece of Lua that scripts begin with, and the names that it reads. Its local variables are the script's too."""

    def __init__(self, text: str, *, keys: Sequence[str] = (), arguments: Sequence[str] = ()) -> None:
        self.text = text
        self.keys = tuple(keys)
        self.arguments = tuple(arguments)


class Script:
    """A script that reads its keys and arguments by name.

    name: for errors and for Redis' slow log. after: the fragments that run first, in order. more_keys and
    more_arguments: the names of the lists of what follows, if any. Raises `ScriptMisused` where a name is declared
    twice, is no name in Lua, is not read or is hidden by a local variable, and where the text reads KEYS or ARGV.
    """

    def __init__(
        self,
        name: str,
        text: str,
        *,
        after: Sequence[Fragment] = (),
        keys: Sequence[str] = (),
        more_keys: str | None = None,
        arguments: Sequence[str] = (),
        more_arguments: str | None = None,
    ) -> None:
        self.name = name
        # Fragments may read the same name; it is given once.
        self._keys = tuple(dict.fromkeys([*(key for each in after for key in each.keys), *keys]))
        given = [argument for each in after for argument in each.arguments]
        self._arguments = tuple(dict.fromkeys([*given, *arguments]))
        self._more_keys, self._more_arguments = more_keys, more_arguments
        lists = [each for each in (more_keys, more_arguments) if each is not None]
        names = [*self._keys, *self._arguments, *lists]
        self._names = frozenset(names)
        body = [line for each in (*(fragment.text for fragment in after), text) for line in _lines(each)]
        self._require_sound(names, "\n".join(body))
        read = [
            *_read("KEYS", self._keys, more_keys),
            *_read("ARGV", self._arguments, more_arguments),
        ]
        self.text = "\n".join([f"-- {name}", *read, *body])
        """What Redis is sent."""

    async def __call__(self, redis: Redis, /, **given: Value | Sequence[Value]) -> object:
        """Run it now, with each name given once; what it returns. Raises `ScriptMisused` and redis-py's errors."""
        keys, arguments = self._in_order(given)
        reply: object = await redis.eval(self.text, len(keys), *keys, *arguments)
        return reply

    def queue(self, pipeline: Pipeline, /, **given: Value | Sequence[Value]) -> None:
        """Queue it in a pipeline, whose `execute` gives what it returns. Raises `ScriptMisused`."""
        keys, arguments = self._in_order(given)
        pipeline.eval(self.text, len(keys), *keys, *arguments)

    def _in_order(self, given: Mapping[str, Value | Sequence[Value]]) -> tuple[list[Value], list[Value]]:
        if given.keys() != self._names:
            wrong = [f"{name} is missing" for name in sorted(self._names - given.keys())]
            wrong += [f"it reads no {name}" for name in sorted(given.keys() - self._names)]
            raise ScriptMisused(self.name, ", ".join(wrong))
        keys, arguments = self._all(self._more_keys, given), self._all(self._more_arguments, given)
        keys += [self._one(name, given[name]) for name in self._keys]
        arguments += [self._one(name, given[name]) for name in self._arguments]
        return keys, arguments

    def _one(self, name: str, value: Value | Sequence[Value]) -> Value:
        if isinstance(value, str | bytes | int):
            return value
        raise ScriptMisused(self.name, f"{name} is one value, and not {type(value).__name__}")

    def _all(self, name: str | None, given: Mapping[str, Value | Sequence[Value]]) -> list[Value]:
        if name is None:
            return []
        values = given[name]
        # A string would be taken for the list of its characters.
        if isinstance(values, str | bytes | int):
            raise ScriptMisused(self.name, f"{name} is a list, and not {type(values).__name__}")
        return list(values)

    def _require_sound(self, names: Sequence[str], body: str) -> None:
        for name in names:
            if not re.fullmatch(r"[a-z_][a-z0-9_]*", name) or _TAKEN.fullmatch(name):
                raise ScriptMisused(self.name, f"{name!r} cannot be a name in Lua")
            if names.count(name) > 1:
                raise ScriptMisused(self.name, f"{name} is declared twice")
            if not re.search(rf"\b{name}\b", body):
                raise ScriptMisused(self.name, f"{name} is declared and not read")
        hidden = {name for found in _LOCALS.findall(body) for name in re.findall(r"\w+", found)}
        if lost := sorted(hidden & self._names):
            raise ScriptMisused(self.name, f"its text hides {', '.join(lost)} behind a local variable")
        if re.search(r"\b(KEYS|ARGV)\b", body):
            raise ScriptMisused(
                self.name, "its text reads KEYS or ARGV; declare names for what it reads there"
            )


def _lines(text: str) -> list[str]:
    """What Lua needs of a text: Redis digests all that it is sent, with each call."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("--")]


def _read(table: str, names: Sequence[str], rest: str | None) -> list[str]:
    """The line that gives names to what stands in KEYS or ARGV, as `_in_order` puts it there."""
    if rest is None:
        values = [f"{table}[{place}]" for place in range(1, len(names) + 1)]
        return [f"local {', '.join(names)} = {', '.join(values)}"] if names else []
    # The list comes first, and what follows it is taken off: a copy of the list would cost each claim.
    values = [table, *[f"table.remove({table})"] * len(names)]
    return [f"local {', '.join([rest, *reversed(names)])} = {', '.join(values)}"]
