"""Evidence that comes signed beside a proposal: the texts as they are sent, and what records keep of them.

Promise: no record of ours holds such a text, which whoever reads it could send again: it holds the text's digest, and
until when it was signed for. What it said stands beside it, as evidence. Nothing here trusts or checks a signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NotRequired

from pydantic import Field, with_config
from ticketgate.codecs.values.shape import FORBID_UNKNOWN, IGNORE_UNKNOWN
from ticketgate.codecs.values.strict import JsonValue, decode
from typing_extensions import TypedDict

__all__ = [
    "UNSIGNED",
    "Attested",
    "Signed",
    "SignedDocument",
    "WrittenSignedDocument",
    "digested",
    "read_signed",
    "with_what_it_said",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attested:
    """A signed text that was read when a case was decided: its SHA-256 in hex, and the second since 1970 that it was
    signed until. expires_at is None where it says none. says: what it said, where that is to be judged again."""

    sha256: str
    expires_at: float | None = None
    says: Mapping[str, JsonValue] | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """As a JSON object; `says` only if it is at hand."""
        told: dict[str, JsonValue] = {"sha256": self.sha256, "expires_at": self.expires_at}
        return told if self.says is None else {**told, "says": dict(self.says)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """Evidence that came signed beside a proposal: compact JWS texts, or what is kept of them once they were read."""

    authority: str | Attested | None = None
    world: str | Attested | None = None

    def to_json(self) -> dict[str, JsonValue]:
        """What there is as a JSON object."""
        given = {"authority": self.authority, "world": self.world}
        return {
            name: each if isinstance(each, str) else each.to_json()
            for name, each in given.items()
            if each is not None
        }


UNSIGNED: Final = Signed()


def digested(signed: Signed) -> Signed:
    """The same without the texts."""
    return Signed(authority=_digested(signed.authority), world=_digested(signed.world))


def with_what_it_said(signed: Signed, evidence: Mapping[str, JsonValue]) -> Signed:
    """The same with what each said, which is what a case decision has as evidence."""

    def said(name: str, given: str | Attested | None) -> str | Attested | None:
        says = evidence.get(name)
        if isinstance(given, Attested) and isinstance(says, dict):
            return Attested(sha256=given.sha256, expires_at=given.expires_at, says=says)
        return given

    return Signed(authority=said("authority", signed.authority), world=said("world", signed.world))


def _digested(given: str | Attested | None) -> str | Attested | None:
    if not isinstance(given, str):
        return given
    return Attested(sha256=hashlib.sha256(given.encode()).hexdigest(), expires_at=_expiry(given))


def _expiry(text: str) -> float | None:
    """The claim `exp` of a text that may be anything."""
    _, _, rest = text.partition(".")
    payload = rest.partition(".")[0]
    try:
        claims = decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError):
        return None
    value = claims.get("exp") if isinstance(claims, dict) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if is_number and isinstance(value, int | float) else None


_Jws = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+$",
        max_length=65_536,
        description="a compact JWS",
    ),
]


# As users send it; and as our records carry it on, whose readers ignore what they do not know.
@with_config(FORBID_UNKNOWN)
class SignedDocument(TypedDict):
    authority: NotRequired[_Jws]
    world: NotRequired[_Jws]


@with_config(IGNORE_UNKNOWN)
class AttestedDocument(TypedDict):
    sha256: Annotated[str, Field(description="of the compact JWS, in hex")]
    expires_at: Annotated[float | None, Field(description="its exp, in seconds since 1970")]
    says: NotRequired[dict[str, Any]]


@with_config(IGNORE_UNKNOWN)
class WrittenSignedDocument(TypedDict):
    """Records of before hold the texts."""

    authority: NotRequired[_Jws | AttestedDocument]
    world: NotRequired[_Jws | AttestedDocument]


def read_signed(checked: SignedDocument | WrittenSignedDocument) -> Signed:
    """What a checked document says was signed."""
    return Signed(authority=_read(checked.get("authority")), world=_read(checked.get("world")))


def _read(checked: str | AttestedDocument | None) -> str | Attested | None:
    if checked is None or isinstance(checked, str):
        return checked
    return Attested(sha256=checked["sha256"], expires_at=checked["expires_at"], says=checked.get("says"))
