"""Tokens by which people sign in: made here, and kept as hashes that tell nothing.

Promise: how long a check takes tells neither whether the name is known nor how much of a token is right.
Source: RFC 7914, with its parameters for who waits for the answer: a token is made here and is no word that a person
thought of, so that a hash that is known leads nowhere however quickly it is tried.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode

# 192 bits: nobody finds one by trying.
TOKEN_BYTES = 24
COST, BLOCK, PARALLEL = 2**14, 8, 1
SALT_BYTES, HASH_BYTES = 16, 32
# What a file may ask of this machine: a hash by more would be a way to stop it.
MOST_COST = 2**17
MOST_BYTES = 256 * 2**20
WRITTEN = re.compile(
    r"scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([A-Za-z0-9+/=]{8,64})\$([A-Za-z0-9+/=]{16,128})"
)


def new_token() -> str:
    """A token that was never given out before."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def hashed(token: str, *, cost: int = COST) -> str:
    """`scrypt$N$r$p$SALT$HASH`, salt and hash in base64."""
    salt = secrets.token_bytes(SALT_BYTES)
    found = _scrypt(token, salt, cost, BLOCK, PARALLEL, HASH_BYTES)
    return f"scrypt${cost}${BLOCK}${PARALLEL}${b64encode(salt).decode()}${b64encode(found).decode()}"


def is_hash(text: object) -> bool:
    """Whether a text is a hash that can be checked here."""
    found = WRITTEN.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return False
    cost, block, parallel = (int(found[number]) for number in (1, 2, 3))
    try:
        for each in (found[4], found[5]):
            b64decode(each, validate=True)
    except ValueError:
        return False
    return 2 <= cost <= MOST_COST and cost & (cost - 1) == 0 and 1 <= block <= 16 and 1 <= parallel <= 16


def fits(token: str, written: str) -> bool:
    """Whether a token is the one that was hashed. Takes some hundredths of a second, and 16 MiB."""
    found = WRITTEN.fullmatch(written)
    if found is None:
        raise ValueError("no hash of a token")
    cost, block, parallel = (int(found[number]) for number in (1, 2, 3))
    wanted = b64decode(found[5])
    return hmac.compare_digest(
        _scrypt(token, b64decode(found[4]), cost, block, parallel, len(wanted)), wanted
    )


@functools.cache
def of_nobody() -> str:
    """For a name that nobody has, so that its check takes as long."""
    return hashed(new_token())


def _scrypt(token: str, salt: bytes, cost: int, block: int, parallel: int, length: int) -> bytes:
    given = token.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(given, salt=salt, n=cost, r=block, p=parallel, maxmem=MOST_BYTES, dklen=length)
