"""The settings that say how Kafka is reached: where, over which protocol, and as whom.

Promise: what is made does not contradict itself. No file is read here: a certificate may come after the settings, and
is looked at when a connection is opened (connection.py).
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator
from ticketgate.streams.config.addresses import OptionalPath, Servers

Security = Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"]
Sasl = Literal["plain", "scram-sha-256", "scram-sha-512"]


# A batch is at most as large as the broker takes (message.max.bytes, 1 MiB if nothing is said), and text is packed to a
# tenth, seldom to a fiftieth. Unpacking and reading one takes about four times as much memory.
MAX_UNPACKED_BYTES = 64 * 2**20


class Key(SecretStr):
    """A secret that is shown in no part, where a URL shows its host."""


class KafkaSettings(BaseModel):
    """How Kafka is reached."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=False)

    kafka: Servers = Field(
        "127.0.0.1:9092", description="Kafka bootstrap servers, comma-separated host:port", min_length=1
    )
    kafka_security: Security = Field(
        "plaintext",
        description="what the brokers' listener speaks: plaintext, ssl, sasl_plaintext or sasl_ssl",
    )
    kafka_ca: OptionalPath = Field(
        None, description="PEM file of the CAs that may sign brokers' certificates; unset, the system's"
    )
    kafka_certificate: OptionalPath = Field(
        None, description="PEM file of the client's certificate and its chain, for brokers that ask for one"
    )
    kafka_key: OptionalPath = Field(None, description="PEM file of the client certificate's private key")
    kafka_key_password: Key | None = Field(
        None, description="password of the private key's file, if it has one", min_length=1
    )
    kafka_sasl: Sasl | None = Field(
        None, description="how the password is proven: plain, scram-sha-256 or scram-sha-512"
    )
    kafka_user: str | None = Field(None, description="user that the brokers know", min_length=1)
    kafka_password: Key | None = Field(None, description="the user's password", min_length=1)
    max_unpacked_bytes: int = Field(
        MAX_UNPACKED_BYTES,
        description="largest size that a compressed batch of records may unpack to, in bytes; above max_ticket_bytes",
        ge=2**20,
        le=2**31 - 1,
    )

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.kafka_security in ("ssl", "sasl_ssl")

    @property
    def has_sasl(self) -> bool:
        """Whether a user is named to the brokers."""
        return self.kafka_security in ("sasl_plaintext", "sasl_ssl")

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        """A setting that would be passed over in silence is refused: its owner believes that it protects."""
        self._refuse_what_is_not_used()
        if self.has_sasl:
            self._require("kafka_sasl", "set it to plain, scram-sha-256 or scram-sha-512, as the brokers do")
            self._require("kafka_user", "name the user that the brokers know")
            self._require("kafka_password", "set the user's password")
        if self.kafka_certificate is not None and self.kafka_key is None:
            raise ValueError(
                "kafka_key: not set, and kafka_certificate is; name the file of its private key, which may be the same"
            )
        if self.kafka_key is not None and self.kafka_certificate is None:
            raise ValueError("kafka_certificate: not set, and kafka_key is; name the key's certificate")
        if self.kafka_key_password is not None and self.kafka_key is None:
            raise ValueError("kafka_key: not set, and kafka_key_password is; name the file that it opens")
        return self

    def _refuse_what_is_not_used(self) -> None:
        for name in ("kafka_ca", "kafka_certificate", "kafka_key", "kafka_key_password"):
            if not self.has_tls and getattr(self, name) is not None:
                raise ValueError(
                    f"{name}: set, and kafka_security is {self.kafka_security}, which has no TLS;"
                    " set kafka_security to ssl or sasl_ssl, or unset it"
                )
        for name in ("kafka_sasl", "kafka_user", "kafka_password"):
            if not self.has_sasl and getattr(self, name) is not None:
                raise ValueError(
                    f"{name}: set, and kafka_security is {self.kafka_security}, which names no user;"
                    " set kafka_security to sasl_ssl, or unset it"
                )

    def _require(self, name: str, remedy: str) -> None:
        if getattr(self, name) is None:
            raise ValueError(f"{name}: not set, and kafka_security is {self.kafka_security}; {remedy}")
