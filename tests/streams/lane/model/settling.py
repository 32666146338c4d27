"""Lanes of settlements in the same small world: who settles a ticket, and that it is settled once.

Partition 0 and 1 are now two partitions of `settlements`. Tickets are decided in one step, for their lanes have a model
of their own: a ticket takes its claim if that is free, and lies in review. A settlement names the record that it is
about and the policy that was shown; it is judged by the policy in force when its lane comes to it.

Modelled beside what lane_model.py has: lifetimes, as ticks that pass; a policy that changes; tickets sent again before,
between and after; and a rebuild from what was committed, with the lifetimes that are left. The ledger of effects, which
would catch a second effect of one ticket, is not there to help.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from .invariants import Violated
from .lane_model import Batch, Lane, Protocol, Steps
from .world import Claim, Coordinate, Effect, Redis, Suppressed, Ticket, Token, TokenTaken, World

TICKETS = 9
"""The partition in the coordinates of tickets, which no lane here serves."""
LIFETIME = 3
"""Of a claim, in ticks."""

Key = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a lane of settlements does besides; each switched off is a mutant."""

    requires_ticket_claim: bool = True
    """A settlement takes effect only while the ticket's claim names the record that it is about."""
    raises_lifetimes: bool = True
    """The ticket's claim lives as long as its settlement's."""
    lets_go: bool = True
    """What is not taken leaves no claim of its own behind."""
    lets_go_by_compare: bool = True
    """It takes its own away and no other's."""
    lets_go_by_token: bool = True
    """A lane that was superseded takes nothing away."""
    lets_go_first: bool = True
    """Before it commits that it is not taken, and not after."""
    deletes: bool = True
    """It deletes the claim. Off: it journals its own offset as void, for others to take the claim over."""
    syncs: bool = True
    """Each write waits for the disk."""
    restores_rejects: bool = True
    """A rebuild reads what was rejected, and not the dispatched alone."""
    replays_to_commits: bool = True
    """A replay of settlements goes back to where commits ended, and no further."""
    restores_ticket_claims: bool = True
    """A rebuild gives a settled ticket's claim the lifetime that its settlement gave it."""


@dataclass(frozen=True, slots=True)
class Said:
    """A settlement: the ticket, the input that its record in review was made from, the policy shown; None: a reject,
    which no policy judges."""

    key: Key
    of: Coordinate
    shown: int | None


@dataclass(frozen=True, slots=True)
class Settled:
    """Ghost: a settlement that took effect, at a tick."""

    effect: Effect
    said: Said
    at: int


