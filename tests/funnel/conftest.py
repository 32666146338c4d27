"""Settings for the property tests of the funnel."""

from __future__ import annotations

from hypothesis import settings

# A shared machine stalls now and then: a deadline for one example would then fail a test that has no fault.
settings.register_profile("ticketgate", deadline=None)
settings.load_profile("ticketgate")
