"""Why a broker that is there does not let us in: asked on connections of our own.

aiokafka tells what a broker or its certificate said to its log alone, and its callers that no broker could be reached.
So whoever was told that asks here. Source: aiokafka 0.14, `AIOKafkaClient.bootstrap` and `_get_conn`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator

from aiokafka import errors as kafka
from aiokafka.conn import collect_hosts
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.kafka.advertised import brokers_known_at
from ticketgate.streams.kafka.connection import KafkaConnection

# Brokers that are there refuse within a second; what is silent for longer is away.
ASK_TIMEOUT_S = 5.0
# OpenSSL's codes for a certificate of another name, and of another address.
_OF_ANOTHER_NAME = frozenset({62, 64})


class KafkaRefused(SettingsError):
    """A broker and the settings disagree on who may connect, or how. It will not heal: a person must act.

    Whatever raises `Unreachable` for a broker raises this instead where a broker is there and refuses.
    """


async def find_refusal(connection: KafkaConnection) -> SettingsError | None:
    """What keeps us out, be it a file of ours; None if nothing is found, or no broker is there.

    Without TLS and SASL there is nothing to disagree on, and nobody is asked.
    """
    if not (connection.settings.has_tls or connection.settings.has_sasl):
        return None
    try:
        async with asyncio.timeout(ASK_TIMEOUT_S):
            return await _ask_all(connection)
    except SettingsError as err:
        return err
    except TimeoutError:
        return None  # nobody is there


async def _ask_all(connection: KafkaConnection) -> KafkaRefused | None:
    asked: set[tuple[str, int]] = set()
    waiting = [(host, port) for host, port, _ in collect_hosts(str(connection))]
    while waiting:
        host, port = waiting.pop(0)
        if (host, port) in asked:
            continue
        asked.add((host, port))
        try:
            # A broker gives itself other names than the bootstrap servers', and its certificate may lack those.
            known = await brokers_known_at(host, port, connection.access(), timeout_s=ASK_TIMEOUT_S)
            waiting += [(host, port) for _, host, port in known]
        except (kafka.KafkaError, OSError, ValueError, AssertionError) as err:
            if refused := _explain(err, f"{host}:{port}", connection):
                return refused
    return None


def _explain(err: BaseException, where: str, connection: KafkaConnection) -> KafkaRefused | None:
    """What an error says of a disagreement. Of what the broker said nothing is repeated but OpenSSL's words."""
    settings = connection.settings
    for each in _causes(err):
        match each:
            case ssl.SSLCertVerificationError() if each.verify_code in _OF_ANOTHER_NAME:
                return KafkaRefused(
                    "TICKETGATE_KAFKA",
                    f"the certificate of {where} is not for that name ({each.verify_message.rstrip('.')})",
                    "reach it by a name in its certificate, which its advertised.listeners must give as well",
                )
            case ssl.SSLCertVerificationError():
                return KafkaRefused(
                    "TICKETGATE_KAFKA_CA",
                    f"the certificate of {where} is not trusted ({each.verify_message})",
                    "name the CA that signed it",
                )
            case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
                return None  # it may be ending
            case ssl.SSLError():
                return _tls_refused(each, where, connection)
            case kafka.SaslAuthenticationFailed() | kafka.AuthenticationFailedError():
                return KafkaRefused(
                    "TICKETGATE_KAFKA_PASSWORD",
                    f"{where} does not take it for user {settings.kafka_user!r} by {settings.kafka_sasl}",
                    "set the password that the broker knows, or TICKETGATE_KAFKA_USER",
                )
            case kafka.UnsupportedSaslMechanismError():
                return KafkaRefused(
                    "TICKETGATE_KAFKA_SASL",
                    f"{where} does not take {settings.kafka_sasl}",
                    "set it to what its listener has enabled",
                )
            case kafka.IllegalSaslStateError():
                return KafkaRefused(
                    "TICKETGATE_KAFKA_SECURITY",
                    f"{where} asks for no user",
                    "set it as its listener is, or name another listener in TICKETGATE_KAFKA",
                )
            case ValueError() | AssertionError() if settings.has_sasl:
                return KafkaRefused(
                    "TICKETGATE_KAFKA",
                    f"{where} does not prove that it knows the password",
                    "see who listens there",
                )
            case _:
                pass
    return None


def _tls_refused(err: ssl.SSLError, where: str, connection: KafkaConnection) -> KafkaRefused:
    reason = err.reason or "no reason given"
    if "CERTIFICATE" in reason or "UNKNOWN_CA" in reason:
        what = "not set, and" if connection.settings.kafka_certificate is None else "not taken:"
        return KafkaRefused(
            "TICKETGATE_KAFKA_CERTIFICATE",
            f"{what} {where} asks for a certificate that it trusts ({reason})",
            "name one that a CA in the broker's truststore signed",
        )
    return KafkaRefused(
        "TICKETGATE_KAFKA_SECURITY",
        f"no TLS with {where} ({reason})",
        "set it as the listener is, or name another listener in TICKETGATE_KAFKA",
    )


def _causes(err: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = err
    while each is not None:
        yield each
        each = each.__cause__