@dataclass(slots=True)
class Office:
    """What stands around the lanes. `decided` is what lies in review: by ticket each record and its tick; the others
    are ghosts."""

    world: World
    policy: int = 0
    now: int = 0
    sent: int = 0
    said: dict[Coordinate, Said] = field(default_factory=dict)
    decided: list[tuple[Key, Coordinate, int]] = field(default_factory=list)
    ends: dict[Key, int] = field(default_factory=dict)
    committed_at: dict[Coordinate, int] = field(default_factory=dict)

    def ticket_comes(self, key: Key) -> None:
        """A ticket is sent, the first time or again, and decided unless its claim stands."""
        redis = self.world.redis
        at, self.sent = Coordinate(TICKETS, self.sent), self.sent + 1
        if redis.claim(key) is None:
            redis.claim_if_free(key, Claim(at, "t"))
            redis.sync()
            self.ends[key] = self.now + LIFETIME
            self.decided.append((key, at, self.now))

    def reviewed(self, key: Key) -> Coordinate | None:
        """The record that a person sees: the last that was decided."""
        return next((at for name, at, _ in reversed(self.decided) if name == key), None)

    def send(self, partition: int, key: Key, *, rejects: bool = False, of: Coordinate | None = None) -> None:
        """A person settles what lies in review."""
        about = of or self.reviewed(key)
        if about is None:
            return
        log = self.world.broker.logs[partition]
        said = Said(key, about, None if rejects else self.policy)
        self.said[Coordinate(partition, len(log))] = said
        log.append(Ticket(f"{key}:settlement", f"{partition}.{len(log)}"))

    def tick(self) -> None:
        """Time passes, and claims come to their end."""
        self.now += 1
        for key, ends in list(self.ends.items()):
            if ends <= self.now:
                self.world.redis._set(("claim", key), None)
                del self.ends[key]

    def loses_writes(self) -> None:
        """After Redis lost its last writes: a lifetime is a moment, and what is over does not come back with them."""
        redis = self.world.redis
        for name in list(redis._state):
            if name[0] == "claim" and str(name[-1]) not in self.ends:
                redis._set(name, None)

    def lives(self, key: Key, *, until: int) -> None:
        """A claim's lifetime is raised."""
        self.ends[key] = max(self.ends.get(key, 0), until)

    def rebuild(self, rules: Rules) -> None:
        """`claims rebuild`: each with what is left of its lifetime."""
        broker, redis = self.world.broker, self.world.redis
        broker.complete()
        self.ends.clear()
        for key, at, decided_at in reversed(self.decided):
            self._restore(key, Claim(at, "t"), decided_at + LIFETIME)
        for effect in broker.visible:
            said = self.said[effect.coordinate]
            if said.shown is None and not rules.restores_rejects:
                continue
            until = self.committed_at[effect.coordinate] + LIFETIME
            self._restore(effect.key, Claim(effect.coordinate, effect.fingerprint), until)
            if rules.restores_ticket_claims and until > self.now:
                self._restore(said.key, Claim(said.of, "t"), until)
        redis.restore((), broker.committed)
        redis.sync()

    def replay(self, partition: int, rules: Rules) -> None:
        """`replay --of settlements`, while no worker runs: to where commits ended, or as far back as there are any."""
        broker, redis = self.world.broker, self.world.redis
        broker.complete()
        if not rules.replays_to_commits:
            broker.committed[partition] = broker.starts[partition]
            redis._set(("committed", partition), broker.starts[partition])
            redis.sync()

    def _restore(self, key: Key, claim: Claim, until: int) -> None:
        if until > self.now and self.world.redis.claim_if_free(key, claim) == claim:
            self.lives(key, until=until)

    # --- what must hold ---

    def check(self) -> None:
        """One effect a record in review; none beside a ticket that was decided anew."""
        settled = list(self._settled())
        by_record: dict[Coordinate, Settled] = {}
        for each in settled:
            first = by_record.setdefault(each.said.of, each)
            if first is not each:
                raise Violated(f"{each.said.key} of {each.said.of} is settled twice: {first} and {each}")
        for each in settled:
            for key, at, decided_at in self.decided:
                # A ticket sent again long after is a new case; within a settlement's lifetime it is the settled one.
                if key == each.said.key and at != each.said.of and 0 <= decided_at - each.at < LIFETIME:
                    raise Violated(f"{key} was settled at {each.at} and decided anew at {decided_at}")
                if key == each.said.key and at > each.said.of and decided_at < each.at:
                    raise Violated(f"{key} was decided anew at {decided_at} and settled by {each}")

    def _settled(self) -> Iterator[Settled]:
        for transaction in self.world.broker.history:
            for effect in transaction.effects:
                at = self.committed_at.setdefault(effect.coordinate, self.now)
                yield Settled(effect, self.said[effect.coordinate], at)

    def open_keys(self) -> list[Key]:
        """The tickets whose claim stands for what lies in review, and that no settlement has."""
        settled = {each.said.of for each in self._settled()}
        return [
            key
            for key in sorted({name for name, _, _ in self.decided})
            if (claim := self.world.redis.claim(key)) is not None
            and claim.coordinate == self.reviewed(key)
            and claim.coordinate not in settled
        ]


