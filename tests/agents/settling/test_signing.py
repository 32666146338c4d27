"""Who may settle: keys read strictly, and a settlement that is believed only as it was signed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from ticketgate.agents.settling.console_keys import (
    ConsoleKeysError,
    ConsoleRole,
    load_console_keys,
)
from ticketgate.agents.settling.refusal import Code
from ticketgate.agents.settling.signing import refuse_signature, sign
from ticketgate.codecs.records.settlement import Action, Settlement, decode_settlement

from ...support.settlements import AT, console_key, settlement

KEYS = {"front-desk": console_key(), "wall": console_key("wall", ConsoleRole.READ, secret=b"w" * 32)}
NOW = AT + timedelta(minutes=1)


def test_what_a_console_signed_is_believed_after_a_trip_over_the_wire() -> None:
    sent = sign(settlement(), KEYS["front-desk"])

    found = decode_settlement(sent.encode())

    assert isinstance(found, Settlement)
    assert refuse_signature(found, KEYS, at=NOW) is None


@pytest.mark.parametrize(
    ("alter", "code"),
    [
        (lambda sent: replace(sent, labels=("urgent",)), Code.BAD_SIGNATURE),
        (lambda sent: replace(sent, expires_at=AT + timedelta(days=9)), Code.BAD_SIGNATURE),
        (lambda sent: replace(sent, by="p-2"), Code.BAD_SIGNATURE),
        (
            lambda sent: replace(sent, action=Action.REJECT, labels=(), policy=None, effects=None),
            Code.BAD_SIGNATURE,
        ),
        (lambda sent: sign(sent, console_key(secret=b"x" * 32)), Code.BAD_SIGNATURE),
        (lambda sent: sign(sent, console_key("stranger")), Code.UNKNOWN_KEY),
        (lambda sent: replace(sent, signature="a..b"), Code.UNKNOWN_KEY),
        (lambda sent: replace(sent, signature=""), Code.UNKNOWN_KEY),
        (lambda sent: sign(sent, KEYS["wall"]), Code.WRONG_ROLE),
        (lambda sent: sign(replace(sent, expires_at=NOW), KEYS["front-desk"]), Code.EXPIRED),
        (
            lambda sent: sign(replace(sent, at=NOW + timedelta(hours=1)), KEYS["front-desk"]),
            Code.NOT_YET,
        ),
        (lambda sent: sign(replace(sent, by="author"), KEYS["front-desk"]), Code.SAME_PERSON),
    ],
)
def test_nothing_else_is(alter: Callable[[Settlement], Settlement], code: Code) -> None:
    sent = sign(settlement(), KEYS["front-desk"])

    refused = refuse_signature(alter(sent), KEYS, at=NOW, not_by=["author"])

    assert refused is not None
    assert refused.code is code
    assert refused.reasons


def test_the_key_decides_the_algorithm_and_not_the_signature() -> None:
    key = console_key(secret=b"s" * 64)

    refused = refuse_signature(sign(settlement(), replace(key, algorithm="HS512")), {key.id: key}, at=NOW)

    assert refused is not None
    assert refused.code is Code.BAD_SIGNATURE


def test_a_key_that_only_verifies_signs_nothing() -> None:
    with pytest.raises(ValueError, match="only verifies"):
        sign(settlement(), replace(KEYS["front-desk"], signing=None))


def keys_file(folder: Path, text: str) -> Path:
    (folder / "desk.key").write_bytes(b"k" * 64 + b"\n")
    (folder / "short.key").write_bytes(b"k")
    path = folder / "keys.toml"
    path.write_text(text)
    return path


def test_keys_are_read_by_name_and_their_secrets_are_not_shown(tmp_path: Path) -> None:
    keys = load_console_keys(
        keys_file(tmp_path, '[desk]\nalgorithm = "HS256"\nroles = ["settle"]\nsecret_file = "desk.key"')
    )

    assert keys["desk"].roles == {ConsoleRole.SETTLE}
    assert keys["desk"].signing == b"k" * 64
    assert "kkkk" not in repr(keys)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "has no key"),
        ("[desk", "not TOML"),
        ("desk = 1", "is no table"),
        ('[desk]\nroles = ["settle"]', "algorithm"),
        ('[desk]\nalgorithm = "none"\nroles = ["settle"]', "algorithm"),
        ('[desk]\nalgorithm = "HS256"\nroles = ["god"]\nsecret_file = "desk.key"', "roles"),
        ('[desk]\nalgorithm = "HS256"\nroles = []\nsecret_file = "desk.key"', "roles"),
        ('[desk]\nalgorithm = "HS256"\nroles = ["settle"]', "secret_file is missing"),
        ('[desk]\nalgorithm = "HS256"\nroles = ["settle"]\nsecret_file = "gone"', "cannot be read"),
        ('[desk]\nalgorithm = "HS256"\nroles = ["settle"]\nsecret_file = "short.key"', "too short"),
        ('[desk]\nalgorithm = "HS256"\nroles = ["settle"]\npublic_key_file = "desk.key"', "not for HS256"),
        ('[desk]\nalgorithm = "HS256"\nroles = ["settle"]\nsecret = "x"', "unknown field secret"),
    ],
)
def test_a_file_that_could_not_be_used_is_refused_at_once(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConsoleKeysError, match=named):
        load_console_keys(keys_file(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConsoleKeysError, match="cannot be read"):
        load_console_keys(tmp_path / "none.toml")


def test_public_keys_verify_what_private_keys_signed(tmp_path: Path) -> None:
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    private = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    (tmp_path / "own.pem").write_bytes(
        private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (tmp_path / "pub.pem").write_bytes(
        private.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    table = '[desk]\nalgorithm = "EdDSA"\nroles = ["settle"]\npublic_key_file = "pub.pem"\n'
    workers = load_console_keys(keys_file(tmp_path, table))
    consoles = load_console_keys(keys_file(tmp_path, table + 'private_key_file = "own.pem"'))

    sent = sign(settlement(), consoles["desk"])

    assert refuse_signature(sent, workers, at=NOW) is None
    assert workers["desk"].signing is None
