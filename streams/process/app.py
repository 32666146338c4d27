"""The Faust app: the only room that knows Faust.

Faust runs the app and the deciding; aiokafka carries the records and lanes own their delivery, for Faust's consumer
acknowledges a message whose agent raised, and its exactly_once sends outside any transaction to topics that it does
not consume. So the app boots without Kafka, and a lane puts its tickets into a line and an event on a bounded channel,
for which the agent decides what stands at the head of the line. Nothing is raised out of the agent. See
ARCHITECTURE.md#delivery.

`faust -A ticketgate.streams.app worker` finds `app`, made from the environment's settings when it is asked for.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, NoReturn

import faust
from faust.app.base import BootStrategy
from faust.worker import Worker
from mode import Service
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.policy import Policy
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.verdict import Stage
from ticketgate.streams.config.overdue import Step, Steps
from ticketgate.streams.config.settings import Settings, load_settings
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.process.collector import set_up_collector
from ticketgate.streams.process.member import Membership
from ticketgate.streams.process.policy_in_force import JudgedBy, PolicyInForce
from ticketgate.streams.process.preflight import (
    STARTUP_ERRORS,
    needs_funnel,
    needs_policy,
    open_decider,
    port_taken,
    require_funnel,
)
from ticketgate.streams.process.process_watch import end_now, end_within
from ticketgate.streams.process.runner import Runner
from ticketgate.streams.process.serving import open_systemone
from ticketgate.streams.roles.decide.line import Line
from ticketgate.streams.roles.decide.model_decider import ModelDecider
from ticketgate.streams.roles.decide.scorers import with_aliases
from ticketgate.streams.roles.settle.settle_role import Settling

log = logging.getLogger(__name__)

# What stands on the channel: somebody joined the line.
TURN = "turn"
# Turns that may wait for the agent; a lane that finds it full waits, and takes nothing meanwhile.
CHANNEL_SIZE = 16
# After the grace of a drain, the most that leaving the groups and closing may take. Lanes that are cut short take 8 s
# of it at most (assignment.py); the rest is Faust's.
STOP_BOUND_S = 10.0
# Beyond the time that deciding one batch may take: the agent did not answer, and will not.
DECIDE_MARGIN_S = 60.0
# How often a start looks whether the agent has subscribed to its channel.
SUBSCRIBER_POLL_S = 0.01


class WithoutKafka(BootStrategy):
    """Boot agents and tables without Faust's consumer, producer and web server."""

    enable_kafka = False
    enable_web = False


class ChannelDecider:
    """The lanes' port to the agent: tickets go into the line, and each that joins it is one turn of the agent's, which
    may take others' tickets with it (line.py). `timeout_s`: the most that deciding some tickets may take."""

    def __init__(
        self, channel: Any, line: Line, decider: ModelDecider, *, steps: Steps, timeout_s: float
    ) -> None:
        self._channel = channel
        self._line = line
        self._decider = decider
        self._steps = steps
        # Together with others', and then alone.
        self._limit_s = 2 * timeout_s + DECIDE_MARGIN_S
        self._waiting: set[Step] = set()

    async def decide(self, tickets: Sequence[Ticket]) -> Sequence[Decision]:
        """Put the tickets into the line, have the agent take a turn, and wait."""
        waiting = self._line.join(tickets)
        with self._steps.step("deciding", limit_s=self._limit_s) as step:
            self._waiting.add(step)
            try:
                await self._channel.send(value=TURN)
                return await waiting.decisions
            finally:
                self._line.leave(waiting)
                self._waiting.discard(step)
                # It is another's turn.
                self._steps.renew(*self._waiting)

    def refuse(self, stage: Stage, reasons: Sequence[str]) -> Decision:
        """A decision for review without inference."""
        return self._decider.refuse(stage, reasons)


class Deciding:
    """The role `decide`: policy and scorer, the agent on its channel, and the pages that the scorer answers.

    Raises what opening the policy or the scorer raises.
    """

    def __init__(
        self, app: faust.App, settings: Settings, telemetry: Telemetry, steps: Steps, judged_by: JudgedBy
    ) -> None:
        self._model = open_decider(settings, telemetry)
        self._judged_by = judged_by
        self._channel: Any = app.channel(maxsize=CHANNEL_SIZE)
        self._reload = judged_by.watch(self._model.policy, self._model.adopt)
        self._endpoint = open_systemone(settings, with_aliases(settings, self._model.scorer))
        self.routes = self._endpoint.routes
        line = Line(self._model.decide)
        self.decider = ChannelDecider(
            self._channel,
            line,
            self._model,
            steps=steps,
            timeout_s=settings.scorer_timeout.total_seconds(),
        )

        @app.agent(self._channel, name="decide", concurrency=1)
        async def take_turns(turns: Any) -> None:
            async for _ in turns:
                await line.take_turn()

    async def start(self) -> None:
        """Wait until the agent listens: a put on a channel without a subscriber is dropped without a word."""
        while not self._channel._subscribers:  # noqa: ASYNC110 - Faust tells nobody
            await asyncio.sleep(SUBSCRIBER_POLL_S)
        self._reload.start()

    async def stop(self) -> None:
        """Close what `start` and opening opened."""
        await self._endpoint.close()
        await self._reload.stop()
        self._model.close()

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._model.policy

    def describe(self) -> dict[str, object]:
        """For /readyz."""
        return {**self._model.describe(), **self._judged_by.describe(self._reload)}


