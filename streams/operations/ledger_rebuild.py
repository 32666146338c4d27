"""`ledger rebuild`: the ledger of effects of a Redis that lost it, out of the receipts.

    1  whose namespace it is
    2  lanes closed and fenced (rebuilding.py): from here on nothing moves, though workers may be up
    3  the group's committed offsets
    4  every receipt committed before an end that is taken after 2: of each effect the last
    5  what is still open: its record in dispatch, for the gates that judge again before a second sending
    6  the entries, where none stands
    7  whether the receipts vouch for all that was committed while entries live; if not, it ends here, with what is
       missing, and lanes stay closed
    8  the marks, on which lanes open
    9  lanes opened

Promise: a crash between any two steps leaves lanes closed, and a second run goes on; what stands is never changed. An
effect whose last receipt is `prepared` comes back as unknown, and is read back before anything else.
Relies on: receipts that are kept for as long as dispatch keeps its records, which 7 looks at.
See ARCHITECTURE.md#a-proposal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from aiokafka import ConsumerRecord, TopicPartition
from redis.asyncio import Redis
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState, decode_receipt
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import Position, raise_marks
from ticketgate.store.ledger.ledger_rebuild import Remembered, RestoredEffects, is_still_open, restore
from ticketgate.store.rebuild import wait_for_replicas
from ticketgate.store.servers import Look, note_gaps
from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.settings import Settings, ledger_ttl
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.group import committed_offsets
from ticketgate.streams.kafka.reading.scanning import Progress, Scanner, open_scanner, read_all
from ticketgate.streams.lane.opening.conditions import require_namespace
from ticketgate.streams.lane.opening.vouching import young_since_ms
from ticketgate.streams.operations.rebuilding import adopt_store, close_lanes, find_gaps, open_lanes
from ticketgate.streams.roles.effects.dispatched import take_in_dispatched

# Entries in one round trip to Redis.
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRebuild:
    """What a rebuild did, or would do. without_record: open effects whose dispatched record is gone; those of them that
    turn out absent are held and not sent again. marks: the group's offset by partition of dispatch. gaps: why receipts
    cannot vouch for what was committed; unless they were accepted, no mark was raised and lanes stay closed."""

    receipts: int
    unreadable: int
    effects: RestoredEffects
    without_record: int
    marks: dict[int, int]
    gaps: tuple[str, ...]


async def rebuild_ledger(
    settings: Settings, redis: Redis, *, dry_run: bool, accept_gaps: bool, progress: Progress
) -> LedgerRebuild:
    """Raises `ConditionFailed`, `Unreachable`, `ClaimsNotDurable`, and errors of aiokafka and redis-py."""
    keys, terms = Keys(settings.namespace), role_terms("effects", settings)
    closed: Look | None = None
    async with open_scanner(settings) as scanner:
        sources = await scanner.partitions(terms.source)
        if not dry_run:
            await require_namespace(settings, redis, "effects")  # 1
            await adopt_store(settings, redis, keys, terms.group, sources)
            closed = await close_lanes(settings, redis, "ledger")  # 2
        committed = await committed_offsets(connection_of(settings), terms.group, sources)  # 3
        last = await _last_receipts(settings, scanner, progress)  # 4
        dispatched = await scanner.extents(sources)
        remembered = await _with_records(settings, scanner, dispatched, last.by_key.values())  # 5
        gaps = await _gaps(settings, scanner, committed)  # 7
    effects = RestoredEffects()
    for batch in _batches(remembered):  # 6
        effects += await restore(redis, keys, batch, ttl=ledger_ttl(settings), dry_run=dry_run)
    marks = {each.partition: offset for each, offset in committed.items() if offset is not None}
    if closed is not None and gaps and not accept_gaps:
        await note_gaps(redis, keys, "ledger")
    elif closed is not None:
        await wait_for_replicas(redis, keys, replicas=settings.redis_replicas, timeout=settings.redis_timeout)
        for partition, offset in marks.items():  # 8
            position = Position(terms.source, partition, claimed=offset, committed=offset)
            await raise_marks(redis, keys, position, during=closed.known)
        await open_lanes(redis, keys, closed, "ledger")  # 9
    return LedgerRebuild(
        receipts=last.receipts,
        unreadable=last.unreadable,
        effects=effects,
        without_record=sum(is_still_open(each.receipt) and not each.is_whole for each in remembered),
        marks=marks,
        gaps=gaps,
    )


async def _gaps(
    settings: Settings, scanner: Scanner, committed: Mapping[TopicPartition, int | None]
) -> tuple[str, ...]:
    lives = settings.outputs_retention
    youngest = await scanner.offsets_at([*committed], young_since_ms(lives))
    is_young = any(
        (first := youngest[each]) is not None and first < (to or 0) for each, to in committed.items()
    )
    return await find_gaps(
        settings, scanner, [settings.topic_receipts], lives=lives, kept_what="effects", is_young=is_young
    )


class _LastReceipts:
    """Of each effect the receipt of its furthest step; of two of one step the first, but that one which announced a
    second sending is outweighed by what became of the effect instead."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.by_key: dict[str, Remembered] = {}
        self.receipts = 0
        self.unreadable = 0

    def add(self, record: ConsumerRecord) -> None:
        """Take a record of the topic in; decision receipts, and those of collisions, say nothing here."""
        if record.value is None:
            return
        receipt = decode_receipt(record.value, max_bytes=max(self._max_bytes, len(record.value)))
        if not isinstance(receipt, EffectReceipt):
            self.unreadable += isinstance(receipt, Malformed)
            return
        self.receipts += 1
        # A collision's receipt has sequence 0: what stands under the key is another effect.
        stands = self.by_key.get(receipt.idempotency_key)
        if receipt.sequence > 0 and (stands is None or _outweighs(receipt, stands.receipt)):
            self.by_key[receipt.idempotency_key] = Remembered(receipt, record.timestamp)


