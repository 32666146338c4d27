"""The ledger's tests have their Valkey as the store's have."""

from ...store.conftest import keys, redis, server

__all__ = ["keys", "redis", "server"]
