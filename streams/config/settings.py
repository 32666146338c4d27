"""Every setting of ticketgate: its name, its default's one home, its meaning, and where its value came from.

A setting is `TICKETGATE_NAME` in the environment or `name` in the TOML file that `TICKETGATE_CONFIG` points to;
a command's flag goes over both. Promise: what `load_settings` returns is consistent; anything else raises
`SettingsError`, which names the setting and the remedy in one line.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.reading import read_text
from ticketgate.codecs.files.toml_text import read_toml
from ticketgate.streams.config.addresses import OptionalPath, RedisUrl, ScorerName
from ticketgate.streams.config.console_settings import ConsoleSettings
from ticketgate.streams.config.kafka_settings import Key
from ticketgate.streams.config.kubernetes import is_service_variable
from ticketgate.streams.config.setting_kinds import (
    Aliases,
    Duration,
    Processes,
    Roles,
    SettingsError,
    show_duration,
)

PREFIX = "TICKETGATE_"
CONFIG_VARIABLE = "TICKETGATE_CONFIG"
# In the environment under our prefix, and no settings of a worker: where the settings' file lies, and where the
# embedded broker finds its jars (embedded/java.py).
OTHER_VARIABLES = frozenset({CONFIG_VARIABLE, "TICKETGATE_KAFKA_JARS"})

Guarantee = Literal["exactly_once", "at_least_once"]


class Settings(ConsoleSettings):
    """The settings of one process. Frozen; durations are `timedelta`, sizes bytes, paths relative to the process."""

    redis: RedisUrl = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        description="URL of the Redis or Valkey that holds the claims; redis+sentinel://… for Sentinels",
    )
    namespace: str = Field(
        "ticketgate",
        description="this deployment's identity in Redis and in transactional ids; never shared, never changed",
        pattern=r"^[A-Za-z0-9._-]{1,64}$",
    )
    group: str = Field("ticketgate", description="Kafka consumer group of the workers", min_length=1)
    roles: Roles = Field(
        ("decide",),
        description="what a worker does, comma-separated: decide (on tickets), propose (judge proposed calls),"
        " effects (carry out what was accepted), settle (take what people decided about review)",
    )
    funnel: OptionalPath = Field(
        None, description="funnel file (TOML): catalogue, look-ups, and who carries out which effect"
    )
    policy: OptionalPath = Field(None, description="policy file (TOML or JSON)")
    policy_poll: Duration = Field(
        timedelta(seconds=2),
        description="how often a worker looks whether the policy file has changed; SIGHUP makes it look at once",
        gt=timedelta(0),
    )
    scorer: ScorerName = Field(
        "onnx",
        description="who answers: onnx, fixed:PATH for given answers, or remote:URL for a System One server",
    )
    model: OptionalPath = Field(
        None, description="model folder of the onnx scorer; unset, the model that comes along"
    )
    model_aliases: Aliases = Field(
        (),
        description="names that a System One request may give for another model, comma-separated NAME=FOLDER; any"
        " other name is answered by the default model",
    )
    scorer_key: Key | None = Field(None, description="key that is sent to the remote scorer")
    scorer_model: str | None = Field(
        None, description="model that the remote scorer is asked for; unset, jev-latest", min_length=1
    )
    guarantee: Guarantee = Field(
        "exactly_once", description="exactly_once, or at_least_once for a broker without transactions"
    )

    topic_tickets: str = Field("tickets", description="topic of incoming tickets")
    topic_proposals: str = Field("proposals", description="topic of calls that a model proposes")
    topic_dispatch: str = Field("dispatch", description="topic of accepted decisions")
    topic_review: str = Field("review", description="topic of decisions for a person")
    topic_dead_letter: str = Field(
        "dead-letter", description="topic of records that could not be read as tickets or proposals"
    )
    topic_repairs: str = Field("repairs", description="topic of what a proposer may mend of its call")
    topic_receipts: str = Field(
        "receipts", description="topic of the evidence: what was judged, and what was done"
    )
    topic_policies: str = Field(
        "policies", description="topic of every policy that was in force, by its hash"
    )
    partitions: int = Field(6, description="partitions that `topics create` gives a topic", ge=1, le=10_000)
    replication: int = Field(
        1, description="replication factor that `topics create` gives a topic", ge=1, le=32
    )
    tickets_retention: Duration = Field(
        timedelta(days=7), description="how long `topics create` keeps tickets"
    )
    tickets_segment: Duration = Field(
        timedelta(days=1),
        description="longest time that a segment of `tickets` stays open; adds to its retention",
    )
    outputs_retention: Duration = Field(
        timedelta(days=30), description="how long `topics create` keeps outputs; at least claim_ttl"
    )
    duplicate_horizon: Duration = Field(
        timedelta(days=2),
        description="how late a producer may send a ticket again and still have it suppressed",
    )
    # As long as outputs are kept, so that what lies in review can be settled for as long as it lies there. A topic with
    # Kafka's own defaults keeps records for 7 days in segments of 7; with the duplicate_horizon of 2 that is 16.
    claim_ttl: Duration = Field(
        timedelta(days=30),
        description="how long a claim on an idempotency key lives; unless told, as outputs_retention",
    )

    batch_size: int = Field(64, description="most tickets that one transaction takes", ge=1, le=10_000)
    max_ticket_bytes: int = Field(
        262_144, description="largest ticket read, in bytes", ge=1_024, le=64 * 2**20
    )
    max_record_bytes: int = Field(
        1_000_000,
        description="largest record sent, in bytes; at most the broker's message.max.bytes",
        ge=10_000,
    )
    dispatch_with_ticket: bool = Field(
        False, description="whether records in dispatch carry the ticket's text"
    )
    processes: Processes = Field(
        1, description="worker processes under one `ticketgate worker`: a number, or auto for one a core"
    )
    scorer_threads: int = Field(1, description="threads of one inference", ge=1, le=256)
    scorer_timeout: Duration = Field(
        timedelta(seconds=60), description="longest time that deciding a batch may take"
    )
    transaction_timeout: Duration = Field(
        timedelta(seconds=60), description="after this the broker aborts a transaction left open"
    )
    commit_timeout: Duration = Field(
        timedelta(seconds=20),
        description="longest time that one transaction may take; less than transaction_timeout",
    )
    session_timeout: Duration = Field(
        timedelta(seconds=10), description="a worker silent for this long loses its partitions"
    )
    drain_grace: Duration = Field(
        timedelta(seconds=15), description="on SIGTERM, time in which the batches under way may finish"
    )

    redis_fsync: Literal["always", "everysec"] = Field(
        "always",
        description="the appendfsync that Redis must have; everysec can lose a second of claims in a crash",
    )
    redis_replicas: int = Field(
        0, description="replicas that must have a claim on disk before it counts", ge=0, le=16
    )
    redis_timeout: Duration = Field(
        timedelta(seconds=5), description="longest time that Redis may take for one answer"
    )

    condition_interval: Duration = Field(
        timedelta(seconds=60),
        description="how often a worker looks again whether Redis, broker and topics are as delivery needs them",
        ge=timedelta(milliseconds=100),
        le=timedelta(minutes=3),
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least level that is logged"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        needed = self.tickets_retention + self.tickets_segment + self.duplicate_horizon
        if self.claim_ttl < needed:
            # A claim that expires while its ticket can still be read or sent again would let it through twice.
            raise ValueError(
                f"claim_ttl: {show_duration(self.claim_ttl)} is less than tickets_retention + tickets_segment"
                f" + duplicate_horizon; set it to at least {show_duration(needed)}"
            )
        if self.outputs_retention < self.claim_ttl:
            raise ValueError(
                f"outputs_retention: {show_duration(self.outputs_retention)} is less than claim_ttl, and claims could"
                f" not be rebuilt; set it to at least {show_duration(self.claim_ttl)}"
            )
        if self.commit_timeout >= self.transaction_timeout:
            raise ValueError(
                f"commit_timeout: {show_duration(self.commit_timeout)} is not less than transaction_timeout;"
                f" set it below {show_duration(self.transaction_timeout)}"
            )
        if self.max_unpacked_bytes <= self.max_ticket_bytes:
            raise ValueError(
                f"max_unpacked_bytes: {self.max_unpacked_bytes} is not more than max_ticket_bytes, so that the largest"
                f" ticket could not be read; set it above {self.max_ticket_bytes}"
            )
        names = [getattr(self, name) for name in type(self).model_fields if name.startswith("topic_")]
        if len(set(names)) < len(names):
            raise ValueError(
                f"topic_tickets: two topics share a name; give each of {', '.join(names)} its own"
            )
        return self


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and for each name where its value came from: `flag`, `environment`, the file's path, or `default`."""

    settings: Settings
    sources: Mapping[str, str]


