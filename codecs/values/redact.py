"""What leaves the process about URLs, headers and settings, without what is secret in it: the one redactor.

Promise: of a URL neither user, password, query nor fragment remain; of an `Authorization` header and of a `password=`,
`token=` or `api_key=` nothing behind it. Text without any of them is not changed. Secrets that stand in a text by
themselves are not known here: nobody writes them into one.
"""

from __future__ import annotations

import re

__all__ = ["HIDDEN", "redact"]

HIDDEN = "********"

# All up to a blank or a quote: a password may hold any other sign, escaped or not.
_URL = re.compile(r"""(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,31})://(?P<rest>[^\s"'<>`]*)""")
_CLOSING = ").,;:]}"
_HEADER = re.compile(
    r"""(?P<name>\b(?:proxy-)?authorization\b["']?\s*[:=,]\s*(?:b?["'])?)"""
    r"""(?!Bearer KEY\b)(?:[A-Za-z]+[ ]+)?[^\s"',;)]+""",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<name>\bbearer[ ]+)(?!KEY\b|\*)[^\s\"',;)]+", re.IGNORECASE)
_PAIR = re.compile(
    r"""(?P<name>\b[\w-]*(?:password|passwd|secret|token|api[_-]?key|access[_-]?key)=)(?!\*)[^\s"'&,;)]+""",
    re.IGNORECASE,
)


def redact(text: str) -> str:
    """`text` with everything hidden that may be a secret."""
    if "://" in text:
        text = _URL.sub(_redacted_url, text)
    for pattern in (_HEADER, _BEARER, _PAIR):
        text = pattern.sub(rf"\g<name>{HIDDEN}", text)
    return text


def _redacted_url(found: re.Match[str]) -> str:
    rest = found["rest"]
    kept = rest.rstrip(_CLOSING)
    closing = rest[len(kept) :]
    _, at, place = kept.rpartition("@")
    # Without a user the first ? or # ends what is an address; behind an @ everything before it may be a password.
    address = re.split(r"[?#]", place, maxsplit=1)[0]
    has_query = len(address) < len(place)
    return (
        f"{found['scheme']}://{HIDDEN + '@' if at else ''}{address}"
        f"{'?' + HIDDEN if has_query else ''}{closing if not has_query else ''}"
    )
