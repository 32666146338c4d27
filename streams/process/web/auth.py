"""Who may ask: `Authorization: Bearer KEY`, where the setting `web_keys` names keys.

Promise: with keys set, a route that requires one answers nobody else, and how long a refusal takes tells nothing of a
key. Without keys everybody may ask, whatever header they send, for the protocol's clients always send one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable

from aiohttp import web
from pydantic import SecretStr
from ticketgate.streams.process.web.errors import refusal

_SCHEME = "bearer "


class Keys:
    """The keys of a web port; none: it is open."""

    def __init__(self, keys: Iterable[SecretStr] = ()) -> None:
        # Digests, so that the comparison is of one length whatever is sent.
        self._digests = tuple(_digest(key.get_secret_value()) for key in keys)

    @property
    def are_required(self) -> bool:
        """Whether a caller needs one."""
        return bool(self._digests)

    def require(self, request: web.Request) -> bytes | None:
        """The digest of the request's key, None where none is needed. Raises the 401 of one that has no valid key."""
        if not self._digests:
            return None
        header = request.headers.get("Authorization", "")
        given = header[len(_SCHEME) :].strip() if header[: len(_SCHEME)].lower() == _SCHEME else ""
        if not given:
            raise _refused("no API key: send Authorization: Bearer KEY")
        digest = _digest(given)
        # All of them, so that it takes the same time whichever fits.
        fitting = [known for known in self._digests if hmac.compare_digest(digest, known)]
        if not fitting:
            raise _refused("the API key is not valid here")
        return digest


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def _refused(message: str) -> Exception:
    return refusal(401, "authentication_error", message, www_authenticate="Bearer")
