"""A broker and a Redis small enough to think about: what the delivery protocol relies on, one network effect a call.

Modelled, broker: an input log for each partition with a start that retention raises; epochs for each transactional id,
and a fence that aborts an open transaction and completes a prepared one; a transaction whose outputs and offset turn
visible by two markers that the coordinator writes in any order; time-outs that abort and fence; offsets that an
operator or their expiry resets.
Modelled, Redis: commands that are atomic one by one, an append-only log whose tail can be lost down to the last
WAITAOF, emptying, and a server in the place of another, which lanes can tell by its identity while they live.
Modelled, network: a request that is held while its sender loses its connection, and comes at any later time; what was
held for a Redis goes with that server, as its connections do.
Not modelled: bytes, sizes and malformed records; offsets without a record (control markers of upstream transactions);
claims that expire; replicas; a broker that breaks its own promises (an unclean election, a fence that leaks:
test_spike.py proves the fence on the real one).
What no real part knows, but the invariants need, is kept beside it and marked "ghost".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, NamedTuple

TOPIC_PARTITIONS = 2

Token = tuple[int, int]
Marker = Literal["outputs", "offset"]


class Fenced(Exception):
    """The broker knows a newer producer of this transactional id, or has aborted this one's transaction."""


class OutOfRange(Exception):
    """The offset lies below the start of the log."""


class RedisChanged(Exception):
    """Another server answers, or this one came back: its identity is not the one that the namespace is bound to."""


class TokenTaken(Exception):
    """Another lane has opened the partition since: Redis refuses this one's write."""


class Coordinate(NamedTuple):
    """Where a record lies."""

    partition: int
    offset: int


class Ticket(NamedTuple):
    """One input record: who it is and what it says."""

    key: str
    fingerprint: str


class Claim(NamedTuple):
    """The value of a claim. `worker` is set by the mutant alone that binds claims to the worker."""

    coordinate: Coordinate
    fingerprint: str
    worker: int | None = None


class Effect(NamedTuple):
    """One output record: decided under the ticket's own key, or for review under a collision's derived one."""

    key: str
    fingerprint: str
    coordinate: Coordinate


class Suppressed(NamedTuple):
    """Ghost: a record passed over because `key` belonged to `owner`, void already when the lane learned of it?"""

    key: str
    owner: Coordinate
    owner_was_void: bool


class State(Enum):
    """Of a transaction, as its coordinator has it."""

    OPEN = "open"
    PREPARED = "prepared"
    ENDED = "ended"


@dataclass(slots=True)
class Transaction:
    """Outputs and an offset, together or not at all. `account` is ghost: what became of each record of the batch."""

    partition: int
    effects: list[Effect] = field(default_factory=list)
    offset: int | None = None
    state: State = State.OPEN
    unwritten: set[Marker] = field(default_factory=lambda: {"outputs", "offset"})
    account: dict[Coordinate, Effect | Suppressed] = field(default_factory=dict)
    claims_then: dict[str, Claim | None] = field(default_factory=dict)


