"""Every policy that was in force, by its hash, on a compacted topic.

    key HASH                      the policy as a JSON file that stands alone, the schema's questions in their places
    key HASH@AT@NAMESPACE@HOST    that it was put in force: when, where and by whom (`in-force/1`)

Promise: what is written twice is written alike, so that compaction keeps one of it; nothing is written where it is
there. All lies in partition 0, whatever others the topic has. A policy that is read back is the one of its hash.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from aiokafka import ConsumerRecord
from ticketgate.agents.policy import Policy, PolicyError, parse_policy
from ticketgate.codecs.records.in_force import InForceRecord, decode_in_force
from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.values.times import rfc3339
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import Record
from ticketgate.streams.kafka.errors import require_topic
from ticketgate.streams.kafka.internals import client_of_admin
from ticketgate.streams.kafka.reading.scanning import broker_errors
from ticketgate.streams.kafka.reading.topic_reading import read_whole
from ticketgate.streams.kafka.sending import Sending, send
from ticketgate.streams.kafka.topic_ids import topic_ids
from ticketgate.streams.kafka.topics import topic_config

HASH = re.compile(r"[0-9a-f]{64}")
_PREFIX = re.compile(r"[0-9a-f]{1,64}")
# Enough for a person to see which one is meant.
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class KeptPolicy:
    """A policy that was in force. in_force: each time that it was put in force, the first first; nothing where the
    worker that wrote the policy ended before it wrote that."""

    hash: str
    document: bytes
    in_force: tuple[InForceRecord, ...]

    def last_before(self, moment: datetime, *, namespace: str) -> InForceRecord | None:
        """The last time before it that a deployment put the policy in force, as far as clocks agree; None where no such
        is told of."""
        times = [each for each in self.in_force if each.namespace == namespace and each.at <= moment]
        return times[-1] if times else None

    def load(self) -> Policy:
        """To judge by. Raises `CommandError` where it is not the policy of its hash."""
        source = f"policy {self.hash[:12]}"
        try:
            policy = parse_policy(self.document.decode(), source=source)
        except (PolicyError, UnicodeDecodeError) as err:
            raise CommandError(f"{source}: what lies under its hash is no policy: {err}") from err
        if policy.hash != self.hash:
            raise CommandError(
                f"{source}: what lies under its hash is policy {policy.hash[:12]}; somebody else wrote the topic,"
                " or another version of ticketgate, which can read it"
            )
        return policy


@dataclass(slots=True)
class KeptPolicies:
    """What the topic holds."""

    documents: dict[str, bytes] = field(default_factory=dict)
    told: dict[bytes, InForceRecord] = field(default_factory=dict)

    def take(self, record: ConsumerRecord) -> None:
        """One record of the topic, in its order; what is none of ours is passed over."""
        key = record.key or b""
        name = key.decode(errors="replace")
        if HASH.fullmatch(name):
            if record.value is None:
                self.documents.pop(name, None)
            else:
                self.documents[name] = record.value
            return
        read = None if record.value is None else decode_in_force(record.value)
        # One that is written again later goes to its place.
        self.told.pop(key, None)
        if isinstance(read, InForceRecord) and name.startswith(f"{read.policy.hash}@"):
            self.told[key] = read

    def last(self, namespace: str) -> str | None:
        """The hash of the policy that a deployment put in force last."""
        return next(
            (each.policy.hash for each in reversed(self._changes()) if each.namespace == namespace), None
        )

    def find(self, prefix: str) -> KeptPolicy:
        """The policy whose hash begins so. Raises `CommandError` where there is none, or more than one."""
        if not _PREFIX.fullmatch(prefix):
            raise CommandError(
                f"--hash: {quote(prefix)} is not the beginning of a hash; give hexadecimal digits, in small letters"
            )
        found = [each for each in self.documents if each.startswith(prefix)]
        if len(found) > 1:
            raise CommandError(
                f"--hash: {len(found)} policies begin with {prefix}: {self._named(found)}; give more"
            )
        if not found:
            raise CommandError(f"--hash: no policy that was in force begins with {prefix}; {self._known()}")
        changes = tuple(each for each in self._changes() if each.policy.hash == found[0])
        return KeptPolicy(found[0], self.documents[found[0]], changes)

    def _changes(self) -> list[InForceRecord]:
        """Each time that a policy was put in force which was not: workers that do so together each tell of it."""
        changes: list[InForceRecord] = []
        last: dict[str, str] = {}
        for each in self.told.values():
            if last.get(each.namespace) != each.policy.hash:
                changes.append(each)
            last[each.namespace] = each.policy.hash
        return changes

    def _known(self) -> str:
        if not self.documents:
            return (
                "the topic holds none yet: workers write to it when they start, or take a changed file over. A policy"
                " file of before shows its hash with `ticketgate policy show FILE`"
            )
        return (
            f"it knows {self._named(self.documents)}. One of before the topic was made is in it once a worker starts"
            " with its file; `ticketgate policy show FILE` shows a file's hash"
        )

    def _named(self, hashes: Iterable[str]) -> str:
        newest = list(hashes)[::-1]
        names = {
            each.policy.hash: f" ({each.policy.name} {each.policy.version})" for each in self.told.values()
        }
        more = f" and {len(newest) - MOST_NAMED} more" if len(newest) > MOST_NAMED else ""
        return ", ".join(each[:12] + names.get(each, "") for each in newest[:MOST_NAMED]) + more


async def kept_policies(settings: Settings) -> KeptPolicies:
    """All of them. Raises `CommandError` where there is no topic, and `Unreachable`."""
    kept = KeptPolicies()
    async for record in read_whole(connection_of(settings), [settings.topic_policies]):
        kept.take(record)
    return kept


async def kept_policy(settings: Settings, hash_: str) -> KeptPolicy | None:
    """The policy of a record, None where it is not kept, or cannot be read again. Raises `Unreachable`."""
    try:
        found = (await kept_policies(settings)).find(hash_)
        found.load()
    except CommandError:
        return None
    return found


async def keep(settings: Settings, policy: Policy, *, file: str, at: datetime, host: str) -> None:
    """Have a policy on the topic, and that it is in force from now on: nothing is written of what is there.

    file: the name of its file. Raises `CommandError` where the topic is not there or takes it not, and `Unreachable`.
    """
    kept = await kept_policies(settings)
    told = InForceRecord(
        policy=policy.ref,
        at=at,
        by=settings.policy_author,
        file=file,
        host=host,
        namespace=settings.namespace,
    )
    records: list[Record] = []
    if policy.hash not in kept.documents:
        records.append(Record(policy.hash.encode(), policy.to_bytes(), partition=0))
    if kept.last(settings.namespace) != policy.hash:
        key = "@".join((policy.hash, rfc3339(told.at), told.namespace, told.host))
        records.append(Record(key.encode(), told.encode(), partition=0))
    if not records:
        return
    sending = Sending()
    await send(
        _numbered(settings.topic_policies, records),
        connection=connection_of(settings),
        rate=None,
        sending=sending,
        on_sent=lambda _: None,
        # Policies are texts, and a large one is told to the broker by what is left of it.
        compression="gzip",
    )
    if sending.lost is not None:
        raise sending.lost
    if sending.refused:
        raise CommandError(
            f"topic {settings.topic_policies}: the broker refuses: {sending.refused[0].reason}"
        )


async def _numbered(topic: str, records: Iterable[Record]) -> AsyncIterator[tuple[int, str, Record]]:
    for number, record in enumerate(records, 1):
        yield number, topic, record


async def find_topic(settings: Settings) -> str:
    """The topic's id, empty from a broker that knows none. Raises `CommandError` where there is no such topic or it
    forgets policies, and `Unreachable`."""
    connection, name = connection_of(settings), settings.topic_policies
    async with admin_client(connection) as client, broker_errors(connection):
        await require_topic(client, name)
        how = (await topic_config(client, name)).get("cleanup.policy", "compact")
        if how != "compact":
            raise CommandError(
                f"topic {name} loses policies: its cleanup.policy is {how}; set it to compact, and start a worker with"
                " each policy file that shall be shown again"
            )
        return (await topic_ids(client_of_admin(client), [name])).get(name, "")
