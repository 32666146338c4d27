"""A lane as `streams/lane/lane.py` has it, one network effect at a time.

`run` is a generator: each `next` does one effect and stops behind it, so that whoever drives it may put anything
between two effects, kill the lane there, leave it behind as a zombie and go on with it later, or make it fail with
that effect's reply lost. The steps bear the product's numbers.

`Protocol` has a switch for each rule. The first seven are the protocol's own, and each switched off is a mutant that
the machine must catch. The others are what this model showed to be needed besides (README.md tells of each).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from .world import (
    TOPIC_PARTITIONS,
    Claim,
    Coordinate,
    Effect,
    Fenced,
    Held,
    OutOfRange,
    Redis,
    RedisChanged,
    Suppressed,
    Ticket,
    TokenTaken,
    World,
)

T = TypeVar("T")
Steps = Generator[str, None, None]

STEPS = (
    "0 token", "0 fence", "0 committed", "0 committed marks", "0 marks",
    "1 token", "1 fence", "1 token again", "2 committed", "2 log start",
    "2 marks", "2 retract", "2 void", "2 opened", "3 poll", "4 claim", "4 mark", "4 voids", "4 take over", "4 derived",
    "5 decide", "6 send", "6 offset", "6 prepare", "6 mark", "7 unanswered", "7 reopen", "7 refused",
)  # fmt: skip
"""All places where a lane can stand: the effect that it has just done."""

OF_A_TRANSACTION = ("6 send", "6 offset", "6 prepare")
REQUESTS = ("1 token", "2 void", "4 claim", "4 mark", "4 take over", "4 derived", "6 mark", *OF_A_TRANSACTION)
"""The effects that a network may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The rules that a lane keeps."""

    fences: bool = True
    reads_after_fence: bool = True
    claims_for_coordinate: bool = True
    reopens_after_failure: bool = True
    compares_marks: bool = True
    journals_before_moving: bool = True
    takes_over_by_compare: bool = True

    holds_token: bool = True
    """Opening puts a token of its own into Redis; the scripts for voids and take-overs refuse a lane whose token is
    not the one that stands there."""
    takes_token_first: bool = True
    """It does so before it fences, not after."""
    rereads_token: bool = True
    """And reads it again after: a lane that has the fence has the token as well."""
    guards_claims: bool = True
    """The claims' script refuses an old token too: a lane whose Redis was emptied finds its own gone."""
    looks_again: bool = True
    """The loser of a take-over asks whether the winner is void too."""
    takes_over_derived: bool = True
    """A collision's derived key is taken over from a void owner like any other."""
    voids_before_first_commit: bool = True
    """A range lost before the first commit is journalled as well."""
    compares_every_partition: bool = True
    """Opening compares committed with claimed for the whole topic, as claims of all partitions share one log."""
    marks_claims_last: bool = True
    """The claimed mark is raised behind a batch's take-overs and derived claims."""
    syncs_late_writes: bool = True
    """Voids, take-overs and derived claims are synced before the lane goes on: where an abandoned batch raised the
    claimed mark already, the mark cannot show their loss."""
    marks_commit_at_once: bool = True
    """`committed` is raised after each commit, not with the next batch."""
    marks_at_opening: bool = True
    """And at opening, for a commit whose lane died before it could."""

    sends_once: bool = True
    """A request of a transaction without an answer is not repeated under its epoch, of which it may still come."""
    reopens_whole: bool = True
    """The lane goes on from its first step then, and not under a bare new epoch."""
    hands_over: bool = True
    """Who meets a Redis that the namespace is not bound to goes no further, and opens only once somebody has taken the
    tokens and fences of all partitions, compared what is committed with the marks, and bound the namespace."""
    marks_at_handover: bool = True
    """Who hands over raises the `committed` marks of all partitions to what it read behind the fences."""


AS_BUILT = Protocol(
    holds_token=False,
    takes_token_first=False,
    rereads_token=False,
    guards_claims=False,
    looks_again=False,
    voids_before_first_commit=False,
    compares_every_partition=False,
    marks_claims_last=False,
    syncs_late_writes=False,
    marks_commit_at_once=False,
    marks_at_opening=False,
    sends_once=False,
    hands_over=False,
    marks_at_handover=False,
)
"""The protocol of streams/ and store/ as first built, up to commit 6a683d8."""

AS_MENDED = Protocol()
"""As it is now: whoever finds another flaw gives it a switch, and takes it away here until it is mended."""


class BatchFailed(Exception):
    """Anything that goes wrong in a lane, and lets it live."""


class Unanswered(BatchFailed):
    """A request had no answer, and may still come."""


