"""Brokers that ask for TLS, a password or a certificate: everything works there, and what is refused says why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from ticketgate.streams.config.settings import Settings, load_settings
from ticketgate.streams.kafka.broker import describe_broker
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.refusals import KafkaRefused
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.valkey import Valkey

from ...conftest import require_or_skip
from ...support.deployment import Deployment
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.secure_kafka import PASSWORD, USER, Certificates, SecureKafka

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

WORKER = {"POLICY": str(SEED_POLICY), "SCORER": f"fixed:{FIXED_ANSWERS}", "PARTITIONS": "2"}


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    """One such broker for all tests here."""
    folder = tmp_path_factory.mktemp("secure")
    try:
        broker = SecureKafka(folder / "kafka", Certificates(folder))
    except PartMissing as err:
        require_or_skip(err)
    with broker:
        yield broker


def deployment(
    broker: SecureKafka, valkey: Valkey, folder: Path, access: Mapping[str, str], **settings: str
) -> Deployment:
    """Workers and commands go the way of `access`; what is read back comes by the plain listener."""
    given = {**WORKER, **{name.upper(): value for name, value in access.items()}, **settings}
    return Deployment(broker.bootstrap, valkey.url, folder / "deployment", given)


def test_tickets_are_decided_exactly_once_over_tls_by_a_user_with_a_password(
    secure: SecureKafka, valkey: Valkey, tmp_path: Path
) -> None:
    file = tmp_path / "tickets.jsonl"
    file.write_text("".join(json.dumps({"id": f"T-{n}", "state": f"ticket {n}"}) + "\n" for n in range(20)))
    with deployment(secure, valkey, tmp_path, secure.access()) as gate:
        produced = gate.run("produce", str(file))
        worker = gate.start_worker()
        worker.wait_ready()
        records = gate.wait_for_records(20, "dispatch", "review")
        consumed = [gate.run("consume", gate.topic(topic)) for topic in ("dispatch", "review")]
        audited = gate.run("audit", "--json")
        log = worker.log()

    assert produced.returncode == 0, produced.stderr
    assert Counter(json.loads(each.value or b"")["ticket_id"] for each in records) == Counter(
        f"T-{n}" for n in range(20)
    )
    assert sum(len(each.stdout.splitlines()) for each in consumed) == 20
    assert audited.returncode == 0, audited.stderr
    assert json.loads(audited.stdout)["missing"] == 0
    assert PASSWORD not in log + produced.stderr + audited.stderr


@pytest.mark.parametrize("sasl", ["scram-sha-256", "scram-sha-512"])
async def test_scram_users_are_let_in(secure: SecureKafka, sasl: str) -> None:
    broker = await describe_broker(connection_of(settings(secure.access(sasl))))

    assert broker.is_kafka_4


def test_a_client_certificate_lets_in_with_an_encrypted_key(
    secure: SecureKafka, valkey: Valkey, tmp_path: Path
) -> None:
    file = tmp_path / "tickets.jsonl"
    file.write_text('{"id": "T-1", "state": "one"}\n')
    with deployment(secure, valkey, tmp_path, secure.access_by_certificate()) as gate:
        produced = gate.run("produce", str(file))

        assert (produced.returncode, len(gate.committed("tickets"))) == (0, 1), produced.stderr


REFUSED = {
    "a wrong password": ({"kafka_password": "wr0ng"}, "TICKETGATE_KAFKA_PASSWORD: localhost:"),
    "a wrong password by SCRAM": (
        {"kafka_password": "wr0ng", "kafka_sasl": "scram-sha-256"},
        "TICKETGATE_KAFKA_PASSWORD: localhost:",
    ),
    "an unknown user": ({"kafka_user": "mallory"}, "does not take it for user 'mallory' by plain"),
    "another CA": ({"kafka_ca": "other"}, "TICKETGATE_KAFKA_CA: the certificate of localhost:"),
    "the system's CAs": ({"kafka_ca": None}, "TICKETGATE_KAFKA_CA: the certificate of localhost:"),
    "another name": ({"kafka": "127.0.0.1"}, "TICKETGATE_KAFKA: the certificate of 127.0.0.1:"),
    "a file that is not there": ({"kafka_ca": "nowhere"}, "TICKETGATE_KAFKA_CA: cannot read nowhere"),
    "a mechanism that is not enabled": (
        {
            "kafka": "CLEAR",
            "kafka_security": "sasl_plaintext",
            "kafka_ca": None,
            "kafka_sasl": "scram-sha-512",
        },
        "TICKETGATE_KAFKA_SASL: localhost:",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_the_broker_or_we_refuse_names_the_setting(secure: SecureKafka, case: str) -> None:
    changed, said = REFUSED[case]
    access = secure.access(**changed)
    if access.get("kafka_ca") == "other":
        access["kafka_ca"] = str(secure.certificates.other_ca)
    if access["kafka"] == "127.0.0.1":
        access["kafka"] = secure.address("SASL").replace("localhost", "127.0.0.1")
    if access["kafka"] == "CLEAR":
        access["kafka"] = secure.address("CLEAR")

    with pytest.raises(Exception, match=r"^TICKETGATE_") as refused:
        await describe_broker(connection_of(settings(access)))

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "wr0ng" not in str(refused.value)


async def test_a_listener_that_asks_for_a_certificate_is_named(secure: SecureKafka) -> None:
    access = secure.access_by_certificate(kafka_certificate=None, kafka_key=None, kafka_key_password=None)

    with pytest.raises(KafkaRefused, match="TICKETGATE_KAFKA_CERTIFICATE: not set, and localhost:"):
        await describe_broker(connection_of(settings(access)))


COMMANDS = (
    ("topics", "create"),
    ("consume", "tickets"),
    ("audit",),
    ("replay", "--replay-from", "marks"),
    ("claims", "rebuild", "--dry-run"),
    ("ledger", "rebuild", "--dry-run"),
    ("dead-letter", "list"),
    ("dead-letter", "skip", "TICKETS:0:0"),
    ("worker", "--policy", str(SEED_POLICY)),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_every_command_says_in_one_line_that_the_password_is_wrong(
    secure: SecureKafka, valkey: Valkey, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    gate = deployment(secure, valkey, tmp_path, secure.access(kafka_password="wr0ng"))  # noqa: S106

    ran = gate.run(*(argument.replace("TICKETS", gate.topic("tickets")) for argument in arguments))

    assert ran.returncode == 2
    (line,) = ran.stderr.splitlines()
    assert line.startswith("ticketgate: TICKETGATE_KAFKA_PASSWORD: localhost:")
    assert "wr0ng" not in ran.stderr + ran.stdout


def test_a_worker_whose_password_is_no_longer_taken_refuses_and_goes_on_when_it_is(
    secure: SecureKafka, valkey: Valkey, tmp_path: Path
) -> None:
    access = secure.access(kafka=secure.address("CLEAR"), kafka_security="sasl_plaintext", kafka_ca=None)
    with deployment(secure, valkey, tmp_path, access) as gate:
        worker = gate.start_worker()
        worker.wait_ready()
        secure.stop()
        secure.know("an0ther")
        secure.start()

        refused = worker.wait_for(lambda state: "kafka_refused" in str(state))

        secure.stop()
        secure.know(PASSWORD)
        secure.start()
        worker.wait_ready()
        log = worker.log()

    assert f"does not take it for user '{USER}' by plain" in str(refused)
    assert log.count("TICKETGATE_KAFKA_SECURITY is sasl_plaintext") == 1
    assert "in the clear" not in log
    assert PASSWORD not in log


def settings(access: Mapping[str, str]) -> Settings:
    return load_settings(access, environment={}).settings
