"""Signed records: whose word they are, for whom, and for how long."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from ticketgate.agents.funnel.evidence import EvidenceUnreadable, World, look_up
from ticketgate.agents.funnel.file.funnel_file import FunnelFileError, load_funnel_file, open_lookup
from ticketgate.agents.funnel.lookups.signed import SignedAuthority, SignedRecords, SignedWorld, UnusableKey
from ticketgate.codecs.records.proposal import Proposal, Signed, read_judged_proposal, read_proposal
from ticketgate.codecs.records.signed import digested, with_what_it_said
from ticketgate.codecs.values.malformed import Malformed

from ...support.funnel import WORLD, authority, call, request

AT = datetime(2026, 9, 1, 12, tzinfo=UTC)
SECRET = b"a shared secret of sixty-four bytes or more, so that it does for all"
NOW = int(AT.timestamp())


def clock(moment: datetime = AT) -> Callable[[], Awaitable[datetime]]:
    async def now() -> datetime:
        return moment

    return now


def records(**changed: Any) -> SignedRecords:
    return SignedRecords(
        **{
            "keys": [SECRET],
            "algorithms": ["HS256"],
            "now": clock(),
            "max_lifetime_s": 300,
            **changed,
        }
    )


def claims(**changed: Any) -> dict[str, Any]:
    """An authority's and a world's claims; a value of None leaves one out."""
    given = {
        "sub": "user_demo",
        "iat": NOW - 10,
        "exp": NOW + 60,
        "case_id": "case_1",
        "tenant": "",
        "authority": authority().to_json(),
        "world": WORLD.to_json(),
        **changed,
    }
    return {name: value for name, value in given.items() if value is not None}


def signed(payload: Mapping[str, Any] | None = None, key: Any = SECRET, algorithm: str = "HS256") -> str:
    return jwt.encode(dict(claims() if payload is None else payload), key, algorithm)


def proposal(authority: str | None = None, world: str | None = None) -> Proposal:
    signed_records = Signed(authority=authority, world=world)
    return Proposal(case_id="case_1", attempt=1, call=call(), request=request(), signed=signed_records)


async def why(text: str, **changed: Any) -> str:
    with pytest.raises(EvidenceUnreadable) as caught:
        await SignedAuthority(records(**changed)).authority(proposal(text))
    return caught.value.what


async def test_a_signed_record_is_the_evidence() -> None:
    given = proposal(signed(), signed())

    assert await SignedAuthority(records()).authority(given) == authority()
    assert await SignedWorld(records()).world(given) == WORLD


async def test_without_a_record_nobody_is_known_and_nothing() -> None:
    assert await SignedAuthority(records()).authority(proposal()) is None
    assert await SignedWorld(records()).world(proposal()) == World()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"sub": "user_other"}, "signed for another actor: sub is user_other"),
        ({"sub": None}, "signed for another actor: sub is missing"),
        ({"case_id": "case_2"}, "signed for another case_id: case_2"),
        ({"tenant": "acme"}, "signed for another tenant: acme"),
        ({"case_id": None}, "the signed payload has no case_id"),
        ({"tenant": None}, "the signed payload has no tenant"),
        ({"exp": None}, "the signed payload has no exp"),
        ({"iat": None}, "the signed payload has no iat"),
        ({"exp": "soon"}, "exp is no number of seconds"),
        ({"exp": True}, "exp is no number of seconds"),
        ({"exp": NOW}, "expired: exp"),
        ({"exp": -1e300}, "expired: exp"),
        ({"iat": NOW - 241}, "made to live longer than 300 s: exp less iat"),
        ({"exp": 1e300}, "made to live longer than 300 s: exp less iat"),
        ({"iat": NOW + 6}, "issued in the future: iat"),
        ({"nbf": NOW + 30}, "not yet valid: nbf"),
        ({"aud": "someone"}, "for another audience: aud is someone"),
        ({"authority": None}, "the signed payload has no authority"),
        ({"authority": {"actor_id": "root"}}, "it is of another actor, root"),
    ],
)
async def test_a_record_that_does_not_hold_says_why(changed: dict[str, Any], told: str) -> None:
    assert await why(signed(claims(**changed))) == told


async def test_a_world_is_signed_for_its_case() -> None:
    with pytest.raises(EvidenceUnreadable, match="the signed payload has no case_id"):
        await SignedWorld(records()).world(proposal(world=signed(claims(case_id=None))))


def kept(given: Proposal) -> Proposal:
    """What the ledger has of a proposal, after a record has kept it beside its evidence."""
    evidence = {"authority": authority().to_json(), "world": WORLD.to_json()}
    signed = with_what_it_said(digested(given.signed), evidence)
    written = replace(given, signed=signed).to_json()
    assert str(given.signed.authority) not in json.dumps(written)
    read = read_judged_proposal(written)
    assert isinstance(read, Proposal)
    return read


async def test_what_is_kept_of_a_signed_record_is_taken_until_it_expires() -> None:
    left = kept(proposal(signed(), signed()))

    assert await SignedAuthority(records()).authority(left) == authority()
    assert await SignedWorld(records()).world(left) == WORLD
    late = records(now=clock(datetime.fromtimestamp(NOW + 60, AT.tzinfo)))
    for source in (SignedAuthority(late).authority, SignedWorld(late).world):
        with pytest.raises(EvidenceUnreadable, match="expired: exp"):
            await source(left)


@pytest.mark.parametrize("text", ["a.b.c", "a..c", signed(claims(exp=None)), signed(claims(exp="soon"))])
async def test_a_digest_of_what_was_no_record_is_no_evidence(text: str) -> None:
    with pytest.raises(EvidenceUnreadable, match="only the digest"):
        await SignedAuthority(records()).authority(kept(proposal(text)))


def test_nobody_sends_what_only_our_records_say() -> None:
    left = kept(proposal(signed(), signed()))

    assert isinstance(read_proposal(left.to_json()), Malformed)


async def test_issuer_and_audience_are_held_to() -> None:
    configured = {"issuer": "idp", "audience": "ticketgate"}

    good = signed(claims(iss="idp", aud=["ticketgate", "others"]))
    assert await SignedAuthority(records(**configured)).authority(proposal(good)) == authority()
    assert await why(signed(claims(aud="ticketgate")), **configured) == "of another issuer: iss is missing"
    assert await why(signed(claims(iss="idp")), **configured) == "for another audience: aud is missing"


async def test_a_signature_of_another_key_is_no_evidence() -> None:
    other = b"another secret, which nobody has named, of thirty-two bytes or more"

    assert await why(signed(key=other)) == "its signature is of no known key"
    assert await SignedAuthority(records(keys=[SECRET, other])).authority(proposal(signed(key=other)))


async def test_a_changed_byte_is_no_evidence() -> None:
    head, payload, signature = signed().split(".")
    forged = base64.urlsafe_b64encode(json.dumps(claims(sub="root")).encode()).rstrip(b"=").decode()

    assert await why(f"{head}.{forged}.{signature}") == "its signature is of no known key"
    assert (await why(f"{head}.{payload}.{signature[:-2]}")).startswith(("its signature", "no signed record"))
    assert (await why("nonsense")).startswith("no signed record: ")


async def test_an_algorithm_that_is_not_listed_is_refused() -> None:
    none = jwt.encode(claims(), "", "none")

    assert await why(none) == "its algorithm is not one of those listed"
    assert await why(signed(algorithm="HS384")) == "its algorithm is not one of those listed"


async def test_a_claim_that_stands_twice_is_no_evidence() -> None:
    twice = json.dumps(claims()).replace('"sub":', '"sub": "root", "sub":', 1).encode()
    text = jwt.PyJWS().encode(twice, SECRET, "HS256")

    assert (await why(text)).startswith("the signed payload is unreadable: duplicate key")


@pytest.mark.parametrize("kind", ["EdDSA", "ES256", "RS256"])
async def test_a_public_key_in_a_file_verifies(tmp_path: Path, kind: str) -> None:
    private: Any = {
        "EdDSA": ed25519.Ed25519PrivateKey.generate,
        "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
        "RS256": lambda: rsa.generate_private_key(65537, 2048),
    }[kind]()
    (tmp_path / "issuer.pem").write_bytes(
        private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    source = f'adapter = "signed"\nalgorithms = ["{kind}"]\nkey_files = ["issuer.pem"]'
    file = tmp_path / "funnel.toml"
    file.write_text(f'catalogue = "payments"\n[lookup.authority]\n{source}\n[lookup.world]\n{source}\n')
    lookup = open_lookup(load_funnel_file(file), now=clock())
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    text = signed(key=pem, algorithm=kind)

    evidence = await look_up(proposal(text, text), lookup)
    later = await look_up(
        proposal(text, text), open_lookup(load_funnel_file(file), now=clock(AT + timedelta(minutes=1)))
    )

    assert (evidence.authority, evidence.world) == (authority(), WORLD)
    assert later.unreadable == ("authority:expired: exp", "world:expired: exp")


def test_a_key_that_is_too_short_or_of_another_kind_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(UnusableKey, match="too short"):
        records(keys=[b"short"])

    (tmp_path / "issuer.pem").write_text("no key")
    source = 'adapter = "signed"\nalgorithms = ["ES256"]\nkey_files = ["issuer.pem"]'
    file = tmp_path / "funnel.toml"
    file.write_text(f'catalogue = "payments"\n[lookup.authority]\n{source}\n[lookup.world]\n{source}\n')
    with pytest.raises(FunnelFileError, match=r"lookup\.authority: a key is too short or not one for ES256"):
        open_lookup(load_funnel_file(file))


def test_a_secret_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = 'adapter = "signed"\nalgorithms = ["HS256"]\nkey_env = "EVIDENCE_SECRET"'
    file = tmp_path / "funnel.toml"
    file.write_text(f'catalogue = "payments"\n[lookup.authority]\n{source}\n[lookup.world]\n{source}\n')
    loaded = load_funnel_file(file)

    monkeypatch.delenv("EVIDENCE_SECRET", raising=False)
    with pytest.raises(FunnelFileError, match="EVIDENCE_SECRET is not set"):
        open_lookup(loaded)
    monkeypatch.setenv("EVIDENCE_SECRET", SECRET.decode())
    open_lookup(loaded)


def test_public_keys_without_cryptography_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwt.PyJWS, "get_algorithms", lambda self: ["none", "HS256"])

    with pytest.raises(UnusableKey, match=r"EdDSA needs cryptography; pip install 'ticketgate\[signed\]'"):
        records(algorithms=["EdDSA"])