class Refused(Exception):
    """The lane may not open before a person acts."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Records in memory, and where they lie."""

    tickets: dict[Coordinate, Ticket]

    @property
    def next_offset(self) -> int:
        """One past the last."""
        return max(self.tickets).offset + 1


@dataclass(slots=True)
class Wanted:
    """A claim under way: the claim that stood when the lane last saw it, and, ghost, whether its owner was void."""

    key: str
    claim: Claim
    found: Claim
    owner_was_void: bool = False

    @property
    def is_mine(self) -> bool:
        """Whether the key is this record's."""
        return self.found == self.claim


class Lane:
    """One lane of `partition`; `step` is the effect it did last, `refusal` why it does not open."""

    def __init__(
        self, world: World, partition: int, *, number: int, batch_size: int = 1, protocol: Protocol
    ) -> None:
        self.partition = partition
        self.number = number
        self.step = ""
        self.refusal: str | None = None
        self.committed: int | None = None
        self._holds = ""
        self._world = world
        self._broker = world.broker
        self._protocol = protocol
        self._batch_size = batch_size
        self._openings = 0
        self._position = 0
        self._epoch = 0
        self._sequence = 0
        self._batch: Batch | None = None
        self._late_void: range | None = None
        self._steps: Steps | None = self.run()

    # --- driving ---

    @property
    def is_alive(self) -> bool:
        """Whether it was not killed."""
        return self._steps is not None

    @property
    def is_idle(self) -> bool:
        """Whether it found nothing to do at its last step."""
        return self.step == "3 poll" and self._batch is None

    def go(self, effects: int = 1) -> None:
        """Do the next effects."""
        for _ in range(effects):
            if self._steps is not None:
                self.step = next(self._steps)

    def go_to(self, step: str, *, most: int = 40) -> bool:
        """Go on until just behind `step`, at least one effect; says whether it got there within `most`."""
        for _ in range(most):
            self.go()
            if self.step == step:
                return True
        return False

    def fail(self) -> None:
        """Let the last effect's reply be lost, or what follows it go wrong."""
        if self._steps is not None and self.step and not self.step.startswith("7"):
            self.step = self._steps.throw(BatchFailed())

    def hold(self, step: str, *, most: int = 20) -> bool:
        """Let the network take the next request of that step: it comes later, or never. Says whether one came to it."""
        taken, self._holds = len(self._world.held), step
        for _ in range(most):
            self.go()
            if len(self._world.held) > taken:
                break
        self._holds = ""
        return len(self._world.held) > taken

    def kill(self) -> None:
        """It does nothing any more. What it left open stays as it is."""
        self._steps = None

    # --- the protocol ---

    def run(self) -> Steps:
        """Serve the partition for ever."""
        while True:
            try:
                yield from self._open()
                yield from self._serve()
            except (Fenced, OutOfRange, RedisChanged, TokenTaken, BatchFailed):
                yield "7 reopen"
            except Refused as refusal:
                self.refusal = str(refusal)
                yield "7 refused"
                self.refusal = None

    def _open(self) -> Steps:
        self._batch, self._late_void = None, None
        self._openings += 1
        if self._protocol.hands_over and self._world.redis.is_foreign:
            yield from self._hand_over()  # 0
        committed = yield from self._fence()  # 1
        first = self._broker.starts[self.partition]  # 2
        yield "2 log start"
        self._compare_with_marks(committed)
        yield "2 marks"
        own = committed[self.partition]
        yield from self._declare_lost(own, first)
        if own is not None and self._protocol.marks_at_opening:
            self._redis.raise_mark("committed", self.partition, own)
        self.committed = own
        self._position = max(own or 0, first)
        yield "2 opened"

    def _hand_over(self) -> Steps:
        """Bind the namespace to a Redis that it is not bound to. Whoever comes may do it, and two at once as well."""
        redis = self._world.redis
        run_id = redis.run_id
        for partition in range(TOPIC_PARTITIONS):
            redis.take_token(partition, (self.number, -self._openings))
            yield "0 token"
            self._broker.fence(f"{partition}")
            yield "0 fence"
        committed = list(self._broker.committed)
        yield "0 committed"
        self._find_lost_claims(committed)
        if self._protocol.marks_at_handover:
            for partition, offset in enumerate(committed):
                if offset is not None:
                    redis.raise_mark("committed", partition, offset)
            yield "0 committed marks"
        redis.bind(run_id)
        yield "0 marks"

    def _fence(self) -> Generator[str, None, list[int | None]]:
        """Returns the committed offsets of the whole topic."""
        protocol = self._protocol
        if protocol.takes_token_first:
            yield from self._take_token()
        committed = list(self._broker.committed)
        if not protocol.reads_after_fence:
            yield "2 committed"
        self._take_epoch()
        yield "1 fence"
        if not protocol.takes_token_first:
            yield from self._take_token()
        if protocol.rereads_token:
            yield from self._check_token()
        if protocol.reads_after_fence:
            committed = list(self._broker.committed)
            yield "2 committed"
        return committed

    def _declare_lost(self, own: int | None, first: int) -> Steps:
        if own is not None:
            self._redis.retract(self.partition, max(own, first), token=self._token)
            yield "2 retract"
        elif not self._protocol.voids_before_first_commit:
            return
        lost = range(own or 0, first)
        if lost and self._protocol.journals_before_moving:
            yield from self._journal(lost)
        elif lost:
            self._late_void = lost

    def _take_token(self) -> Steps:
        if self._protocol.holds_token:
            taken, redis = self._token_now, self._redis
            self._request("1 token", lambda: redis.take_token(self.partition, taken))
            yield "1 token"

    def _check_token(self) -> Steps:
        if self._protocol.holds_token:
            if self._redis.token(self.partition) != self._token_now:
                raise TokenTaken
            yield "1 token again"

    def _compare_with_marks(self, committed: list[int | None]) -> None:
        if not self._protocol.compares_marks:
            return
        self._find_lost_claims(committed)
        if (committed[self.partition] or 0) < (self._redis.mark("committed", self.partition) or 0):
            raise Refused("offsets_reset")

    def _find_lost_claims(self, committed: list[int | None]) -> None:
        every = self._protocol.compares_every_partition
        for partition in range(TOPIC_PARTITIONS) if every else [self.partition]:
            if (committed[partition] or 0) > (self._world.redis.mark("claimed", partition) or 0):
                raise Refused("claims_lost")

    def _journal(self, lost: range) -> Steps:
        redis, token = self._redis, self._token
        self._request("2 void", lambda: redis.journal(self.partition, lost, token=token))
        self._sync()
        yield "2 void"

    def _serve(self) -> Steps:
        while True:
            try:
                yield from self._take_batch()
            except BatchFailed:
                if self._protocol.reopens_after_failure or self._batch is None:
                    raise
                # The mutant: the producer is kept, and the next batch goes over the failed one.
                self._broker.abort(self._transactional_id, self._epoch)
                self._position = self._batch.next_offset

    def _take_batch(self) -> Steps:
        self._batch = None
        polled = self._broker.fetch(self.partition, self._position, self._batch_size)  # 3
        tickets = {
            Coordinate(self.partition, self._position + at): ticket for at, ticket in enumerate(polled)
        }
        self._batch = Batch(tickets) if tickets else None
        if self._broker.committed[self.partition] == self.committed:
            self._world.known[self.partition] = self.committed
        yield "3 poll"
        if self._batch is None:
            return
        account = yield from self._claim(self._batch)  # 4
        yield "5 decide"
        next_offset = self._batch.next_offset
        yield from self._commit(account, next_offset)  # 6
        self._position = self.committed = next_offset
        if self._late_void is not None:
            yield from self._journal(self._late_void)
            self._late_void = None
        if self._protocol.marks_commit_at_once:
            redis, token = self._redis, self._token if self._protocol.guards_claims else None
            self._request(
                "6 mark", lambda: redis.raise_mark("committed", self.partition, next_offset, token=token)
            )
            yield "6 mark"

    def _commit(self, account: dict[Coordinate, Effect | Suppressed], next_offset: int) -> Steps:
        while True:
            try:
                yield from self._transact(account, next_offset)
            except Unanswered:
                if self._protocol.reopens_whole:
                    raise
                yield "7 unanswered"
                self._take_epoch()
            else:
                return

    def _transact(self, account: dict[Coordinate, Effect | Suppressed], next_offset: int) -> Steps:
        broker, redis, name, epoch = self._broker, self._world.redis, self._transactional_id, self._epoch
        for fate in account.values():
            if isinstance(fate, Effect):
                send = partial(broker.send, name, epoch, self.partition, fate, sequence=self._sequence)
                self._request("6 send", send)
                self._sequence += 1
                yield "6 send"
        add = partial(broker.add_offset, name, epoch, self.partition, next_offset)
        # Ghost: a copy tells of no record that the first has not told of.
        self._request("6 offset", lambda: add(account), late=lambda: add({}))
        yield "6 offset"
        self._request("6 prepare", lambda: broker.prepare(name, epoch, redis))
        yield "6 prepare"

    def _take_epoch(self) -> None:
        self._epoch, self._sequence = self._broker.fence(self._transactional_id), 0

    def _request(self, step: str, deliver: Callable[[], T], *, late: Callable[[], object] | None = None) -> T:
        """A request as the network has it: it comes now, or is held. What was held on its way to the broker, aiokafka
        repeats."""
        if self._holds == step:
            self._holds = ""
            held = Held(step, late or deliver)
            self._world.held.append(held)
            if held.is_for_redis or self._protocol.sends_once:
                raise Unanswered
        return deliver()

    # --- 4 ---

    def _claim(self, batch: Batch) -> Generator[str, None, dict[Coordinate, Effect | Suppressed]]:
        wanted = {
            coordinate: self._wanted(ticket.key, ticket, coordinate)
            for coordinate, ticket in batch.tickets.items()
        }
        yield from self._claim_each(wanted.values(), "4 claim")
        if not self._protocol.marks_claims_last:
            yield from self._mark_claims(batch)
        for want in wanted.values():
            yield from self._take_over_if_void(want)
        collided = {
            coordinate: self._wanted(
                f"{want.key}:{want.claim.fingerprint}", batch.tickets[coordinate], coordinate
            )
            for coordinate, want in wanted.items()
            if want.found.fingerprint != want.claim.fingerprint
        }
        if collided:
            yield from self._claim_each(collided.values(), "4 derived")
            if self._protocol.takes_over_derived:
                for want in collided.values():
                    yield from self._take_over_if_void(want)
            self._sync()
        if self._protocol.marks_claims_last:
            yield from self._mark_claims(batch)
        return {
            coordinate: _fate(collided.get(coordinate, wanted[coordinate])) for coordinate in batch.tickets
        }

    def _wanted(self, key: str, ticket: Ticket, coordinate: Coordinate) -> Wanted:
        claim = Claim(coordinate, ticket.fingerprint)
        if not self._protocol.claims_for_coordinate:
            claim = claim._replace(worker=self.number)
        return Wanted(key, claim, claim)

    def _claim_each(self, wanted: Iterable[Wanted], step: str) -> Steps:
        # One script, but here others' writes may come in between: what holds so holds for the script.
        token = self._token if self._protocol.guards_claims else None
        for want in wanted:
            claim = partial(self._redis.claim_if_free, want.key, want.claim, token=token)
            self._see(want, self._request(step, claim))
            yield step

    def _mark_claims(self, batch: Batch) -> Steps:
        redis, token = self._redis, self._token if self._protocol.guards_claims else None
        mark = partial(redis.raise_mark, "claimed", self.partition, batch.next_offset, token=token)
        self._request("4 mark", mark)
        if self.committed is not None and not self._protocol.marks_commit_at_once:
            self._redis.raise_mark("committed", self.partition, self.committed)
        yield "4 mark"

    def _take_over_if_void(self, want: Wanted) -> Steps:
        while not want.is_mine:
            is_void = self._redis.is_void(want.found.coordinate)
            yield "4 voids"
            if not is_void:
                return
            compares, token = self._protocol.takes_over_by_compare, self._token
            take = partial(
                self._redis.take_over, want.key, want.found, want.claim, compares=compares, token=token
            )
            self._see(want, self._request("4 take over", take))
            self._sync()
            yield "4 take over"
            if not self._protocol.looks_again:
                return

    def _see(self, want: Wanted, found: Claim) -> None:
        want.found = found
        want.owner_was_void = not want.is_mine and self._redis.is_void(found.coordinate)

    def _sync(self) -> None:
        if self._protocol.syncs_late_writes:
            self._redis.sync()

    @property
    def _redis(self) -> Redis:
        """The Redis to ask now: each new connection tells which server it reached, and a server that was replaced ended
        the old ones."""
        redis = self._world.redis
        if self._protocol.hands_over and redis.is_foreign:
            raise RedisChanged
        return redis

    @property
    def _token_now(self) -> tuple[int, int]:
        return (self.number, self._openings)

    @property
    def _token(self) -> tuple[int, int] | None:
        return self._token_now if self._protocol.holds_token else None

    @property
    def _transactional_id(self) -> str:
        # Without a fence: an id of its own meets no predecessor.
        return f"{self.partition}" if self._protocol.fences else f"{self.partition}.{self.number}"


def _fate(want: Wanted) -> Effect | Suppressed:
    if want.is_mine:
        return Effect(want.key, want.claim.fingerprint, want.claim.coordinate)
    return Suppressed(want.key, want.found.coordinate, want.owner_was_void)


def without(*rules: str, protocol: Protocol | None = None) -> Protocol:
    """The protocol without some of its rules."""
    return replace(protocol or Protocol(), **dict.fromkeys(rules, False))