class Broker:
    """`history` is ghost: all transactions from their point of no return (prepared), in that order."""

    def __init__(self) -> None:
        self.logs: list[list[Ticket]] = [[] for _ in range(TOPIC_PARTITIONS)]
        self.starts = [0] * TOPIC_PARTITIONS
        self.committed: list[int | None] = [None] * TOPIC_PARTITIONS
        self.visible: list[Effect] = []
        self.history: list[Transaction] = []
        self._epochs: dict[str, int] = {}
        # An idempotent producer's: what was repeated is not written twice.
        self._sequences: dict[tuple[str, int], int] = {}
        self._transactions: dict[str, Transaction] = {}

    def fetch(self, partition: int, offset: int, most: int) -> list[Ticket]:
        """Up to `most` records from `offset` on."""
        if offset < self.starts[partition]:
            raise OutOfRange
        return self.logs[partition][offset : offset + most]

    def fence(self, transactional_id: str) -> int:
        """InitProducerId: ends a predecessor's transaction and returns the epoch that is valid from now on."""
        self._end(transactional_id)
        self._epochs[transactional_id] = self._epochs.get(transactional_id, 0) + 1
        return self._epochs[transactional_id]

    def send(
        self,
        transactional_id: str,
        epoch: int,
        partition: int,
        effect: Effect,
        *,
        sequence: int | None = None,
    ) -> None:
        """Add an output to the transaction under way, which begins with it if there is none."""
        self._check(transactional_id, epoch)
        if sequence is not None:
            if sequence < self._sequences.get((transactional_id, epoch), 0):
                return
            self._sequences[transactional_id, epoch] = sequence + 1
        transaction = self._begun(transactional_id, epoch, partition)
        transaction.effects.append(effect)
        transaction.account.setdefault(effect.coordinate, effect)

    def add_offset(
        self,
        transactional_id: str,
        epoch: int,
        partition: int,
        offset: int,
        account: dict[Coordinate, Effect | Suppressed],
    ) -> None:
        """Add the input offset to the transaction under way."""
        transaction = self._begun(transactional_id, epoch, partition)
        transaction.offset = offset
        transaction.account |= account

    def prepare(self, transactional_id: str, epoch: int, redis: Redis) -> None:
        """EndTxn: from here on the transaction commits, whoever dies; its markers follow. One that is ended already is
        answered as if it had ended now. Nobody asks a Redis that was replaced since the claim; the handover will."""
        self._check(transactional_id, epoch)
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.state is not State.OPEN:
            return
        transaction.state = State.PREPARED
        if not redis.is_foreign:
            transaction.claims_then = {effect.key: redis.claim(effect.key) for effect in transaction.effects}
        self.history.append(transaction)

    def abort(self, transactional_id: str, epoch: int) -> None:
        """The producer's own abort; what is prepared commits all the same."""
        self._check(transactional_id, epoch)
        found = self._transactions.get(transactional_id)
        if found is not None and found.state is State.OPEN:
            del self._transactions[transactional_id]

    def write_marker(self, partition: int, marker: Marker) -> None:
        """The coordinator makes one half of the partition's prepared transactions visible."""
        for transaction in self._of(partition, State.PREPARED):
            self._write(transaction, marker)

    def complete(self) -> None:
        """The coordinator finishes all that is prepared."""
        for partition in range(TOPIC_PARTITIONS):
            self.write_marker(partition, "outputs")
            self.write_marker(partition, "offset")

    def time_out(self, partition: int) -> None:
        """The coordinator aborts the partition's open transactions and fences their producers."""
        for name, transaction in list(self._transactions.items()):
            if transaction.partition == partition and transaction.state is State.OPEN:
                self.fence(name)

    def has_prepared(self, partition: int) -> bool:
        """Whether a transaction of the partition waits for markers."""
        return bool(self._of(partition, State.PREPARED))

    def _of(self, partition: int, state: State) -> list[Transaction]:
        return [
            transaction
            for transaction in self._transactions.values()
            if transaction.partition == partition and transaction.state is state
        ]

    def _check(self, transactional_id: str, epoch: int) -> None:
        if self._epochs.get(transactional_id) != epoch:
            raise Fenced

    def _begun(self, transactional_id: str, epoch: int, partition: int) -> Transaction:
        self._check(transactional_id, epoch)
        found = self._transactions.get(transactional_id)
        if found is None or found.state is not State.OPEN:
            self._end(transactional_id)  # the client waits while its last transaction completes
            found = self._transactions[transactional_id] = Transaction(partition)
        return found

    def _end(self, transactional_id: str) -> None:
        transaction = self._transactions.pop(transactional_id, None)
        if transaction is not None and transaction.state is State.PREPARED:
            self._write(transaction, "outputs")
            self._write(transaction, "offset")

    def _write(self, transaction: Transaction, marker: Marker) -> None:
        if marker not in transaction.unwritten:
            return
        transaction.unwritten.remove(marker)
        if marker == "outputs":
            self.visible += transaction.effects
        elif transaction.offset is not None:
            self.committed[transaction.partition] = transaction.offset
        if not transaction.unwritten:
            transaction.state = State.ENDED


@dataclass(frozen=True, slots=True)
class Held:
    """A request that the network has taken and not yet brought."""

    step: str
    deliver: Callable[[], object]

    @property
    def is_for_redis(self) -> bool:
        """Whether it goes to Redis, and not to the broker."""
        return not self.step.startswith(("1 fence", "6 send", "6 offset", "6 prepare"))


Name = tuple[str] | tuple[str, object] | tuple[str, int, int]


