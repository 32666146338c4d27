"""The signatures that evidence may bear: names of RFC 7518, `none` not among them."""

from typing import Final

SHARED_SECRET_ALGORITHMS: Final = ("HS256", "HS384", "HS512")
PUBLIC_KEY_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