def load_settings(
    flags: Mapping[str, object] | None = None, *, environment: Mapping[str, str] | None = None
) -> LoadedSettings:
    """Read the settings of this process: flags over environment over file over defaults.

    Flags that are None are not given. Raises `SettingsError`.
    """
    environment = os.environ if environment is None else environment
    values: dict[str, object] = {}
    sources = dict.fromkeys(Settings.model_fields, "default")

    def take(found: Mapping[str, object], source: str, spell: Callable[[str], str]) -> None:
        for name, value in found.items():
            if name not in Settings.model_fields:
                raise SettingsError(spell(name), "unknown setting", _nearest(name))
            values[name] = value
            sources[name] = source

    if path := environment.get(CONFIG_VARIABLE):
        take(_read_file(Path(path)), path, lambda name: f"{path}: {name}")
    given = {
        variable.removeprefix(PREFIX).lower(): value
        for variable, value in environment.items()
        if variable.startswith(PREFIX)
        and variable not in OTHER_VARIABLES
        and not is_service_variable(variable.removeprefix(PREFIX), value)
    }
    take(given, "environment", lambda name: f"{PREFIX}{name.upper()}")
    take(
        {name: value for name, value in (flags or {}).items() if value is not None},
        "flag",
        lambda name: f"--{name}",
    )
    try:
        return LoadedSettings(Settings.model_validate(values), sources)
    except ValidationError as err:
        raise _explain(err, sources) from err


