"""What a lane does about each error: one table, from the exception of aiokafka or redis-py to an action.

There is one way to recover, and that is to reopen the lane: fence, read the committed offset, go on from there. It is
right after a commit of unknown outcome as well, for the committed offset tells what became of it. Only what a person
must mend first is refused. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
import re
import ssl

import aiokafka.errors as kafka
import redis.exceptions as redis
from ticketgate.agents.effects.faults import EntryLost, ProviderMissing
from ticketgate.agents.funnel.evidence import LookupUnavailable
from ticketgate.agents.scoring import ScorerUnavailable
from ticketgate.store.attempts import AttemptUnreadable
from ticketgate.store.connect import ServerChanged
from ticketgate.store.durability import ClaimsNotDurable
from ticketgate.store.ledger.entry_fields import EntryUnreadable
from ticketgate.store.servers import LookAgain
from ticketgate.store.tokens import Superseded, reply_of
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.kafka.one_attempt import Unanswered
from ticketgate.streams.kafka.unknown_errors import InvalidRecord

_FENCED = Handling(Action.REOPEN, "fenced")
_EXPIRED = Handling(Action.REOPEN, "producer_expired")
_SEQUENCE = Handling(Action.REOPEN, "sequence")
_TIMEOUT = Handling(Action.REOPEN, "timeout")
_COORDINATOR = Handling(Action.REOPEN, "coordinator_moved")
_BROKER_AWAY = Handling(Action.REOPEN, "broker_away")
_OFFSETS = Handling(Action.REOPEN, "position_lost")
_REDIS_AWAY = Handling(Action.REOPEN, "redis_away")
_REDIS_REFUSED = Handling(
    Action.REFUSE,
    "redis_refused",
    "mend what Redis says; TICKETGATE_REDIS names the server, user and password",
)
_REDIS_CHANGED = Handling(Action.REOPEN, "redis_changed")
_REDIS_DENIED = Handling(
    Action.REFUSE,
    "redis_denied",
    "allow the worker's Redis user the commands and keys that `ticketgate manual runbook` lists",
)
_SCORER_AWAY = Handling(Action.REOPEN, "scorer_away")
# A request on its way can be kept out by a newer epoch alone, so the lane begins anew at once.
_UNANSWERED = Handling(Action.REOPEN, "unanswered")
_OTHER = Handling(Action.REOPEN, "other")
# narrowing.py finds which record it is, and refuses where it is none.
_TOO_LARGE = Handling(Action.REOPEN, "record_too_large")
_RECORD_REFUSED = Handling(Action.REOPEN, "record_refused")
CLOCK = Handling(
    Action.REFUSE,
    "clock",
    "set this machine's clock, by which outputs are stamped, or message.timestamp.before.max.ms and"
    " message.timestamp.after.max.ms of the output topics, by which the broker refuses them",
)
_NOT_ALLOWED = Handling(
    Action.REFUSE,
    "not_authorized",
    "grant the worker's user Read on the tickets topic and group, and Write on the output topics and transactional ids,"
    " DescribeConfigs on the topics and the cluster",
)
_KAFKA_REFUSED = Handling(
    Action.REFUSE,
    "kafka_refused",
    "mend it there, or restart the worker with other settings",
)
_TRANSACTION_TIMEOUT = Handling(
    Action.REFUSE,
    "transaction_timeout",
    "set TICKETGATE_TRANSACTION_TIMEOUT to at most the broker's transaction.max.timeout.ms",
)
_SESSION_REFUSED = Handling(
    Action.REFUSE,
    "session_refused",
    "set TICKETGATE_SESSION_TIMEOUT within the brokers' group.min.session.timeout.ms and group.max.session.timeout.ms",
)
_GROUP_SHARED = Handling(
    Action.REFUSE,
    "group_shared",
    "a client that is no ticketgate worker, with another assignor, is in the group that TICKETGATE_GROUP names: end it",
)
_GROUP_NAME = Handling(Action.REFUSE, "group_invalid", "set TICKETGATE_GROUP to a name that Kafka takes")
_NO_TOPIC = Handling(Action.REFUSE, "topic_missing", "run `ticketgate topics create`")
_TOO_OLD = Handling(
    Action.REFUSE, "broker_too_old", "use Apache Kafka 4.0 or newer, or TICKETGATE_GUARANTEE=at_least_once"
)

# What a script's error begins with while Redis fails over, or has fewer replicas than it was told to write with:
# redis-py has a class for some, and none behind the words that it puts before a pipeline's errors.
_FAILING_OVER = re.compile(r"\b(NOREPLICAS|READONLY|MASTERDOWN|LOADING) ")

TABLE: tuple[tuple[type[BaseException], Handling], ...] = (
    (MemoryError, Handling(Action.REOPEN, "out_of_memory", "give the worker more memory")),
    (ScorerUnavailable, _SCORER_AWAY),
    (LookupUnavailable, Handling(Action.REOPEN, "lookup_away")),
    (AttemptUnreadable, Handling(Action.REFUSE, "attempts_unreadable", "see what the message says")),
    (EntryUnreadable, Handling(Action.REFUSE, "effect_unreadable", "run the version that wrote it")),
    (ProviderMissing, Handling(Action.REFUSE, "provider_missing", "name it in the funnel file")),
    (EntryLost, Handling(Action.REFUSE, "ledger_lost", "run `ticketgate ledger rebuild`")),
    (ClaimsNotDurable, Handling(Action.REOPEN, "claims_not_durable")),
    (Superseded, Handling(Action.REOPEN, "superseded")),
    (LookAgain, _REDIS_CHANGED),
    (ServerChanged, _REDIS_CHANGED),
    (redis.AuthenticationError, _REDIS_REFUSED),  # a ConnectionError to redis-py, so it stands first
    # A failover under way, or a server that just starts.
    (redis.ReadOnlyError, _REDIS_AWAY),
    (redis.MasterDownError, _REDIS_AWAY),
    (redis.NoPermissionError, _REDIS_DENIED),
    (redis.ResponseError, _REDIS_REFUSED),
    (redis.RedisError, _REDIS_AWAY),
    (Unanswered, _UNANSWERED),
    (kafka.ProducerFenced, _FENCED),
    (kafka.InvalidProducerEpoch, _FENCED),
    # The broker aborts a transaction that outlives its time-out and raises the epoch: InvalidTxnState or fenced.
    (kafka.InvalidTxnState, _FENCED),
    (kafka.InvalidProducerIdMapping, _EXPIRED),
    (kafka.UnknownProducerId, _EXPIRED),
    (kafka.ConcurrentTransactions, _SEQUENCE),
    (kafka.OutOfOrderSequenceNumber, _SEQUENCE),
    (kafka.DuplicateSequenceNumber, _SEQUENCE),
    (kafka.TopicAuthorizationFailedError, _NOT_ALLOWED),
    (kafka.GroupAuthorizationFailedError, _NOT_ALLOWED),
    (kafka.ClusterAuthorizationFailedError, _NOT_ALLOWED),
    (kafka.TransactionalIdAuthorizationFailed, _NOT_ALLOWED),
    (SettingsError, _KAFKA_REFUSED),  # refusals.py, and files that connection.py cannot read
    (kafka.SaslAuthenticationFailed, _KAFKA_REFUSED),
    (kafka.UnsupportedSaslMechanismError, _KAFKA_REFUSED),
    (kafka.IllegalSaslStateError, _KAFKA_REFUSED),
    (ssl.SSLEOFError, _BROKER_AWAY),  # it may be ending
    (ssl.SSLError, _KAFKA_REFUSED),
    (kafka.MessageSizeTooLargeError, _TOO_LARGE),
    (kafka.RecordListTooLargeError, _TOO_LARGE),
    (InvalidRecord, _RECORD_REFUSED),
    (kafka.InvalidTimestampError, CLOCK),
    (kafka.InvalidTransactionTimeout, _TRANSACTION_TIMEOUT),
    (kafka.InvalidSessionTimeoutError, _SESSION_REFUSED),
    (kafka.InconsistentGroupProtocolError, _GROUP_SHARED),
    (kafka.InvalidGroupIdError, _GROUP_NAME),
    (kafka.UnsupportedVersionError, _TOO_OLD),
    (kafka.IncompatibleBrokerVersion, _TOO_OLD),
    (kafka.UnknownTopicOrPartitionError, _NO_TOPIC),
    (kafka.InvalidTopicError, _NO_TOPIC),
    (kafka.OffsetOutOfRangeError, _OFFSETS),
    (kafka.NoOffsetForPartitionError, _OFFSETS),
    (kafka.CoordinatorNotAvailableError, _COORDINATOR),
    (kafka.NotCoordinatorError, _COORDINATOR),
    (kafka.CoordinatorLoadInProgressError, _COORDINATOR),
    (kafka.KafkaTimeoutError, _TIMEOUT),
    (kafka.RequestTimedOutError, _TIMEOUT),
    (asyncio.TimeoutError, _TIMEOUT),
    (Unreachable, _BROKER_AWAY),
    (kafka.KafkaConnectionError, _BROKER_AWAY),
    (kafka.NodeNotReadyError, _BROKER_AWAY),
    (kafka.NotEnoughReplicasError, _BROKER_AWAY),
    (kafka.NotEnoughReplicasAfterAppendError, _BROKER_AWAY),
    (kafka.LeaderNotAvailableError, _BROKER_AWAY),
    (kafka.NotLeaderForPartitionError, _BROKER_AWAY),
)
"""Read from the top: the first row whose class matches is the one that counts."""


def handling(error: BaseException) -> Handling:
    """What to do about an error: its row of the table, and for any other error a reopening."""
    if isinstance(error, LaneFault):
        return error.handling
    if isinstance(error, redis.ResponseError) and _FAILING_OVER.search(reply_of(error)):
        return _REDIS_AWAY
    return next((handling for kind, handling in TABLE if isinstance(error, kind)), _OTHER)


def may_hide_refusal(how: Handling) -> bool:
    """Whether the broker may be there and refuse us: aiokafka tells that as a broker that is away, or not at all."""
    return how in (_BROKER_AWAY, _TIMEOUT, _COORDINATOR, _UNANSWERED)