def create_app(settings: Settings, member: Membership | None = None) -> faust.App:
    """The app of one worker process. Raises what opening the policy, the scorer or the funnel file raises.

    `member`: what a supervisor told this process, where it is one of several.
    """
    telemetry, steps = Telemetry(), Steps()
    folder = tempfile.mkdtemp(prefix="ticketgate-faust-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    app = faust.App(
        settings.group,
        # Never connected to: the app boots without Kafka.
        broker=f"kafka://{settings.kafka.split(',')[0]}",
        datadir=folder,
        web_enabled=False,
        loghandlers=[],
    )
    app.boot_strategy = WithoutKafka(app)
    judged_by = JudgedBy(settings, telemetry)
    deciding: Deciding | None = None
    if "decide" in settings.roles:
        deciding = Deciding(app, settings, telemetry, steps, judged_by)
    in_force: Deciding | PolicyInForce | None = deciding
    if needs_policy(settings) and deciding is None:
        in_force = PolicyInForce(settings, judged_by, telemetry)
    settling: Settling | None = None
    if "settle" in settings.roles and in_force is not None:
        settling = Settling(lambda: in_force.policy, judged_by.keys)
    runner = Runner(
        settings,
        decider=None if deciding is None else deciding.decider,
        funnel=require_funnel(settings) if needs_funnel(settings) else None,
        settling=settling,
        keeper=None if in_force is None else judged_by.keeper,
        telemetry=telemetry,
        steps=steps,
        describe=lambda: {} if in_force is None else in_force.describe(),
        routes=() if deciding is None else deciding.routes,
        member=member,
    )

    @app.service
    class Lanes(Service):
        """Starts the lanes once the agent listens."""

        async def on_started(self) -> None:
            app.flow_control.resume()
            if in_force is not None:
                await in_force.start()
            set_up_collector()
            try:
                await runner.start()
            except OSError as err:
                # Faust would tell of it in a traceback, and nothing was taken from a topic yet.
                sys.stderr.write(f"ticketgate: {port_taken(settings, err)}\n")
                end_now(2)

    @app.on_before_shutdown.connect
    async def drain(*_: Any, **__: Any) -> None:
        # Here and not in the service's stop, for Faust stops agents first, and with them the batches under way.
        end_within(settings.drain_grace.total_seconds() + STOP_BOUND_S)
        if member is None:
            _end_at_once_on_a_second_signal()
        else:
            _leave_signals_to_the_supervisor()
        await runner.stop()
        if in_force is not None:
            await in_force.stop()

    return app


def run_worker(settings: Settings, member: Membership | None = None) -> NoReturn:
    """Run a worker until a signal ends it, then leave the process. Raises what opening policy or scorer raises.

    `member`: what a supervisor told this process, where it is one of several.
    """
    worker = Worker(create_app(settings, member), override_logging=False, redirect_stdouts=False, quiet=True)
    # It writes terminal escapes to stdout, terminal or not, when the start is over.
    worker.spinner = None
    worker.execute_from_commandline()


def _end_at_once_on_a_second_signal() -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end_at_once, number)


def _leave_signals_to_the_supervisor() -> None:
    """Who signals a whole group of processes signals the supervisor too, which then tells each of them: not twice."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, log.debug, "already draining")


def _end_at_once(number: int) -> None:
    log.warning(
        "a second signal: ending at once; what was not committed is decided again by whoever comes next"
    )
    os._exit(128 + number)


def __getattr__(name: str) -> faust.App:
    """`app`, from the environment's settings, made when first asked for."""
    if name != "app":
        raise AttributeError(name)
    try:
        made = create_app(load_settings().settings)
    except STARTUP_ERRORS as err:
        sys.stderr.write(f"ticketgate: {err}\n")
        sys.exit(2)
    globals()["app"] = made
    return made
