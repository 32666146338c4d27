"""A policy as commands name it: a file, or `hash:HASH` for one that was in force."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ticketgate.streams.config.settings import load_settings

if TYPE_CHECKING:
    from ticketgate.agents.policy import Policy
    from ticketgate.streams.operations.policies import KeptPolicy

HASH = "hash:"


def policy_named(name: Path) -> Policy:
    """The policy in a file, or after `hash:` the one that workers had in force, from the topic that keeps them.

    Raises PolicyError for a file, and what `kept_policy` raises for a hash.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.policy import load_policy

    if not str(name).startswith(HASH):
        return load_policy(name)
    return kept_policy(str(name).removeprefix(HASH)).load()


def kept_policy(prefix: str, *, kafka: str | None = None) -> KeptPolicy:
    """The policy that was in force, by the beginning of its hash. kafka: goes over the setting.

    Raises `SettingsError`, `CommandError` and `Unreachable`.
    """
    from ticketgate.streams.cli.output import quiet_libraries
    from ticketgate.streams.operations.policies import kept_policies

    quiet_libraries()
    return asyncio.run(kept_policies(load_settings({"kafka": kafka}).settings)).find(prefix)
