"""A worker's parts and their order: web port, Redis, the roles' consumers and lanes; and back.

Promise: `start` returns with the web port open and everything else on its way; while Redis or the broker is away the
worker waits and /readyz says for which. `stop` drains the lanes within the grace before anything is closed.
See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack

from aiohttp import web
from aiokafka import TopicPartition
from redis.asyncio import Redis
from ticketgate.agents.funnel.file.funnel_file import FunnelFile, open_lookup
from ticketgate.store.claims import Claims
from ticketgate.store.connect import ServerGuard, connect
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.underway import UnderWays
from ticketgate.streams.config.overdue import Steps
from ticketgate.streams.config.readiness import SCORER, Readiness
from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.setting_kinds import Role
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.consuming import Consuming
from ticketgate.streams.lane.lane_parts import LaneParts
from ticketgate.streams.lane.leavings import withdraw_forever
from ticketgate.streams.lane.opening.claims_store import ClaimsStore
from ticketgate.streams.lane.opening.handover import HandOver
from ticketgate.streams.lane.redis_watch import PART as REDIS
from ticketgate.streams.lane.redis_watch import watch_redis
from ticketgate.streams.lane.taking.batch import BatchHung, BatchTaker
from ticketgate.streams.lane.taking.floor import Floor
from ticketgate.streams.lane.taking.passing import PassingOver
from ticketgate.streams.lane.taking.records import RecordWriter, output_topics
from ticketgate.streams.lane.taking.tracing import open_tracing
from ticketgate.streams.process.exposure import tell_exposures
from ticketgate.streams.process.member import Membership
from ticketgate.streams.process.policy_keeping import KeptFirst, PolicyKeeper
from ticketgate.streams.process.preflight import without_password
from ticketgate.streams.process.process_watch import ProcessWatch, end_now, end_with
from ticketgate.streams.process.serving import open_web
from ticketgate.streams.process.web.health import health_routes
from ticketgate.streams.roles.decide.deciding import Decider
from ticketgate.streams.roles.effects.effect_ledger import durability_of
from ticketgate.streams.roles.effects.effects_role import open_effects
from ticketgate.streams.roles.evidences import Evidences
from ticketgate.streams.roles.settle.settle_role import Settling, open_settle
from ticketgate.streams.roles.takers import TakerParts, decide_taker, propose_taker

log = logging.getLogger(__name__)

EXIT_HUNG = 70


class Runner:
    """One worker process without its framework: app.py starts it as a Faust service."""

    def __init__(
        self,
        settings: Settings,
        *,
        decider: Decider | None,
        funnel: FunnelFile | None,
        settling: Settling | None = None,
        keeper: PolicyKeeper | None = None,
        telemetry: Telemetry,
        steps: Steps,
        describe: Callable[[], dict[str, object]],
        routes: Iterable[web.AbstractRouteDef] = (),
        member: Membership | None = None,
    ) -> None:
        """`decider`: for the role `decide`. `settling`: for `settle`, `keeper`: for both. `funnel`: for the others.
        `routes`: further pages of the web port, beside health and metrics. `member`: this is one of several under a
        supervisor."""
        self._settings = settings
        self._readiness = Readiness(REDIS)
        self._watch = ProcessWatch(steps)
        guard, self._url = ServerGuard(), settings.redis.get_secret_value()
        self._redis = connect(self._url, timeout=settings.redis_timeout, guard=guard)
        keys = Keys(settings.namespace)
        durability = durability_of(settings)
        self._under_ways = UnderWays(self._redis, keys)
        store = ClaimsStore(keys)
        hand_over = HandOver(settings, guard=guard, store=store, new_client=self._new_client)
        self._describe = describe
        self._web = open_web(
            settings,
            health=health_routes(
                readiness=self._readiness,
                telemetry=telemetry,
                guarantee=settings.guarantee,
                describe=self._tell,
            ),
            api=routes,
            socket=None if member is None else member.socket,
        )
        # A supervisor says for all of them what is open.
        self._tells_openly = member is None
        claims = Claims(self._redis, keys, ttl=settings.claim_ttl, durability=durability)
        writer = RecordWriter(
            output_topics(settings),
            max_bytes=settings.max_record_bytes,
            dispatch_with_ticket=settings.dispatch_with_ticket,
        )
        floor = Floor()
        self._taker_parts = TakerParts(
            floor=floor,
            settings=settings,
            redis=self._redis,
            keys=keys,
            durability=durability,
            hand_over=hand_over,
            claims=claims,
            writer=writer,
            telemetry=telemetry,
            readiness=self._readiness,
            tracing=open_tracing(os.environ),
        )
        self._lane_parts = LaneParts(
            settings=settings,
            redis=self._redis,
            keys=keys,
            under_ways=self._under_ways,
            floor=floor,
            durability=durability,
            hand_over=hand_over,
            store=store,
            passing=PassingOver(
                redis=self._redis,
                keys=keys,
                claims=claims,
                durability=durability,
                writer=writer,
                telemetry=telemetry,
            ),
            telemetry=telemetry,
            readiness=self._readiness,
            steps=steps,
            on_hang=self._end_hung,
        )
        self._decider = decider
        self._funnel = funnel
        self._settling = settling
        self._keeper = keeper
        self._roles: list[Consuming] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._closing = AsyncExitStack()

    def _new_client(self) -> Redis:
        return connect(self._url, timeout=self._settings.redis_timeout)

    @property
    def web_address(self) -> str:
        """`host:port` of the web port, once started."""
        return self._web.address

    async def start(self) -> None:
        """Open the web port and begin to consume. Raises OSError if the web port is taken."""
        if self._tells_openly:
            tell_exposures(self._settings, self._funnel)
        beside = self._open_roles()
        await self._web.start()
        for role in self._roles:
            self._run(role.run(), name=f"consume {role.terms.source}")
            self._run(role.watch_conditions(), name=f"watch conditions of {role.terms.source}")
            self._run(role.watch_leaders(), name=f"watch leaders of {role.terms.source}")
        if self._keeper is not None:
            self._run(self._keeper.run(), name="keep policies")
        for run in beside:
            self._run(run(), name="reconcile")
        self._run(withdraw_forever(self._under_ways), name="withdraw")
        where = without_password(self._settings.redis.get_secret_value())
        self._run(
            watch_redis(self._redis, self._readiness, where=where, on_other_server=self._look_now),
            name="watch redis",
        )
        self._run(self._watch.run(), name="watch the process")

    def _look_now(self) -> None:
        for role in self._roles:
            role.look_now()

    def _run(self, work: Coroutine[None, None, None], *, name: str) -> None:
        """Have something run beside all else, until `stop`."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(end_with)
        self._tasks.append(task)

    def _open_roles(self) -> list[Callable[[], Coroutine[None, None, None]]]:
        """Open what each role needs, in the loop that it runs in; what runs beside the lanes."""
        beside: list[Callable[[], Coroutine[None, None, None]]] = []
        parts, file = self._taker_parts, self._funnel
        if self._decider is not None:
            self._add("decide", decide_taker(parts, self._decider))
        if self._settling is not None:
            settle = open_settle(parts, self._settling)
            self._closing.push_async_callback(settle.close)
            self._add("settle", settle.taker)
        if file is None:
            return beside
        evidences: Evidences | None = None
        if file.lookup is not None:
            lookup = open_lookup(file, now=parts.clock)
            self._closing.push_async_callback(lookup.close)
            evidences = Evidences(lookup, self._readiness)
        if "propose" in self._settings.roles and file.catalogue is not None and evidences is not None:
            self._add("propose", propose_taker(parts, file.catalogue, evidences))
        if "effects" in self._settings.roles:
            effects = open_effects(parts, file, evidences)
            self._closing.push_async_callback(effects.close)
            self._add("effects", effects.taker)
            beside.append(effects.run)
        return beside

    def _add(self, role: Role, taker: BatchTaker) -> None:
        if self._keeper is not None and role in ("decide", "settle"):
            taker = KeptFirst(taker, self._keeper)
        self._roles.append(Consuming(role_terms(role, self._settings), taker=taker, parts=self._lane_parts))

    async def stop(self) -> None:
        """Drain the lanes within the grace, leave the groups, close. Who calls it bounds it: a client that is to say
        good-bye to a broker that is away may take long."""
        self._readiness.wait("worker", "stopping")
        grace_s = self._settings.drain_grace.total_seconds()
        await asyncio.gather(*(role.drain(grace_s) for role in self._roles))
        for task in self._tasks:
            task.remove_done_callback(end_with)
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._closing.aclose()
        await self._redis.aclose()
        await self._web.stop()

    async def _end_hung(self, source: TopicPartition, hung: BatchHung) -> None:
        """A hung thread ends with its process alone; the lane has told the successor what to look out for."""
        self._readiness.wait(SCORER, str(hung))
        log.error(
            "lane %s:%d: %s; ending, for a successor to take over", source.topic, source.partition, hung
        )
        end_now(EXIT_HUNG)

    def _tell(self) -> dict[str, object]:
        lanes = [lane for role in self._roles for lane in role.lanes]
        careful = {lane.name: lane.care for lane in lanes if lane.care}
        return {
            **self._describe(),
            "lanes": sorted(lane.name for lane in lanes),
            **({"careful": careful} if careful else {}),
        }
