"""Evidence that comes signed beside a proposal: a compact JWS whose payload names the actor and carries the record.

Promise: what comes out was signed with a known key under a listed algorithm, is of the request's actor, its case and
its tenant, has not expired and was not made to live longer than is allowed. All else says why it is no evidence. At
the second look only the text's digest is left, beside what it said: it is taken until it expires.
The limit of this form: a signed record cannot be revoked before it expires, and looking again just before an effect
does not see that a permission was withdrawn. Its lifetime is the time for which that is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import jwt
from jwt.api_jws import PyJWS
from ticketgate.agents.funnel.evidence import CLOCK_SKEW_S, Authority, EvidenceUnreadable, World
from ticketgate.agents.funnel.lookups.key_lengths import key_fits
from ticketgate.agents.funnel.lookups.reading import authority_of, world_of
from ticketgate.agents.funnel.values import plain
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.records.signed import Attested
from ticketgate.codecs.values.strict import JsonValue, Malformed, decode


class UnusableKey(ValueError):
    """The key is of no use for the listed algorithms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRecords:
    """What a signed record must be. keys: any one of them may have signed, so that keys can be changed without a gap.

    algorithms: of one kind, shared secret or public key; a listed one alone is taken. now: gives the moment that
    expiry is judged by; what it raises passes through. Raises UnusableKey where a key fits none of the algorithms.
    """

    keys: Sequence[bytes]
    algorithms: Sequence[str]
    now: Callable[[], Awaitable[datetime]]
    max_lifetime_s: float
    issuer: str | None = None
    audience: str | None = None

    def __post_init__(self) -> None:
        available = PyJWS().get_algorithms()
        for name in self.algorithms:
            if name not in available:
                raise UnusableKey(f"{name} needs cryptography; pip install 'ticketgate[signed]'")
        for key in self.keys:
            if not any(key_fits(key, name) for name in self.algorithms):
                raise UnusableKey(f"a key is too short or not one for {', '.join(self.algorithms)}")

    async def read(self, text: str, proposal: Proposal) -> Mapping[str, JsonValue]:
        """The claims of a record of the request's actor. Raises EvidenceUnreadable."""
        # The strict reader, and not PyJWT's: a claim that stands twice would be the one to us and the other elsewhere.
        claims = decode(self._verified(text))
        if not isinstance(claims, dict):
            why = claims.reason if isinstance(claims, Malformed) else "no JSON object"
            raise EvidenceUnreadable(f"the signed payload is unreadable: {why}")
        _check_times(claims, (await self.now()).timestamp(), self.max_lifetime_s)
        self._check_names(claims)
        if claims.get("sub") != proposal.request.actor_id:
            raise EvidenceUnreadable(f"signed for another actor: sub is {_told(claims.get('sub'))}")
        # Both, always: what is signed for no case would do for every one, and a proposer names the tenant.
        for name, own in (("case_id", proposal.case_id), ("tenant", proposal.tenant)):
            if _claim(claims, name) != own:
                raise EvidenceUnreadable(f"signed for another {name}: {_told(claims[name])}")
        return claims

    async def still_says(self, attested: Attested) -> Mapping[str, JsonValue]:
        """What a record said that was read when its case was decided. Raises EvidenceUnreadable."""
        if attested.says is None or attested.expires_at is None:
            raise EvidenceUnreadable("only the digest of the signed record is left")
        if (await self.now()).timestamp() >= attested.expires_at:
            raise EvidenceUnreadable("expired: exp")
        return attested.says

    def _verified(self, text: str) -> bytes:
        verifier = PyJWS(options={"enforce_minimum_key_length": True})
        for key in self.keys:
            try:
                payload: bytes = verifier.decode(text, key, algorithms=self.algorithms)
            except jwt.InvalidAlgorithmError:
                raise EvidenceUnreadable("its algorithm is not one of those listed") from None
            except (jwt.InvalidSignatureError, jwt.InvalidKeyError, TypeError):
                continue  # another key's signature, or a key of another kind than its algorithm
            except (jwt.PyJWTError, ValueError) as err:
                raise EvidenceUnreadable(f"no signed record: {plain(str(err))}") from None
            return payload
        raise EvidenceUnreadable("its signature is of no known key")

    def _check_names(self, claims: Mapping[str, JsonValue]) -> None:
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise EvidenceUnreadable(f"of another issuer: iss is {_told(claims.get('iss'))}")
        if self.audience is None and "aud" not in claims:
            return
        # One that names an audience is not for those who claim to be none (RFC 7519, 4.1.3).
        audience = claims.get("aud")
        if self.audience is None or self.audience not in (
            audience if isinstance(audience, list) else [audience]
        ):
            raise EvidenceUnreadable(f"for another audience: aud is {_told(audience)}")


@dataclass(frozen=True, slots=True)
class SignedAuthority:
    """The claim `authority` of the proposal's `signed.authority`. No record: nothing is known of the actor."""

    records: SignedRecords

    async def authority(self, proposal: Proposal) -> Authority | None:
        """What the signed record says."""
        text = proposal.signed.authority
        if text is None:
            return None
        if isinstance(text, Attested):
            return authority_of(dict(await self.records.still_says(text)), proposal)
        return authority_of(_claim(await self.records.read(text, proposal), "authority"), proposal)

    async def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class SignedWorld:
    """The claim `world` of the proposal's `signed.world`, signed for this case. No record: no facts."""

    records: SignedRecords

    async def world(self, proposal: Proposal) -> World:
        """What the signed record says."""
        text = proposal.signed.world
        if text is None:
            return World()
        if isinstance(text, Attested):
            return world_of(dict(await self.records.still_says(text)))
        return world_of(_claim(await self.records.read(text, proposal), "world"))

    async def close(self) -> None:
        """Nothing is open."""


def _check_times(claims: Mapping[str, JsonValue], at: float, max_lifetime_s: float) -> None:
    issued, expires = _seconds(claims, "iat"), _seconds(claims, "exp")
    if issued > at + CLOCK_SKEW_S:
        raise EvidenceUnreadable("issued in the future: iat")
    if expires - issued > max_lifetime_s:
        raise EvidenceUnreadable(f"made to live longer than {max_lifetime_s:g} s: exp less iat")
    if at >= expires:
        raise EvidenceUnreadable("expired: exp")
    if "nbf" in claims and _seconds(claims, "nbf") > at + CLOCK_SKEW_S:
        raise EvidenceUnreadable("not yet valid: nbf")


def _claim(claims: Mapping[str, JsonValue], name: str) -> JsonValue:
    if name not in claims:
        raise EvidenceUnreadable(f"the signed payload has no {name}")
    return claims[name]


def _seconds(claims: Mapping[str, JsonValue], name: str) -> float:
    value = _claim(claims, name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise EvidenceUnreadable(f"{name} is no number of seconds")
    return float(value)


def _told(value: JsonValue | None) -> str:
    return plain(value) if isinstance(value, str) else "missing" if value is None else "no text"