def _outweighs(receipt: EffectReceipt, other: EffectReceipt) -> bool:
    """Whether a receipt tells of a step further. Who announced a sending and died has not sent: a person, or a
    read-back, may have made another step of it."""
    if receipt.sequence == other.sequence:
        return other.effect_state is EffectState.PREPARED and receipt.effect_state is not EffectState.PREPARED
    return receipt.sequence > other.sequence


async def _last_receipts(settings: Settings, scanner: Scanner, progress: Progress) -> _LastReceipts:
    extents = await scanner.extents(await scanner.partitions(settings.topic_receipts))
    found = _LastReceipts(settings.max_record_bytes)
    async for records in read_all(scanner, extents, what="receipts", progress=progress):
        for record in records:
            found.add(record)
    return found


async def _with_records(
    settings: Settings,
    scanner: Scanner,
    dispatched: Mapping[TopicPartition, range],
    last: Iterable[Remembered],
) -> list[Remembered]:
    """The same, and for what is open what its dispatched record says, where that is still there."""
    found: list[Remembered] = []
    for each in last:
        source = each.receipt.source
        if source is None or not is_still_open(each.receipt):
            found.append(each)
            continue
        place = TopicPartition(source.topic, source.partition)
        whole = each
        # Beyond the end the scanner would wait for what never comes.
        if source.offset in dispatched.get(place, ()):
            async for records in scanner.read({place: range(source.offset, source.offset + 1)}):
                whole = _told_by(records, each, settings.max_record_bytes)
        found.append(whole)
    return found


def _told_by(records: Sequence[ConsumerRecord], each: Remembered, max_bytes: int) -> Remembered:
    intake = take_in_dispatched(records, max_bytes=max_bytes)
    for dispatched in intake.arrivals:
        if any(command.key == each.receipt.idempotency_key for command in dispatched.commands):
            return Remembered(each.receipt, each.at_ms, dispatched.proposal, is_whole=True)
    return each


def _batches(remembered: Sequence[Remembered]) -> Iterator[list[Remembered]]:
    rest = iter(remembered)
    while batch := list(islice(rest, BATCH)):
        yield batch
