"""Variables that Kubernetes gives every container for each Service of its namespace, told from settings.

A Service named `ticketgate` or `ticketgate-web` makes variables under our own prefix, one of them by the name of a
setting. Promise: only what has both the name and the value of such a variable is passed over.
Source: kubernetes.io/docs/concepts/services-networking/service, "Environment variables", and `makeLinkVariables`.
"""

from __future__ import annotations

import ipaddress
import re

_PROTOCOLS = ("tcp", "udp", "sctp")


def is_service_variable(name: str, value: str) -> bool:
    """Whether a variable (its name without our prefix) is what Kubernetes says of a Service."""
    # A name may have several forms: X_SERVICE_PORT is a port of the Service `x`, or the URL of one named `x-service`.
    return any(form.fullmatch(name) and fits(value) for form, fits in _FORMS)


def _is_url(value: str) -> bool:
    protocol, separator, where = value.partition("://")
    host, colon, port = where.rpartition(":")
    return (
        protocol in _PROTOCOLS
        and bool(separator and colon)
        and _is_address(host.strip("[]"))
        and _is_port(port)
    )


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _is_port(value: str) -> bool:
    return value.isascii() and value.isdigit() and 0 < int(value[:6]) <= 65_535


def _is_protocol(value: str) -> bool:
    return value in _PROTOCOLS


_SERVICE = r"(?:[A-Z0-9_]+_)?"  # the rest of the Service's name
_LINK = _SERVICE + r"PORT_[0-9]+_(?:TCP|UDP|SCTP)"
_FORMS = tuple(
    (re.compile(form), fits)
    for form, fits in (
        (_SERVICE + "SERVICE_HOST", _is_address),
        (_SERVICE + "SERVICE_PORT(?:_[A-Z0-9_]+)?", _is_port),
        (_SERVICE + "PORT", _is_url),
        (_LINK, _is_url),
        (_LINK + "_PROTO", _is_protocol),
        (_LINK + "_PORT", _is_port),
        (_LINK + "_ADDR", _is_address),
    )
)
