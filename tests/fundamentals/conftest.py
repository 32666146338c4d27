"""The fixtures of the rooms that these tests walk through."""

from ..store.conftest import keys, redis, server
from ..streams.conftest import deploy

__all__ = ["deploy", "keys", "redis", "server"]
