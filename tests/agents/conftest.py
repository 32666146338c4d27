"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import settings

# The suite shares its machine with a broker: an example that waits for the CPU is not a slow one.
settings.register_profile("ticketgate", deadline=None)
settings.load_profile("ticketgate")
