"""Which attempts a case has had: what a lane judged of each, so that repair budgets outlive every process.

Promise: an attempt is written down before its verdict can be committed, and only if nobody has written to its case
since it was read; so however attempts are spread over partitions and lanes, each was judged with those before it in
view, and a budget is never exceeded. An attempt that is judged again after a crash overwrites its own entry.
A case is one hash by attempt number, for each version of its request. It holds few entries: once a case has ended,
what comes after it need not be written (agents/funnel/history.py says when).
Relies on: a Redis that forgets nothing (conditions.py), and the lane's token (tokens.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Annotated, NotRequired, cast

from pydantic import Field, TypeAdapter, ValidationError, with_config
from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey, proposal_key
from ticketgate.codecs.records.pieces import VerdictDocument, read_verdict, verdict_json
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.values.shape import IGNORE_UNKNOWN
from ticketgate.codecs.values.strict import JsonValue, encode
from ticketgate.codecs.verdict import Verdict
from ticketgate.store.clock import redis_now_ms
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.script import Script
from ticketgate.store.tokens import GUARD, LaneToken
from typing_extensions import TypedDict

# The field beside the attempts: counts the writes, so that a write upon an older reading is noticed.
_REVISION = "revision"

# news: for each case the revision that was read, how many attempts follow, and those as number and value. Returns the
# places, from 1, of the cases that were written to since; if there is one, nothing was written.
_RECORD = Script(
    "record attempts",
    f"""
local contested, at = {{}}, 1
for place, case in ipairs(cases) do
  if (redis.call('HGET', case, '{_REVISION}') or '0') ~= news[at] then table.insert(contested, place) end
  at = at + 2 + 2 * tonumber(news[at + 1])
end
if #contested > 0 then return contested end
at = 1
for _, case in ipairs(cases) do
  local count = tonumber(news[at + 1])
  for j = 1, count do redis.call('HSET', case, news[at + 2 * j], news[at + 2 * j + 1]) end
  redis.call('HINCRBY', case, '{_REVISION}', 1)
  redis.call('PEXPIRE', case, lifetime_ms)
  at = at + 2 + 2 * count
end
return contested
""",
    after=[GUARD],
    more_keys="cases",
    arguments=["lifetime_ms"],
    more_arguments="news",
)

# left_ms: what is left of the attempt's life. Returns 1 if it was set, 0 if the attempt stands. The case lives as long
# as its longest-lived attempt.
_RESTORE = Script(
    "restore an attempt",
    f"""
