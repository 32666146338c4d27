"""Whether a key can sign by an algorithm. Apart from their names, which files are checked by without PyJWT."""

from __future__ import annotations

import jwt
from jwt.api_jws import PyJWS


def key_fits(key: bytes, algorithm: str) -> bool:
    """Whether a key is one for the algorithm, and long enough for it. The algorithm must be available."""
    of = PyJWS().get_algorithm_by_name(algorithm)
    try:
        return of.check_key_length(of.prepare_key(key)) is None
    except (jwt.PyJWTError, ValueError, TypeError):
        return False