class Redis:
    """`taken` and `journalled` are ghost: each claim that changed hands with whether that was from a void owner, and
    each coordinate that was ever void."""

    def __init__(self) -> None:
        self._log: list[tuple[Name, object]] = []
        self._state: dict[Name, object] = {}
        self._synced = 0
        self.run_id = 0
        self._set(("bound",), 0)
        self.taken: list[tuple[str, Claim, Claim, bool]] = []
        self.journalled: set[Coordinate] = set()

    # --- claims ---

    def claim(self, key: str) -> Claim | None:
        """GET."""
        found = self._state.get(("claim", key))
        return found if isinstance(found, Claim) else None

    def claim_if_free(self, key: str, claim: Claim, *, token: Token | None = None) -> Claim:
        """SET NX GET, if the lane still is its partition's; returns the claim that stands afterwards."""
        self._check(claim.coordinate.partition, token)
        found = self.claim(key)
        if found is None:
            self._set(("claim", key), claim)
            return claim
        return found

    def take_over(
        self, key: str, found: Claim, claim: Claim, *, compares: bool, token: Token | None
    ) -> Claim:
        """The script: set if the claim still is `found`, and the lane still is its partition's; returns what stands."""
        self._check(claim.coordinate.partition, token)
        stands = self.claim(key)
        if stands is not None and stands != found and compares:
            return stands
        if stands is not None:
            self.taken.append((key, stands, claim, self.is_void(stands.coordinate)))
        self._set(("claim", key), claim)
        return claim

    def restore(self, effects: Iterable[Effect], committed: Iterable[int | None]) -> None:
        """`claims rebuild`: the claims of all committed outputs where none stands, and only then the marks."""
        for effect in effects:
            self.claim_if_free(effect.key, Claim(effect.coordinate, effect.fingerprint))
        for partition, offset in enumerate(committed):
            if offset is not None:
                self.raise_mark("claimed", partition, offset)
                self.raise_mark("committed", partition, offset)

    # --- marks ---

    def mark(self, name: Literal["claimed", "committed"], partition: int) -> int | None:
        """GET of a mark."""
        found = self._state.get((name, partition))
        return found if isinstance(found, int) else None

    def raise_mark(
        self,
        name: Literal["claimed", "committed"],
        partition: int,
        value: int,
        *,
        token: Token | None = None,
    ) -> None:
        """The script: marks only rise, and only by the lane that has the partition."""
        self._check(partition, token)
        if (self.mark(name, partition) or -1) < value:
            self._set((name, partition), value)

    # --- voids ---

    def journal(self, partition: int, offsets: range, *, token: Token | None) -> None:
        """HSET of a range's start to its stop, if the lane still is its partition's."""
        self._check(partition, token)
        self._set(("void", partition, offsets.start), offsets.stop)
        self.journalled |= {Coordinate(partition, offset) for offset in offsets}

    def retract(self, partition: int, offset: int, *, token: Token | None) -> None:
        """Forget the ranges from `offset` on, if the lane still is its partition's."""
        self._check(partition, token)
        late = [name for name in self._state if name[:2] == ("void", partition) and name[2:] >= (offset,)]
        for name in late:
            self._set(name, None)

    def is_void(self, coordinate: Coordinate) -> bool:
        """Whether a journalled range holds the coordinate."""
        return any(
            name[2] <= coordinate.offset < stop
            for name, stop in self._state.items()
            if len(name) == 3 and name[1] == coordinate.partition and isinstance(stop, int)
        )

    # --- which lane a partition belongs to ---

    def take_token(self, partition: int, token: Token) -> None:
        """SET: the latest lane to open has the partition."""
        self._set(("lane", partition), token)

    def token(self, partition: int) -> object:
        """GET."""
        return self._state.get(("lane", partition))

    def _check(self, partition: int, token: Token | None) -> None:
        if token is not None and self.token(partition) != token:
            raise TokenTaken

    # --- which server it is ---

    @property
    def is_foreign(self) -> bool:
        """Whether the namespace is not bound to this server, as it is now."""
        return self._state.get(("bound",)) != self.run_id

    def bind(self, run_id: int) -> None:
        """SET: the namespace is handed over to the server of that identity."""
        self._set(("bound",), run_id)

    # --- the log ---

    def sync(self) -> None:
        """WAITAOF 1 0: all that was written so far outlives a crash."""
        self._synced = len(self._log)

    def lose_tail(self, most: int) -> None:
        """A crash forgets up to `most` of the last writes, none from before the last `sync`."""
        del self._log[max(self._synced, len(self._log) - most) :]
        self._state = dict(self._log)
        self.run_id += 1

    def empty(self) -> None:
        """All is gone."""
        self._log, self._state, self._synced = [], {}, 0
        self.run_id += 1

    def _set(self, name: Name, value: object) -> None:
        self._log.append((name, value))
        self._state[name] = value


class World:
    """A broker, a Redis, what the lanes have seen of both, and what the network holds for them."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.redis = Redis()
        self.held: list[Held] = []
        # Ghost: per partition a committed offset that a lane knew of when it polled, and so had its chance to mark.
        self.known: list[int | None] = [None] * TOPIC_PARTITIONS
        # Ghost: how much had happened when the invariants were last looked at.
        self.checked: tuple[int, int, int] = (0, 0, 0)

    def deliver(self, which: int) -> None:
        """What was held comes. Nobody hears how it is answered."""
        held = self.held.pop(which)
        with contextlib.suppress(Fenced, TokenTaken):
            held.deliver()

    def restart_redis(self, *, lost_writes: int | None) -> None:
        """Redis comes back without its last writes, or, None, without any. No lane may be alive: a prepared
        transaction completes while workers start, and none else can commit."""
        self.broker.complete()
        self.replace_redis(lost_writes=lost_writes)

    def replace_redis(self, *, lost_writes: int | None) -> None:
        """Another server answers, without the last writes, or, None, without any. Lanes may live on."""
        self.held = [each for each in self.held if not each.is_for_redis]
        if lost_writes is None:
            self.redis.empty()
        else:
            self.redis.lose_tail(lost_writes)
        self.known = [None] * TOPIC_PARTITIONS

    def rebuild_claims(self) -> None:
        """`ticketgate claims rebuild`."""
        self.broker.complete()
        self.redis.restore(self.broker.visible, self.broker.committed)

    def restore_offsets(self) -> None:
        """What a lane asks for that found its offsets reset."""
        for partition in range(TOPIC_PARTITIONS):
            offset, mark = self.broker.committed[partition], self.redis.mark("committed", partition)
            if mark is not None and mark > (offset or 0):
                self.broker.committed[partition] = mark
