"""What a broker allows, against what the settings ask for: told at the start, by the setting's name.

Promise: what is refused here would be refused by the broker, without saying which setting to change.
"""

from __future__ import annotations

from datetime import timedelta

from ticketgate.streams.config.setting_kinds import SettingsError, show_duration
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client, broker_config
from ticketgate.streams.kafka.connection import KafkaConnection

MOST_TRANSACTION = "transaction.max.timeout.ms"


async def require_within_limits(connection: KafkaConnection, settings: Settings) -> None:
    """The broker answers, and allows what the settings ask for as far as it tells. Raises `Unreachable` and
    `SettingsError`."""
    async with admin_client(connection) as client:
        config = await broker_config(client)
    if settings.guarantee == "exactly_once" and MOST_TRANSACTION in config:
        most = timedelta(milliseconds=int(config[MOST_TRANSACTION]))
        if settings.transaction_timeout > most:
            raise SettingsError(
                "TICKETGATE_TRANSACTION_TIMEOUT",
                f"{show_duration(settings.transaction_timeout)} is more than the broker allows"
                f" ({MOST_TRANSACTION})",
                f"set it to at most {show_duration(most)}",
            )