def ledger_ttl(settings: Settings) -> timedelta:
    """How long a settled effect stays in the ledger: as long as its record can be read from `dispatch` again."""
    return settings.outputs_retention + settings.tickets_segment


def _read_file(path: Path) -> Mapping[str, Any]:
    try:
        text = read_text(path, kind="file of settings", remedy="name a readable TOML file")
        return read_toml(text, source=str(path))
    except FileFault as err:
        if err.is_unreadable:
            raise SettingsError(CONFIG_VARIABLE, f"{path}: {err.what}", err.remedy) from err
        where = str(path) if err.line is None else f"{path}:{err.line}"
        raise SettingsError(where, err.what, err.remedy) from err


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), Settings.model_fields, n=1)
    return f"did you mean {PREFIX}{near[0].upper()}?" if near else "`ticketgate settings` lists all"


def _explain(err: ValidationError, sources: Mapping[str, str]) -> SettingsError:
    """The first finding as one line; a contradiction names its setting before the colon (see `_consistent`)."""
    first = err.errors(include_url=False, include_input=False)[0]
    if first["loc"]:
        name = str(first["loc"][0])
        message = first["msg"].removeprefix("Value error, ")
        where = f" (from {sources[name]})"
        remedy = f"it is {Settings.model_fields[name].description}"
    else:
        name, _, rest = first["msg"].removeprefix("Value error, ").partition(": ")
        message, _, remedy = rest.partition("; ")
        where = ""
    return SettingsError(f"{PREFIX}{name.upper()}", message + where, remedy)
