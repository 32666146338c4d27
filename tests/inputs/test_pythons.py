"""Every Python that pyproject admits reads the same: what differs between their patch versions is not used."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from ticketgate.store import sentinel
from ticketgate.streams.cli.running.settings import hide_secrets
from ticketgate.streams.config import addresses
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.kafka.connection import connection_of

ROOT = Path(__file__).resolve().parents[2]
URL = "redis+sentinel://u:p@a,[::1]:3/claims/7"


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Up to Python 3.11.2 such a group may match too little (CPython's gh-100061); an atomic group does not."""
    found = [
        f"{path}:{number}"
        for room in ("agents", "codecs", "store", "streams")
        for path in (ROOT / room).rglob("*.py")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"\)[*+?]\+", line)
    ]

    assert not found


def _of_later_pythons(url: str) -> object:
    parts = urlsplit(url)
    if "[" in parts.netloc and not parts.netloc.rpartition("@")[2].startswith("["):
        raise ValueError("Invalid IPv6 URL")
    return parts


def test_a_list_of_sentinels_is_read_by_pythons_that_know_one_host_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sentinel, "urlsplit", _of_later_pythons)
    monkeypatch.setattr(addresses, "urlsplit", _of_later_pythons)

    read = sentinel.SentinelUrl.parse(URL)
    loaded = load_settings(environment={"TICKETGATE_REDIS": URL}).settings

    assert read is not None
    assert read.sentinels == (("a", 26379), ("::1", 3))
    assert loaded.redis.get_secret_value() == URL
    assert "p@" not in hide_secrets(URL)


def test_the_least_tls_is_ours_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ssl.create_default_context

    def of_another_system(**arguments: object) -> ssl.SSLContext:
        context = made(**arguments)  # type: ignore[arg-type]
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        return context

    monkeypatch.setattr(ssl, "create_default_context", of_another_system)
    settings = load_settings(environment={"TICKETGATE_KAFKA_SECURITY": "ssl"}).settings

    context = connection_of(settings).arguments()["ssl_context"]

    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
