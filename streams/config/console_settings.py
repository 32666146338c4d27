"""The settings of the console: where it listens, who may come in, and for how long.

Promise: what is made does not contradict itself. No file is read here.
"""

from __future__ import annotations

import ipaddress
from datetime import timedelta
from typing import Self

from pydantic import Field, field_validator, model_validator
from ticketgate.streams.config.addresses import Bind, OptionalPath
from ticketgate.streams.config.kafka_settings import Key
from ticketgate.streams.config.review_settings import ReviewSettings
from ticketgate.streams.config.setting_kinds import Duration, Names

# As long as 128 bits are in hexadecimal.
LEAST_SECRET = 32


class ConsoleSettings(ReviewSettings):
    """How the console is opened, and to whom."""

    console_bind: Bind = Field(
        "127.0.0.1", description="address of the console; beyond this machine it needs console_users"
    )
    console_port: int = Field(6067, description="port of the console; 0 takes a free one", ge=0, le=65_535)
    console_users: OptionalPath = Field(
        None,
        description="file (JSON) of who may come in, as `ticketgate console user` writes it; unset, one person with a"
        " token that is told at the start",
    )
    console_hosts: Names = Field(
        (),
        description="names by which browsers reach the console, comma-separated, beside localhost, this machine's name,"
        " console_bind and addresses",
    )
    console_idle: Duration = Field(
        timedelta(minutes=30), description="after so long without a request a session ends", gt=timedelta(0)
    )
    console_session: Duration = Field(
        timedelta(hours=12), description="longest time that a session lasts", gt=timedelta(0)
    )
    console_proxy: Names = Field(
        (),
        description="addresses or networks of the proxies that may say who asks, comma-separated; unset, none",
    )
    console_proxy_secret: Key | None = Field(
        None, description="what such a proxy sends in X-Ticketgate-Proxy-Secret; at least 32 characters"
    )
    console_proxy_user: str = Field(
        "X-Forwarded-User",
        description="header in which such a proxy names the person, by a name of console_users",
        pattern=r"^[A-Za-z0-9-]{1,64}$",
    )

    @field_validator("console_proxy")
    @classmethod
    def _networks(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for each in names:
            try:
                ipaddress.ip_network(each, strict=False)
            except ValueError:
                raise ValueError(f"{each!r} is no address and no network such as 10.0.0.0/24") from None
        return names

    @model_validator(mode="after")
    def _door(self) -> Self:
        if self.console_idle > self.console_session:
            raise ValueError(
                "console_idle: longer than console_session, and would never end one; set it below that"
            )
        secret = self.console_proxy_secret
        if bool(self.console_proxy) != (secret is not None):
            has, lacks = (
                ("console_proxy", "console_proxy_secret")
                if secret is None
                else ("console_proxy_secret", "console_proxy")
            )
            raise ValueError(f"{has}: set without {lacks}, and a proxy is known by both; set {lacks}")
        if secret is not None and len(secret.get_secret_value()) < LEAST_SECRET:
            raise ValueError(
                f"console_proxy_secret: shorter than {LEAST_SECRET} characters; make one by `openssl rand -hex 32`"
            )
        if self.console_proxy and self.console_users is None:
            raise ValueError(
                "console_proxy: set without console_users, which says what each person may do; set console_users"
            )
        return self
