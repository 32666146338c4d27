"""What the doctor says of one thing, and how errors that are made for people become that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from ticketgate.agents.funnel.file.funnel_file import FunnelFileError
from ticketgate.agents.policy import PolicyError
from ticketgate.agents.scoring import ScorerError
from ticketgate.agents.settling.console_keys import ConsoleKeysError
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.kafka.broker import Unreachable

Status = Literal["ok", "warning", "fault"]
Check = Literal[
    "versions",
    "settings",
    "policy",
    "funnel",
    "console keys",
    "model",
    "broker",
    "topics",
    "redis",
    "clock",
    "cores",
    "port",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line: what was looked at, how it stands, and for all but `ok` the remedy."""

    check: Check
    status: Status
    what: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """As `--json` prints it."""
        return {"check": self.check, "status": self.status, "what": self.what, "remedy": self.remedy}


MADE_FOR_PEOPLE = (
    SettingsError,
    Unreachable,
    ConditionFailed,
    PolicyError,
    ScorerError,
    FunnelFileError,
    ConsoleKeysError,
)
"""Errors that have `what` and `remedy`, and perhaps the setting or place."""


def fault_of(check: Check, err: Exception) -> Finding:
    """An error made for people, as a finding."""
    told: Any = err
    match err:
        case SettingsError() | Unreachable() | ScorerError():
            where = f"{told.setting}: "
        case PolicyError():
            where = f"{err.source}:{err.line}: " if err.line else f"{err.source}: "
        case FunnelFileError() | ConsoleKeysError():
            where = f"{told.where}: "
        case _:
            where = ""
    return Finding(check, "fault", f"{where}{told.what}", told.remedy)
