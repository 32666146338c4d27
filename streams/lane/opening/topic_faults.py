"""What in the topics of a role, or in its broker, keeps a lane from opening: all that can be seen, in order.

Promise: nothing is changed and nothing raised for what is found; who must not go on raises the first, and who tells a
person tells of all.
"""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka.admin import AIOKafkaAdminClient
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.role_terms import RoleTerms
from ticketgate.streams.config.setting_kinds import show_duration
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import Broker
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.topics import missing_topics, topic_config
from ticketgate.streams.lane.opening.vouching import find_cut, why_not

LARGEST_BATCH = ("max.message.bytes", "segment.bytes")
TORN = (
    "the broker is Apache Kafka 4.3 or newer: unless KAFKA-20734 is mended in it, a transaction may be torn apart when"
    " all replicas of a partition are down at once; use 4.0 to 4.2, or replication 3"
)


def broker_fault(broker: Broker, settings: Settings) -> ConditionFailed | None:
    """Why the broker cannot keep the guarantee."""
    if settings.guarantee == "at_least_once" or broker.is_kafka_4:
        return None
    return ConditionFailed(
        "the broker is not Apache Kafka 4.0 or newer, and exactly_once cannot be kept",
        "use one that is, or set TICKETGATE_GUARANTEE=at_least_once",
    )


async def topic_faults(
    client: AIOKafkaAdminClient, settings: Settings, terms: RoleTerms
) -> list[ConditionFailed]:
    """Of the source and the outputs, vouching apart. Raises aiokafka's errors."""
    source, outputs = terms.source, terms.outputs
    missing = await missing_topics(client, (source, *outputs))
    if missing:
        return [ConditionFailed(f"no topic {', '.join(missing)}", "run `ticketgate topics create`")]
    faults: list[ConditionFailed] = []
    config = await topic_config(client, source)
    limits = [await topic_config(client, name) for name in outputs]
    if "compact" in config.get("cleanup.policy", "delete"):
        faults.append(
            ConditionFailed(
                f"topic {source} is compacted, which drops records unread",
                "set its cleanup.policy to delete",
            )
        )
    if settings.guarantee == "exactly_once" and (kept := retention_fault(terms, config)):
        faults.append(kept)
    # A batch of records has to fit into a file as well.
    largest = min(
        (int(limit[name]) for limit in limits for name in LARGEST_BATCH if name in limit), default=None
    )
    if largest is not None and settings.max_record_bytes > largest:
        faults.append(
            ConditionFailed(
                f"TICKETGATE_MAX_RECORD_BYTES is {settings.max_record_bytes}, and an output topic takes {largest}",
                f"set it to at most {largest}, or raise max.message.bytes (or segment.bytes) of the output topics",
            )
        )
    return faults


async def vouching_faults(
    client: AIOKafkaAdminClient, settings: Settings, terms: RoleTerms
) -> list[ConditionFailed]:
    """Why the outputs could not give back what Redis loses. The topics must be there. Raises aiokafka's errors and
    `Unreachable`."""
    lives = min(terms.kept.lives, settings.outputs_retention)
    faults: list[ConditionFailed] = []
    for name in terms.vouching:
        config = await topic_config(client, name)
        found = why_not(name, config, lives=lives, kept_what=terms.kept.what)
        if found is not None:
            faults.append(found)
    if faults:
        return faults
    cut = await find_cut(connection_of(settings), terms.vouching, lives=lives)
    if cut is not None:
        faults.append(
            ConditionFailed(
                f"the first records of {cut.topic}:{cut.partition} are gone, and were younger than"
                f" {terms.kept.what} live: those that Redis loses could not be restored from it",
                f"find out who deleted them; once the remaining are older than {show_duration(lives)} it heals,"
                " or take a new TICKETGATE_GROUP and TICKETGATE_NAMESPACE",
            )
        )
    return faults


def retention_fault(terms: RoleTerms, config: Mapping[str, str]) -> ConditionFailed | None:
    """What keeps a record from taking effect twice must outlive every record that could. config: the source's."""
    if "retention.ms" not in config:
        return None
    source, kept, retention_ms = terms.source, terms.kept, int(config["retention.ms"])
    if retention_ms < 0:
        return ConditionFailed(
            f"topic {source} keeps records for ever, and {kept.what} do not live that long",
            f"set its retention.ms, for example to {round(terms.retention.total_seconds() * 1000)}",
        )
    needed_ms = retention_ms + int(config.get("segment.ms", 0)) + kept.sent_again.total_seconds() * 1000
    if kept.lives.total_seconds() * 1000 >= needed_ms:
        return None
    sent_again = " + TICKETGATE_DUPLICATE_HORIZON" if kept.sent_again else ""
    return ConditionFailed(
        f"{kept.what} live {show_duration(kept.lives)}, and a record of {source} can come again for"
        f" {needed_ms / 86_400_000:.1f} days (the topic's retention.ms + segment.ms{sent_again})",
        f"raise {kept.lives_by}, which they live by, or shorten what they must outlive",
    )