if redis.call('HSETNX', case, number, value) == 0 then return 0 end
redis.call('HINCRBY', case, '{_REVISION}', 1)
if redis.call('PTTL', case) < tonumber(left_ms) then redis.call('PEXPIRE', case, left_ms) end
return 1
""",
    keys=["case"],
    arguments=["number", "value", "left_ms"],
)

# What `_RESTORE` would return.
_WOULD_RESTORE = Script(
    "would restore an attempt",
    "return 1 - redis.call('HEXISTS', case, number)",
    keys=["case"],
    arguments=["number"],
)


@dataclass(frozen=True, slots=True)
class CaseKey:
    """One version of a case's request: its attempts share the budgets. key: the case's own, of no attempt."""

    key: IdempotencyKey
    version: int


def case_key(namespace: str, proposal: Proposal) -> CaseKey:
    """The case that a proposal is an attempt at. Attempts count from 1, so 0 is the case's own place."""
    key = proposal_key(namespace, proposal.tenant, proposal.case_id, 0)
    return CaseKey(key, proposal.request.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAttempt:
    """One attempt. at: where its proposal lies. call: only where the verdict was a repair. permitted: what it may
    change."""

    number: int
    at: Coordinate
    verdict: Verdict
    call: str | None = None
    permitted: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """The value in Redis. Raises ValueError for what JSON cannot carry."""
        value: dict[str, JsonValue] = {
            "at": str(self.at),
            "verdict": verdict_json(self.verdict),
            "permitted": [*self.permitted],
        }
        return encode(value if self.call is None else value | {"call": self.call})


@dataclass(frozen=True, slots=True)
class CaseHistory:
    """A case's attempts by number, as they stood when they were read; `revision` says when that was."""

    attempts: tuple[StoredAttempt, ...] = ()
    revision: int = 0


@dataclass(frozen=True, slots=True)
class NewAttempts:
    """Attempts at one case that were judged upon its history at `revision`."""

    case: CaseKey
    revision: int
    attempts: tuple[StoredAttempt, ...]


@dataclass(frozen=True, slots=True)
class WrittenAttempt:
    """An attempt as an output tells of it, and when that was written, in ms since 1970; negative if it does not say."""

    case: CaseKey
    attempt: StoredAttempt
    at_ms: int


@dataclass(frozen=True, slots=True)
class RestoredAttempts:
    """What became of some attempts: set anew, there already, over by age."""

    restored: int = 0
    present: int = 0
    expired: int = 0


class AttemptUnreadable(Exception):
    """An entry that ticketgate did not write. Nothing is judged upon it; a person looks, and may delete the hash."""

    def __init__(self, name: str, number: str, why: str) -> None:
        super().__init__(
            f"attempt {number} in Redis hash {name} cannot be read: {why}; "
            "delete the hash and restore it with `ticketgate claims rebuild`"
        )
        self.name, self.number = name, number


class AttemptHistory:
    """The attempts of one namespace. `ttl`: how long a case lives after its last write, as long as a claim."""

    def __init__(self, redis: Redis, keys: Keys, *, ttl: timedelta, durability: Durability) -> None:
        self._redis = redis
        self._keys = keys
        self._ttl_ms = round(ttl.total_seconds() * 1000)
        self._durability = durability

    async def read(self, cases: Collection[CaseKey]) -> Mapping[CaseKey, CaseHistory]:
        """The histories of some cases, in one round trip. Raises AttemptUnreadable and redis-py's errors."""
        wanted = [*dict.fromkeys(cases)]
        if not wanted:
            return {}
        async with self._redis.pipeline(transaction=False) as pipeline:
            for case in wanted:
                pipeline.hgetall(self._name(case))
            found = cast("list[dict[bytes, bytes]]", await pipeline.execute())
        return {case: _history(self._name(case), fields) for case, fields in zip(wanted, found, strict=True)}

    async def record(self, news: Sequence[NewAttempts], *, token: LaneToken) -> frozenset[CaseKey]:
        """Write a batch's attempts down before their verdicts are committed, in one round trip: all, or none.

        Returns the cases that were written to since they were read: read those again, judge again, record again.
        Empty: all stand. Raises `Superseded`, `ClaimsNotDurable` and redis-py's errors: nothing may be emitted then.
        """
        if not news:
            return frozenset()
        values: list[str | bytes | int] = []
        for each in news:
            values += [each.revision, len(each.attempts)]
            for attempt in each.attempts:
                values += [attempt.number, attempt.encode()]
        async with self._redis.pipeline(transaction=False) as pipeline:
            _RECORD.queue(
                pipeline,
                token=token.name,
                own_token=token.value,
                cases=[self._name(each.case) for each in news],
                news=values,
                lifetime_ms=self._ttl_ms,
            )
            # Rare in durability's sense: the claimed mark is raised by now, and would not show that these were lost.
            (contested,) = await self._durability.execute(pipeline, self._keys, is_rare=True)
        return frozenset(news[place - 1].case for place in cast("list[int]", contested))

    def _name(self, case: CaseKey) -> str:
        return self._keys.attempts(case.key, case.version)


async def restore_attempts(
    redis: Redis, keys: Keys, written: Sequence[WrittenAttempt], *, ttl: timedelta, dry_run: bool = False
) -> RestoredAttempts:
    """Restore attempts from what the outputs say, while no lane serves: an attempt that stands is never changed.

    Two round trips a batch. What is restored lives for what is left of `ttl` since its record, by Redis' own clock;
    `dry_run` changes nothing and says what would become of each.
    """
    now_ms, ttl_ms = await redis_now_ms(redis), round(ttl.total_seconds() * 1000)
    living = 0
    async with redis.pipeline(transaction=False) as pipeline:
        for each in written:
            # A record from a clock that runs ahead must not outlive a claim; one without a time gets a whole life.
            left_ms = ttl_ms if each.at_ms < 0 else min(ttl_ms, ttl_ms - (now_ms - each.at_ms))
            if left_ms <= 0:
                continue
            living += 1
            name, number = keys.attempts(each.case.key, each.case.version), each.attempt.number
            if dry_run:
                _WOULD_RESTORE.queue(pipeline, case=name, number=number)
            else:
                value = each.attempt.encode()
                _RESTORE.queue(pipeline, case=name, number=number, value=value, left_ms=left_ms)
        restored = sum(cast("list[int]", await pipeline.execute())) if living else 0
    return RestoredAttempts(restored, living - restored, len(written) - living)


@with_config(IGNORE_UNKNOWN)
class _AttemptDocument(TypedDict):
    at: Annotated[str, Field(min_length=1)]
    verdict: VerdictDocument
    permitted: list[str]
    call: NotRequired[str]


@cache
def _check() -> TypeAdapter[_AttemptDocument]:
    return TypeAdapter(_AttemptDocument)


def _history(name: str, fields: Mapping[bytes, bytes]) -> CaseHistory:
    revision = int(fields.get(_REVISION.encode(), b"0"))
    return CaseHistory(tuple(sorted(_attempts(name, fields), key=lambda each: each.number)), revision)


def _attempts(name: str, fields: Mapping[bytes, bytes]) -> Iterator[StoredAttempt]:
    for number, value in fields.items():
        if number == _REVISION.encode():
            continue
        try:
            checked = _check().validate_json(value)
            yield StoredAttempt(
                number=int(number),
                at=Coordinate.parse(checked["at"]),
                verdict=read_verdict(checked["verdict"]),
                call=checked.get("call"),
                permitted=tuple(checked["permitted"]),
            )
        except ValidationError as err:
            first = err.errors(include_url=False, include_input=False)[0]
            raise AttemptUnreadable(name, number.decode(errors="replace"), first["msg"]) from err
        except ValueError as err:
            raise AttemptUnreadable(name, number.decode(errors="replace"), str(err)) from err
