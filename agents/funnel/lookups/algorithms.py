"""The signatures that evidence may bear: names of RFC 7518, `none` not among them."""

from typing import Final

import jwt
from jwt.api_jws import PyJWS

SHARED_SECRET_ALGORITHMS: Final = ("HS256", "HS384", "HS512")
PUBLIC_KEY_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)


def key_fits(key: bytes, algorithm: str) -> bool:
    """Whether a key is one for the algorithm, and long enough for it. The algorithm must be available."""
    of = PyJWS().get_algorithm_by_name(algorithm)
    try:
        return of.check_key_length(of.prepare_key(key)) is None
    except (jwt.PyJWTError, ValueError, TypeError):
        return False
