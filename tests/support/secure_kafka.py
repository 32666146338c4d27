"""An Apache Kafka that asks who is there: listeners with TLS, passwords and client certificates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.ports import HOST, free_port

# The one name in the broker's certificate.
NAME = "localhost"
USER, PASSWORD = "alice", "alices-s3cret"
KEY_PASSWORD = "k3y s3cret"  # noqa: S105 - a test's
PROTOCOLS = {"SASL": "SASL_SSL", "MUTUAL": "SSL", "CLEAR": "SASL_PLAINTEXT"}

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class Certificates:
    """A CA, the broker's certificate by it, and a client's; `other_ca` signed nothing of them."""

    def __init__(self, folder: Path) -> None:
        ca = trustme.CA()
        self.ca, self.other_ca = folder / "ca.pem", folder / "other-ca.pem"
        ca.cert_pem.write_to_path(self.ca)
        trustme.CA().cert_pem.write_to_path(self.other_ca)
        self.broker, self.client = folder / "broker.pem", folder / "client.pem"
        self.client_key, self.client_key_plain = folder / "client.key", folder / "client-plain.key"
        issued, client = ca.issue_cert(NAME), ca.issue_cert("worker@example.org")
        # Java reads PKCS #8 alone.
        self.broker.write_bytes(_key(issued) + b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self.client.write_bytes(b"".join(blob.bytes() for blob in client.cert_chain_pems))
        self.client_key.write_bytes(_key(client, password=KEY_PASSWORD))
        self.client_key_plain.write_bytes(_key(client))


class SecureKafka(Kafka):
    """A broker with the listeners of PROTOCOLS too; `address` names them, and `access` is how a client may enter."""

    # Users by SCRAM are kept among the broker's metadata, those by PLAIN in its properties.
    FORMAT_OPTIONS = tuple(
        option
        for bits in (256, 512)
        for option in ("--add-scram", f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]")
    )

    def __init__(self, folder: Path, certificates: Certificates) -> None:
        super().__init__(data=folder)
        self.certificates = certificates
        self._ports = {name: free_port() for name in PROTOCOLS}
        self._properties |= _listeners(self._properties, self._ports) | {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificates.ca),
            "listener.name.mutual.ssl.client.auth": "required",
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl.scram-sha-256.sasl.jaas.config": _SCRAM,
            "listener.name.sasl.scram-sha-512.sasl.jaas.config": _SCRAM,
            "listener.name.clear.sasl.enabled.mechanisms": "PLAIN",
        }
        self.know(PASSWORD)

    def know(self, password: str) -> None:
        """USER's password by PLAIN, from the next start on."""
        for name in ("sasl", "clear"):
            self._properties[f"listener.name.{name}.plain.sasl.jaas.config"] = (
                f'{_PLAIN} user_{USER}="{password}";'
            )

    def address(self, listener: str) -> str:
        """What TICKETGATE_KAFKA is for a listener."""
        return f"{NAME}:{self._ports[listener]}"

    def access(self, sasl: str = "plain", **changed: str | None) -> dict[str, str]:
        """Settings that the listener SASL accepts; `changed` go over them, None takes one away."""
        settings = {
            "kafka": self.address("SASL"),
            "kafka_security": "sasl_ssl",
            "kafka_ca": str(self.certificates.ca),
            "kafka_sasl": sasl,
            "kafka_user": USER,
            "kafka_password": PASSWORD,
        }
        return {name: value for name, value in {**settings, **changed}.items() if value is not None}

    def access_by_certificate(self, **changed: str | None) -> dict[str, str]:
        """Settings that the listener MUTUAL accepts."""
        settings = {
            "kafka": self.address("MUTUAL"),
            "kafka_security": "ssl",
            "kafka_ca": str(self.certificates.ca),
            "kafka_certificate": str(self.certificates.client),
            "kafka_key": str(self.certificates.client_key),
            "kafka_key_password": KEY_PASSWORD,
        }
        return {name: value for name, value in {**settings, **changed}.items() if value is not None}


def _listeners(given: Mapping[str, str], ports: Mapping[str, int]) -> dict[str, str]:
    more = {
        "listeners": [f"{name}://{HOST}:{port}" for name, port in ports.items()],
        "advertised.listeners": [f"{name}://{NAME}:{port}" for name, port in ports.items()],
        "listener.security.protocol.map": [f"{name}:{protocol}" for name, protocol in PROTOCOLS.items()],
    }
    return {name: ",".join([given[name], *values]) for name, values in more.items()}


def _key(certificate: trustme.LeafCert, *, password: str | None = None) -> bytes:
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
