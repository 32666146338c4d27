"""Redis' clock: one that jumps closes the lanes until claims are rebuilt, one that is off by seconds closes nothing."""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.store.claims import Claim, Claims
from ticketgate.store.connect import connect
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.server_scripts import CANARIES, MOST_JUMP_MS
from ticketgate.store.servers import Clocks, LookAgain, Mistimed, look
from ticketgate.store.tokens import take_token
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.standing import stand
from .test_redis_identity import closed_for, decide, is_decided_once

KEYS = Keys("clock")
DAY_MS = 86_400_000
MINUTE = timedelta(minutes=1)
# A day more than a claim lives.
BEYOND_CLAIMS = load_settings(environment={}).settings.claim_ttl + timedelta(days=1)

# Adds what a file says to every wall clock that a process asks for.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long long *ahead;
static void __attribute__((constructor)) begin(void) {
  int file = open(getenv("CLOCK_AHEAD"), O_RDONLY);
  ahead = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
}
int clock_gettime(clockid_t id, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(id, at);
  if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) at->tv_sec += *ahead;
  return done;
}
int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"""


class Clock:
    """The clock of a server that is started while this stands in the environment."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set_ahead(0)

    def set_ahead(self, seconds: int) -> None:
        """By so much from now on."""
        with self._file.open("r+b" if self._file.exists() else "wb") as out:
            out.write(struct.pack("=q", seconds))


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to make a clock with")
    source, shim = tmp_path / "clock.c", tmp_path / "clock.so"
    source.write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
    made = Clock(tmp_path / "ahead")
    monkeypatch.setenv("CLOCK_AHEAD", str(tmp_path / "ahead"))
    monkeypatch.setenv("LD_PRELOAD", str(shim))
    return made


@pytest.fixture
def timed(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Valkey]:
    """A Valkey with that clock; nobody else has it."""
    with Valkey(data=tmp_path / "timed") as server:
        monkeypatch.delenv("LD_PRELOAD")
        yield server


@pytest.mark.kafka
@pytest.mark.redis
@pytest.mark.parametrize("is_watched", [True, False])
def test_after_a_jump_beyond_all_claims_nothing_is_emitted_until_claims_are_rebuilt(
    timed: Valkey, clock: Clock, kafka: Kafka, tmp_path: Path, is_watched: bool
) -> None:
    settings = {
        "POLICY": str(SEED_POLICY),
        "SCORER": f"fixed:{FIXED_ANSWERS}",
        "PARTITIONS": "2",
        "SESSION_TIMEOUT": "3s",
        "CONDITION_INTERVAL": "500ms",
    }
    with Deployment(kafka.bootstrap, timed.url, tmp_path / "deployment", settings) as gate:
        worker = gate.start_worker()
        decide(gate, worker, range(30))
        if not is_watched:
            assert worker.stop() == 0

        clock.set_ahead(round(BEYOND_CLAIMS.total_seconds()))

        if is_watched:
            worker.wait_for(
                closed_for("conditions", f"Redis' clock is {BEYOND_CLAIMS / MINUTE:,.0f} minutes ahead")
            )
        else:
            # Redis needs a moment to drop what it thinks is over.
            _wait_until_gone(gate)
        assert gate.run("claims", "rebuild").returncode == 2
        clock.set_ahead(0)
        if not is_watched:
            worker = gate.start_worker()
        worker.wait_for(closed_for("claims_lost", "clock jumped forward", "ticketgate claims rebuild"))
        assert gate.run("claims", "rebuild").returncode == 0
        is_decided_once(gate, worker, range(30))


def _wait_until_gone(gate: Deployment) -> None:
    from ...support.meddling import keys_of

    deadline = time.monotonic() + 60
    while keys_of(gate, "claim"):
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.kafka
@pytest.mark.redis
def test_a_clock_that_is_off_by_seconds_closes_nothing(
    timed: Valkey, clock: Clock, kafka: Kafka, tmp_path: Path
) -> None:
    settings = {
        "POLICY": str(SEED_POLICY),
        "SCORER": f"fixed:{FIXED_ANSWERS}",
        "PARTITIONS": "2",
        "CONDITION_INTERVAL": "500ms",
    }
    with Deployment(kafka.bootstrap, timed.url, tmp_path / "deployment", settings) as gate:
        worker = gate.start_worker()
        for number, ahead_s in enumerate((20, -40, 55, 0)):
            clock.set_ahead(ahead_s)
            decide(gate, worker, range(10 * number, 10 * number + 10))
        assert "reopens" not in worker.log()
        assert "refuses" not in worker.log()


@pytest.fixture
async def redis(valkey: Valkey) -> Redis:
    client = connect(valkey.url, timeout=timedelta(seconds=5))
    await stand(client, KEYS)
    return client


async def claim(redis: Redis) -> None:
    durability = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))
    claims = Claims(redis, KEYS, ttl=timedelta(days=14), durability=durability)
    wanted = Claim(IdempotencyKey("k"), Coordinate("tickets", 0, 0), Fingerprint("a"))
    await claims.claim([wanted], token=await take_token(redis, KEYS, "tickets", 0), claimed=1)


@pytest.mark.redis
@pytest.mark.parametrize("seen_ago_ms", [-MOST_JUMP_MS - 5_000, MOST_JUMP_MS + 5_000])
async def test_no_claim_is_made_where_the_clock_was_last_seen_far_away(
    redis: Redis, seen_ago_ms: int
) -> None:
    await claim(redis)
    await redis.hincrby(KEYS.server, "seen_ms", -seen_ago_ms)

    with pytest.raises(LookAgain):
        await claim(redis)

    assert not (await look(redis, KEYS, clocks=Clocks())).flaws
    await claim(redis)
    await redis.aclose()


@pytest.mark.redis
async def test_weeks_without_a_worker_are_no_jump(redis: Redis) -> None:
    await redis.hincrby(KEYS.server, "seen_ms", -60 * DAY_MS)
    await redis.delete(*(f"{KEYS.prefix}canary:{number}" for number in range(CANARIES - 1)))

    assert not (await look(redis, KEYS, clocks=Clocks())).flaws
    await redis.aclose()


@pytest.mark.redis
@pytest.mark.parametrize("quiet_ms", [0, 3_600_000, 3 * DAY_MS])
async def test_a_jump_there_and_back_while_nobody_watched_is_told_by_what_ended_early(
    redis: Redis, quiet_ms: int
) -> None:
    await redis.hincrby(KEYS.server, "seen_ms", -quiet_ms)
    for number in range(6):  # as after 15 days, the seventh lives for a month
        await redis.delete(f"{KEYS.prefix}canary:{number}")

    found = await look(redis, KEYS, clocks=Clocks())

    assert found.flaws == {"claims": "clock", "ledger": "clock"}
    await redis.aclose()


@pytest.mark.redis
async def test_a_machine_whose_own_clock_is_wrong_refuses_itself_alone(
    redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 7_200)

    with pytest.raises(Mistimed, match="120 minutes behind this machine's"):
        await look(redis, KEYS, clocks=Clocks())

    monkeypatch.undo()
    assert not (await look(redis, KEYS, clocks=Clocks())).flaws
    await redis.aclose()
