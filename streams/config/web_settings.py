"""The settings of the web port: where it listens, who may ask, and how much it holds at once.

Promise: what is made does not contradict itself.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator
from ticketgate.streams.config.addresses import Bind
from ticketgate.streams.config.kafka_settings import KafkaSettings
from ticketgate.streams.config.setting_kinds import Duration, Keys, Names


class WebSettings(KafkaSettings):
    """How the web port is opened, and what it takes."""

    web_bind: Bind = Field("127.0.0.1", description="address of the web port")
    web_port: int = Field(
        6066,
        description="web port: /v1/systemone /v1/models /healthz /readyz /metrics; 0 takes a free one",
        ge=0,
        le=65_535,
    )
    web_health_port: int | None = Field(
        None,
        description="port of its own for /healthz, /readyz and /metrics, which the web port then has not; unset, none",
        ge=1,
        le=65_535,
    )
    web_keys: Keys = Field(
        (),
        description="keys of which a caller of /v1 must send one (Bearer), comma-separated; unset, none is needed",
    )
    web_hosts: Names = Field(
        (),
        description="names by which callers of /v1 reach this port, comma-separated, beside localhost, this machine's"
        " name, web_bind and addresses",
    )
    web_origins: Names = Field(
        (),
        description="origins whose pages may ask /v1, comma-separated, such as https://desk.example; unset, none"
        " but this port's own",
    )
    web_max_bytes: int = Field(
        1_048_576, description="largest request body taken, in bytes", ge=1_024, le=64 * 2**20
    )
    web_bytes_at_once: int = Field(
        64 * 2**20,
        description="bytes that the bodies of all requests under way may have together; at least web_max_bytes",
        ge=1_024,
        le=2**32,
    )
    web_connections: int = Field(
        512,
        description="connections open at once; fewer where the process may open fewer files (ulimit -n)",
        ge=16,
        le=65_535,
    )
    web_idle_timeout: Duration = Field(
        timedelta(seconds=10),
        description="how long a connection may wait for a request and its whole header",
        gt=timedelta(0),
    )
    web_requests_a_key: int = Field(
        128, description="requests of one key under way at once, where there are keys", ge=1, le=10_000
    )
    web_rate: float | None = Field(
        None, description="requests a second that one key may make; unset, any; needs web_keys", gt=0, le=1e6
    )
    web_timeout: Duration = Field(
        timedelta(seconds=30),
        description="longest time that a request may take, from its first byte to its answer",
        gt=timedelta(0),
    )

    @model_validator(mode="after")
    def _answers(self) -> Self:
        if self.web_bytes_at_once < self.web_max_bytes:
            raise ValueError(
                f"web_bytes_at_once: {self.web_bytes_at_once} is less than web_max_bytes, and a body of that size"
                f" could never be taken; set it to at least {self.web_max_bytes}"
            )
        if self.web_rate is not None and not self.web_keys:
            raise ValueError(
                "web_rate: set, and web_keys is not, so there are no keys to count by; set web_keys"
            )
        if self.web_health_port is not None and self.web_health_port == self.web_port:
            raise ValueError("web_health_port: the same as web_port; give it a port of its own, or unset it")
        return self
