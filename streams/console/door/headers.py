"""What every answer says to browsers: what a page may load, who may show it, and that it is not kept.

Promise: no script and no style but files of our own; nothing from elsewhere, no frame, no form that leads elsewhere.
"""

from __future__ import annotations

from aiohttp import web

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types default",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Nothing of it reaches another place. With `no-referrer` browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "accelerometer=(), camera=(), clipboard-read=(), display-capture=(), geolocation=(),"
    " gyroscope=(), magnetometer=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "X-Robots-Tag": "noindex, nofollow",
}


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """A signal of aiohttp's, before an answer begins."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.popall("Server", None)
