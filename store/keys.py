"""The names of what ticketgate keeps in Redis, all below one namespace.

`ticketgate:{namespace}:claim:{idempotency key}`             string  owner of the key (claims.py)
`ticketgate:{namespace}:claimed:{topic}:{partition}`         integer one past the last offset claimed (marks.py)
`ticketgate:{namespace}:committed:{topic}:{partition}`       integer last committed offset seen (marks.py)
`ticketgate:{namespace}:void:{topic}:{partition}`            hash    offsets that never had an effect (voids.py)
`ticketgate:{namespace}:witness:{topic}:{partition}`         hash    the topic's id, last records (witnesses.py)
`ticketgate:{namespace}:lane:{topic}:{partition}`            string  the lane that opened last (tokens.py)
`ticketgate:{namespace}:underway:{topic}:{partition}`        hash    what lanes do, by token (underway.py)
`ticketgate:{namespace}:skip:{topic}:{partition}`            integer an unreadable batch to pass over (skips.py)
`ticketgate:{namespace}:attempts:{case key}:{version}`       hash    attempts at a case by number (attempts.py)
`ticketgate:{namespace}:effect:{effect key}`                 hash    an effect and how far it is (ledger.py)
`ticketgate:{namespace}:confirmation:{digest}`               string  the effect that used it up (ledger.py)
`ticketgate:{namespace}:effects_open`                        zset    effects by the ms when to look again (ledger.py)
`ticketgate:{namespace}:looks`                               hash    looks at effects that never ended (looks.py)
`ticketgate:{namespace}:effects_since`                       zset    open effects by the ms since when (ledger.py)
`ticketgate:{namespace}:identity`                            hash    cluster, group and topics (conditions.py)
`ticketgate:{namespace}:store`                               string  random id of this store (claims_store.py)
`ticketgate:{namespace}:server`                              hash    the Redis that claims stand on (servers.py)
`ticketgate:{namespace}:canary:{number}`                     string  gone early when a clock jumped (servers.py)
`ticketgate:{namespace}:handover`                            string  lock of a hand-over (servers.py)
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keys:
    """Names of one namespace."""

    namespace: str

    @property
    def prefix(self) -> str:
        """What every name of the namespace begins with."""
        return f"ticketgate:{self.namespace}:"

    @property
    def identity(self) -> str:
        """The record that binds cluster, group and topics to the claims."""
        return f"{self.prefix}identity"

    def attempts(self, key: str, version: int) -> str:
        """The attempts at a case, for one version of its request."""
        return f"{self.prefix}attempts:{key}:{version}"

    def claim(self, key: str) -> str:
        """The claim on an idempotency key."""
        return f"{self.prefix}claim:{key}"

    def claimed(self, topic: str, partition: int) -> str:
        """The mark one past the last offset whose keys were claimed."""
        return f"{self.prefix}claimed:{topic}:{partition}"

    def committed(self, topic: str, partition: int) -> str:
        """The mark of the last committed offset that a lane has seen."""
        return f"{self.prefix}committed:{topic}:{partition}"

    def confirmation(self, digest: str) -> str:
        """The key of the effect that used a confirmation up."""
        return f"{self.prefix}confirmation:{digest}"

    def effect(self, key: str) -> str:
        """An effect in the ledger."""
        return f"{self.prefix}effect:{key}"

    @property
    def effects_open(self) -> str:
        """The effects to be looked at again: not settled, or settled and not yet told."""
        return f"{self.prefix}effects_open"

    @property
    def effects_since(self) -> str:
        """The effects that are not settled."""
        return f"{self.prefix}effects_since"

    @property
    def handover(self) -> str:
        """The lock of who hands the namespace over to another server."""
        return f"{self.prefix}handover"

    @property
    def server(self) -> str:
        """The server that the namespace stands on, and what is known against it."""
        return f"{self.prefix}server"

    @property
    def store(self) -> str:
        """The random id by which this store of claims is told from any other."""
        return f"{self.prefix}store"

    @property
    def looks(self) -> str:
        """The looks at effects that began and did not end."""
        return f"{self.prefix}looks"

    def skip(self, topic: str, partition: int) -> str:
        """The order to pass over a batch that cannot be read."""
        return f"{self.prefix}skip:{topic}:{partition}"

    def token(self, topic: str, partition: int) -> str:
        """The token of the lane that opened last."""
        return f"{self.prefix}lane:{topic}:{partition}"

    def under_way(self, topic: str, partition: int) -> str:
        """What each lane of a partition has under way."""
        return f"{self.prefix}underway:{topic}:{partition}"

    def void(self, topic: str, partition: int) -> str:
        """The ranges of offsets that were passed over without an effect."""
        return f"{self.prefix}void:{topic}:{partition}"

    def witness(self, topic: str, partition: int) -> str:
        """The topic's id, and the last records that were claimed and committed."""
        return f"{self.prefix}witness:{topic}:{partition}"
