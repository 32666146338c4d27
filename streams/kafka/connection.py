"""How every consumer, producer and admin client of ticketgate reaches Kafka: aiokafka's arguments, from the settings.

Promise: no connection is made in another way, no topic is made by asking for it, and the name in a broker's certificate
is always checked. What cannot be read is one line that names the setting. What comes over it unpacks to no more than
the settings allow (unpacking.py). Files are read anew for each client, so a renewed certificate counts from the next
client on.
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ticketgate.streams.config.kafka_settings import KafkaSettings
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import PREFIX
from ticketgate.streams.kafka import no_creation as _  # noqa: F401 - for its effect: asking for topics makes none
from ticketgate.streams.kafka import no_news as _no_news  # noqa: F401 - for its effect on the log
from ticketgate.streams.kafka.unpacking import limit_unpacking


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """A way to the brokers. Its settings' secrets stand in no text of it."""

    settings: KafkaSettings

    def __str__(self) -> str:
        """The bootstrap servers."""
        return self.settings.kafka

    def arguments(self) -> dict[str, Any]:
        """The keywords that AIOKafkaConsumer, AIOKafkaProducer and AIOKafkaAdminClient take for a connection.

        Raises `SettingsError` for a file that cannot be read, or does not hold what it should.
        """
        return {"bootstrap_servers": str(self), **self.access()}

    def access(self) -> dict[str, Any]:
        """As `arguments`, without the address."""
        given = self.settings
        limit_unpacking(given.max_unpacked_bytes)
        found: dict[str, Any] = {"security_protocol": given.kafka_security.upper()}
        if given.has_tls:
            found["ssl_context"] = _tls(given)
        if given.has_sasl and given.kafka_sasl is not None and given.kafka_password is not None:
            _keep_secrets_out_of_the_log()
            found |= {
                "sasl_mechanism": given.kafka_sasl.upper(),
                "sasl_plain_username": given.kafka_user,
                "sasl_plain_password": given.kafka_password.get_secret_value(),
            }
        return found


def connection_of(settings: KafkaSettings) -> KafkaConnection:
    """The way to Kafka that the settings name. Nothing is opened or read yet."""
    return KafkaConnection(settings)


def _tls(settings: KafkaSettings) -> ssl.SSLContext:
    """A context that demands a certificate of the broker, for the name it was reached by."""
    ca = None if settings.kafka_ca is None else _read("kafka_ca", settings.kafka_ca)
    try:
        context = ssl.create_default_context(cadata=ca)
    except ssl.SSLError as err:
        raise _wrong("kafka_ca", f"no certificate in {settings.kafka_ca}", "name a PEM file of CAs") from err
    # What the system's own configuration allows differs; TLS 1.0 and 1.1 are broken.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    if settings.kafka_certificate is not None and settings.kafka_key is not None:
        _load_certificate(context, settings, settings.kafka_certificate, settings.kafka_key)
    return context


def _load_certificate(context: ssl.SSLContext, settings: KafkaSettings, certificate: Path, key: Path) -> None:
    if "CERTIFICATE" not in _read("kafka_certificate", certificate):
        raise _wrong("kafka_certificate", f"no certificate in {certificate}", "name a PEM file")
    if "PRIVATE KEY" not in _read("kafka_key", key):
        raise _wrong("kafka_key", f"no private key in {key}", "name a PEM file")
    # Never None: OpenSSL would ask for the password on the terminal, and wait there.
    password = "" if settings.kafka_key_password is None else settings.kafka_key_password.get_secret_value()
    try:
        context.load_cert_chain(certificate, key, password)
    except (ssl.SSLError, ValueError) as err:
        if isinstance(err, ssl.SSLError) and err.reason == "KEY_VALUES_MISMATCH":
            raise _wrong(
                "kafka_key", f"{key} is not the key of {certificate}", "name the one that is"
            ) from err
        raise _wrong(
            "kafka_key",
            f"{key} cannot be opened",
            f"set its password in {PREFIX}KAFKA_KEY_PASSWORD, or name another file",
        ) from err


def _read(setting: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as err:
        raise _wrong(setting, f"cannot read {path} ({err.strerror})", "name a readable PEM file") from err
    except ValueError as err:
        raise _wrong(setting, f"{path} is no PEM file", "name one") from err


def _wrong(setting: str, what: str, remedy: str) -> SettingsError:
    return SettingsError(f"{PREFIX}{setting.upper()}", what, remedy)


def _is_fit_to_log(record: logging.LogRecord) -> bool:
    return record.levelno > logging.DEBUG and "in the clear" not in str(record.msg)


def _keep_secrets_out_of_the_log() -> None:
    """At level debug aiokafka logs each request whole, the one with the password too. Its warning of sasl_plaintext,
    one for each connection, a worker gives once."""
    logging.getLogger("aiokafka.conn").addFilter(_is_fit_to_log)