class SettleLane(Lane):
    """A lane of settlements: judged first, then claimed, and let go of where they are not taken."""

    def __init__(
        self,
        office: Office,
        partition: int,
        *,
        number: int,
        batch_size: int = 1,
        rules: Rules,
        protocol: Protocol,
    ) -> None:
        self._office, self._rules = office, rules
        super().__init__(office.world, partition, number=number, batch_size=batch_size, protocol=protocol)

    def _claim(self, batch: Batch) -> Generator[str, None, dict[Coordinate, Effect | Suppressed]]:
        office, account = self._office, dict[Coordinate, Effect | Suppressed]()
        late: list[Claim] = []
        judged = {at: office.said[at].shown in (None, office.policy) for at in batch.tickets}
        yield "4 voids"
        for at, ticket in batch.tickets.items():
            claim = Claim(at, ticket.fingerprint)
            if not judged[at]:
                if self._rules.lets_go_first:
                    yield from self._let_go(ticket.key, claim)
                else:
                    late.append(claim)
                account[at] = Suppressed(ticket.key, at, False)
                continue
            found = self._request(
                "4 claim", partial(self._settle, self._redis, office.said[at], ticket.key, claim)
            )
            yield "4 claim"
            while found is not None and found != claim and self._redis.is_void(found.coordinate):
                yield "4 voids"
                owner = found
                if self._rules.deletes:
                    delete = partial(self._delete, self._redis, ticket.key, owner, self._token)
                    self._request("4 take over", delete)
                    yield "4 take over"
                    settle = partial(self._settle, self._redis, office.said[at], ticket.key, claim)
                    found = self._request("4 claim", settle)
                else:
                    take = partial(
                        self._redis.take_over, ticket.key, owner, claim, compares=True, token=self._token
                    )
                    found = self._request("4 take over", take)
                yield "4 take over"
            if found == claim:
                account[at] = Effect(ticket.key, claim.fingerprint, at)
            else:
                account[at] = Suppressed(ticket.key, at if found is None else found.coordinate, False)
        self._sync_claims()
        yield from self._mark_claims(batch)
        self._late = [(batch.tickets[claim.coordinate].key, claim) for claim in late]
        return account

    def _take_batch(self) -> Steps:
        self._late: list[tuple[str, Claim]] = []
        yield from super()._take_batch()
        for key, claim in self._late if self._rules.lets_go else ():
            self._delete(self._redis, key, claim, self._token)
            yield "6 mark"

    def _settle(self, redis: Redis, said: Said, key: str, claim: Claim) -> Claim | None:
        """The script: what stands for the settlement afterwards, or None where the ticket's claim is another. redis:
        as the lane found it when it asked, for the network may bring this later."""
        office = self._office
        redis._check(claim.coordinate.partition, self._token)
        owner = redis.claim(key)
        if owner is not None and owner != claim:
            return owner
        stands = redis.claim(said.key)
        if self._rules.requires_ticket_claim and (stands is None or stands.coordinate != said.of):
            if owner is not None:
                redis._set(("claim", key), None)
            return None
        redis._set(("claim", key), claim)
        office.lives(key, until=office.now + LIFETIME)
        if self._rules.raises_lifetimes and stands is not None:
            office.lives(said.key, until=office.now + LIFETIME)
        return claim

    def _let_go(self, key: str, claim: Claim) -> Steps:
        if not self._rules.lets_go:
            return
        token = self._token if self._rules.lets_go_by_token else None
        if not self._rules.deletes:
            at = claim.coordinate
            self._redis.journal(at.partition, range(at.offset, at.offset + 1), token=self._token)
            self._world.redis.journalled.discard(at)
        else:
            self._request("4 take over", partial(self._delete, self._redis, key, claim, token))
        self._sync_claims()
        yield "4 take over"

    def _delete(self, redis: Redis, key: str, claim: Claim, token: Token | None) -> None:
        if token is not None and redis.token(self.partition) != token:
            raise TokenTaken
        if redis.claim(key) == claim or not self._rules.lets_go_by_compare:
            redis._set(("claim", key), None)

    def _sync_claims(self) -> None:
        if self._rules.syncs:
            self._redis.sync()


def lacking(*rules: str) -> Rules:
    """The rules without some."""
    return replace(Rules(), **dict.fromkeys(rules, False))
