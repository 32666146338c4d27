"""The settings that say how Kafka is reached, what contradicts itself in them, and what aiokafka gets of them."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiokafka.errors as kafka
import pytest
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings, load_settings
from ticketgate.streams.kafka import connection as kafka_connection
from ticketgate.streams.kafka.broker import Unreachable, admin_client
from ticketgate.streams.kafka.connection import KafkaConnection, connection_of
from ticketgate.streams.kafka.faults import Action
from ticketgate.streams.kafka.reading.scanning import broker_errors
from ticketgate.streams.lane.recovery import handling
from ticketgate.streams.parts.ports import free_port

from tests.support.secure_kafka import KEY_PASSWORD, Certificates

USER = {"kafka_sasl": "scram-sha-512", "kafka_user": "alice", "kafka_password": "s3cret"}
SASL_SSL = {"kafka_security": "sasl_ssl", **USER}


def settings(given: Mapping[str, object]) -> Settings:
    environment = {f"TICKETGATE_{name.upper()}": str(value) for name, value in given.items()}
    return load_settings(environment=environment).settings


def connection(given: Mapping[str, object]) -> KafkaConnection:
    return connection_of(settings(given))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def test_without_further_settings_a_connection_is_plain() -> None:
    assert connection({"kafka": "one:1,two:2"}).arguments() == {
        "bootstrap_servers": "one:1,two:2",
        "security_protocol": "PLAINTEXT",
    }


def test_a_user_is_named_as_aiokafka_wants_it() -> None:
    arguments = connection({"kafka_security": "sasl_plaintext", **USER}).arguments()

    assert arguments == {
        "bootstrap_servers": "127.0.0.1:9092",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "s3cret",
    }


def test_the_brokers_certificate_and_its_name_are_always_checked(files: Certificates) -> None:
    for given in ({}, {"kafka_ca": files.ca}):
        context: ssl.SSLContext = connection({**SASL_SSL, **given}).arguments()["ssl_context"]

        assert context.check_hostname
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_ca_stands_in_the_place_of_the_systems(files: Certificates) -> None:
    context: ssl.SSLContext = connection({"kafka_security": "ssl", "kafka_ca": files.ca}).arguments()[
        "ssl_context"
    ]

    assert context.cert_store_stats()["x509_ca"] == 1


@pytest.mark.parametrize(
    ("given", "setting", "what"),
    [
        ({"kafka_security": "tls"}, "KAFKA_SECURITY", "Input should be 'plaintext'"),
        ({"kafka_security": "sasl_ssl"}, "KAFKA_SASL", "not set, and kafka_security is sasl_ssl"),
        ({**SASL_SSL, "kafka_sasl": "gssapi"}, "KAFKA_SASL", "Input should be 'plain'"),
        ({**SASL_SSL, "kafka_user": None}, "KAFKA_USER", "not set, and kafka_security is sasl_ssl"),
        ({**SASL_SSL, "kafka_password": None}, "KAFKA_PASSWORD", "not set, and kafka_security is sasl_ssl"),
        ({**SASL_SSL, "kafka_password": ""}, "KAFKA_PASSWORD", "at least 1"),
        ({"kafka_password": "s3cret"}, "KAFKA_PASSWORD", "kafka_security is plaintext, which names no user"),
        ({"kafka_security": "ssl", **USER}, "KAFKA_SASL", "kafka_security is ssl, which names no user"),
        ({"kafka_ca": "ca.pem"}, "KAFKA_CA", "kafka_security is plaintext, which has no TLS"),
        (
            {**USER, "kafka_security": "sasl_plaintext", "kafka_certificate": "c.pem", "kafka_key": "k.pem"},
            "KAFKA_CERTIFICATE",
            "kafka_security is sasl_plaintext, which has no TLS",
        ),
        ({"kafka_security": "ssl", "kafka_certificate": "c.pem"}, "KAFKA_KEY", "not set, and kafka_cert"),
        ({"kafka_security": "ssl", "kafka_key": "k.pem"}, "KAFKA_CERTIFICATE", "not set, and kafka_key is"),
        ({"kafka_security": "ssl", "kafka_key_password": "s3cret"}, "KAFKA_KEY", "not set, and kafka_key_p"),
    ],
)
def test_a_contradiction_is_one_line_with_the_setting_and_the_remedy(
    given: Mapping[str, object], setting: str, what: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        settings({name: value for name, value in given.items() if value is not None})

    assert refused.value.setting == f"TICKETGATE_{setting}"
    assert what in refused.value.what
    assert refused.value.remedy
    assert "\n" not in str(refused.value)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"kafka_ca": "nowhere"},
            "KAFKA_CA: cannot read nowhere (No such file or directory)",
        ),
        ({"kafka_ca": "text"}, "KAFKA_CA: no certificate in {text}"),
        ({"kafka_certificate": "nowhere"}, "KAFKA_CERTIFICATE: cannot read nowhere"),
        ({"kafka_certificate": "text"}, "KAFKA_CERTIFICATE: no certificate in {text}"),
        ({"kafka_key": "nowhere"}, "KAFKA_KEY: cannot read nowhere"),
        ({"kafka_key": "text"}, "KAFKA_KEY: no private key in {text}"),
        ({"kafka_key": "broker"}, "KAFKA_KEY: {broker} is not the key of {client}; name the one that is"),
        (
            {"kafka_key_password": "wr0ng"},
            "KAFKA_KEY: {key} cannot be opened; set its password in",
        ),
        (
            {"kafka_key_password": None},
            "KAFKA_KEY: {key} cannot be opened; set its password in",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_when_a_connection_is_opened(
    files: Certificates, tmp_path: Path, changed: Mapping[str, str | None], said: str
) -> None:
    text = tmp_path / "text.pem"
    text.write_text("no PEM\n")
    places = {"text": text, "broker": files.broker, "client": files.client, "key": files.client_key}
    given: dict[str, Any] = {
        "kafka_security": "ssl",
        "kafka_ca": files.ca,
        "kafka_certificate": files.client,
        "kafka_key": files.client_key,
        "kafka_key_password": KEY_PASSWORD,
    }
    given |= {name: places.get(value or "", value) for name, value in changed.items()}
    made = connection({name: value for name, value in given.items() if value is not None})

    with pytest.raises(SettingsError) as refused:
        made.arguments()

    assert said.format(**places) in str(refused.value)
    assert "wr0ng" not in str(refused.value)


def test_a_key_without_a_password_is_read(files: Certificates) -> None:
    given = {"kafka_security": "ssl", "kafka_certificate": files.client, "kafka_key": files.client_key_plain}

    assert "ssl_context" in connection(given).arguments()


def test_secrets_stand_in_no_text_of_a_connection() -> None:
    made = connection(
        {**SASL_SSL, "kafka_certificate": "c", "kafka_key": "k", "kafka_key_password": "s3cret too"}
    )

    assert "s3cret" not in f"{made} {made!r} {made.settings}"


def test_what_aiokafka_logs_of_its_requests_is_dropped_for_one_holds_the_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    connection(SASL_SSL).arguments()
    log = logging.getLogger("aiokafka.conn")

    with caplog.at_level(logging.DEBUG, logger="aiokafka.conn"):
        log.debug("Request to %s:%d %d: %s", "host", 1, 2, "SaslAuthenticateRequest(s3cret)")
        log.warning("said")

    assert caplog.messages == ["said"]


async def test_a_broker_that_is_not_there_is_unreachable_and_refuses_nobody() -> None:
    given = {**SASL_SSL, "kafka": f"127.0.0.1:{free_port()}"}

    with pytest.raises(
        Unreachable, match=r"no broker answers at 127\.0\.0\.1:.* by sasl_ssl; .*TICKETGATE_KAFKA_SECURITY"
    ):
        async with asyncio.timeout(30), admin_client(connection(given)):
            pass


@pytest.mark.parametrize(
    "error", [kafka.KafkaConnectionError("x"), kafka.KafkaTimeoutError(), TimeoutError()]
)
async def test_a_broker_that_went_away_is_told_of_as_one_that_never_was_there(error: Exception) -> None:
    given = connection({"kafka": "broker.example:9092"})

    with pytest.raises(
        Unreachable, match=r": no broker answers at broker\.example:9092 by plaintext; start it"
    ):
        async with broker_errors(given):
            raise error


async def test_what_a_broker_answered_is_told_in_its_words_and_not_as_python_writes_it() -> None:
    with pytest.raises(
        Unreachable, match=r"answer as it should \(\[Error 29\] TopicAuthorizationFailedError\)"
    ):
        async with broker_errors(connection({})):
            raise kafka.TopicAuthorizationFailedError


@pytest.mark.parametrize(
    "error",
    [
        SettingsError("TICKETGATE_KAFKA_CA", "cannot read ca.pem", "name another"),
        kafka.SaslAuthenticationFailed(),
        kafka.UnsupportedSaslMechanismError(),
        ssl.SSLCertVerificationError(),
        ssl.SSLError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_lane_refuses_what_will_not_heal(error: Exception) -> None:
    assert handling(error).action is Action.REFUSE


def test_there_is_one_way_to_kafka() -> None:
    folder = Path(kafka_connection.__file__).resolve().parent

    named = [
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if "bootstrap_servers=" in path.read_text() or '"bootstrap_servers"' in path.read_text()
    ]

    assert named == ["connection.py"]
