"""The role `effects` put together: ports, ledger, executor, and the reconciler that goes on beside the lanes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aiokafka import AIOKafkaProducer
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.ledger import Entry, Settlement
from ticketgate.agents.effects.reconcile import Reconciler
from ticketgate.agents.funnel.evidence import CLOCK_SKEW_S
from ticketgate.agents.funnel.file.funnel_file import (
    FunnelFile,
    FunnelFileError,
    OpenProviders,
    open_providers,
)
from ticketgate.store.lane_state.underway import UnderWays
from ticketgate.store.ledger.ledger import Ledger
from ticketgate.store.ledger.looks import Looks
from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.settings import Settings, ledger_ttl
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.lane.opening.conditions import Conditions
from ticketgate.streams.lane.transaction import REQUEST_TIMEOUT_MS
from ticketgate.streams.roles.case_records import ReceiptWriter
from ticketgate.streams.roles.effects.counted_port import CountedPort
from ticketgate.streams.roles.effects.effect_ledger import open_ledger
from ticketgate.streams.roles.effects.effect_taker import EffectTaker
from ticketgate.streams.roles.effects.reconciling import ReceiptSender, reconcile_forever
from ticketgate.streams.roles.effects.second_look import SecondLook
from ticketgate.streams.roles.evidences import Evidences
from ticketgate.streams.roles.takers import TakerParts


@dataclass(frozen=True, slots=True)
class EffectsRole:
    """What the role has open: `taker` for its lanes, `run` beside them, `close` at the end."""

    taker: EffectTaker
    reconciler: Reconciler
    ledger: Ledger
    providers: OpenProviders
    sender: ReceiptSender
    conditions: Conditions
    telemetry: Telemetry

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await reconcile_forever(
            self.reconciler, self.ledger, self.telemetry, check_conditions=self.conditions.check
        )

    async def close(self) -> None:
        """Let go of the providers and the producer."""
        await self.sender.close()
        await self.providers.close()


def open_effects(parts: TakerParts, file: FunnelFile, evidences: Evidences | None) -> EffectsRole:
    """Open the role, in the loop that it will run in. Raises FunnelFileError."""
    settings = parts.settings
    require_remembered(file, settings)
    providers = open_providers(file)
    ports = {name: CountedPort(port, parts.telemetry) for name, port in providers.items()}
    ledger = open_ledger(settings, parts.redis)
    executor = Executor(ledger, ports, states=file.states)
    second_look = SecondLook(
        catalogue=file.catalogue, evidences=evidences, clock=parts.clock, telemetry=parts.telemetry
    )
    writer = ReceiptWriter(parts.writer.topics, settings.max_record_bytes)
    sender = ReceiptSender(writer, lambda: receipts_producer(settings))

    later_look = replace(second_look, evidences=None if evidences is None else evidences.beside_lanes())

    async def judge_again(entry: Entry) -> Settlement | None:
        return await later_look.at(entry.order, entry.confirmation)

    def may_send(entry: Entry) -> bool:
        # An effect may be sent a second time long after the first, under another funnel file.
        return file.is_automatic(entry.order.command.tool)

    reconciler = Reconciler(
        ledger,
        executor,
        judge_again=judge_again,
        announce=sender.announce,
        may_send=may_send,
        looks=Looks(parts.redis, parts.keys),
        beside=parts.floor.beside,
    )
    taker = EffectTaker(
        tools=file.tools,
        executor=executor,
        second_look=second_look,
        note=UnderWays(parts.redis, parts.keys).note,
        mark_committed=ledger.mark_committed,
        receipts=writer,
        writer=parts.writer,
        telemetry=parts.telemetry,
        max_bytes=settings.max_record_bytes * 2,
        tracing=parts.tracing,
    )
    terms = role_terms("effects", settings)
    conditions = Conditions(settings, terms, hand_over=parts.hand_over)
    return EffectsRole(taker, reconciler, ledger, providers, sender, conditions, parts.telemetry)


def require_remembered(file: FunnelFile, settings: Settings) -> None:
    """Raise FunnelFileError for a confirmation that holds longer than the ledger remembers that it was used up."""
    for name, tool in () if file.catalogue is None else file.catalogue.tools.items():
        rule = tool.confirmation
        if rule is not None and rule.max_age_s > ledger_ttl(settings).total_seconds() - CLOCK_SKEW_S:
            raise FunnelFileError(
                str(file.path),
                f"{name}: a confirmation holds for {rule.max_age_s} s, longer than the ledger remembers its use",
                "lower max_age_s in the catalogue, or raise TICKETGATE_OUTPUTS_RETENTION",
            )


def receipts_producer(settings: Settings) -> AIOKafkaProducer:
    """For receipts outside a transaction: what is acknowledged is on all replicas, and there once."""
    return AIOKafkaProducer(
        **connection_of(settings).arguments(),
        acks="all",
        # Tansu has no idempotent producer.
        enable_idempotence=settings.guarantee == "exactly_once",
        request_timeout_ms=REQUEST_TIMEOUT_MS,
        max_request_size=settings.max_record_bytes * 2,
    )
