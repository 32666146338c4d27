"""What differs by role, as it shows in what a lane refuses to open on."""

from __future__ import annotations

import re

import pytest
from ticketgate.streams.config.role_terms import RoleTerms, role_terms
from ticketgate.streams.config.setting_kinds import Role
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.lane.opening.topic_faults import retention_fault

DAY_MS = 86_400_000
# With claims of 30 days and a horizon of 2; dispatch is kept for 30 days and a segment of 1.
LONGEST_DAYS: list[tuple[Role, int]] = [("decide", 28), ("propose", 28), ("effects", 31)]


def terms(role: Role) -> RoleTerms:
    return role_terms(role, load_settings(environment={}).settings)


@pytest.mark.parametrize(("role", "days"), LONGEST_DAYS)
def test_a_source_may_keep_its_records_for_as_long_as_what_guards_them_lives(role: Role, days: int) -> None:
    config = {"retention.ms": str((days - 1) * DAY_MS), "segment.ms": str(DAY_MS)}

    assert retention_fault(terms(role), config) is None


@pytest.mark.parametrize("role", ["decide", "propose", "settle"])
def test_claims_fit_an_input_with_kafkas_own_defaults_and_live_as_long_as_outputs_are_kept(
    role: Role,
) -> None:
    kafkas_own = {"retention.ms": str(7 * DAY_MS), "segment.ms": str(7 * DAY_MS)}

    assert retention_fault(terms(role), kafkas_own) is None
    assert terms(role).kept.lives == load_settings(environment={}).settings.outputs_retention


@pytest.mark.parametrize(("role", "days"), LONGEST_DAYS)
def test_a_source_that_keeps_its_records_longer_is_refused_with_the_setting(role: Role, days: int) -> None:
    config = {"retention.ms": str((days - 1) * DAY_MS + 1), "segment.ms": str(DAY_MS)}

    fault = retention_fault(terms(role), config)

    assert terms(role).source in str(fault)
    assert terms(role).kept.lives_by in str(fault)


@pytest.mark.parametrize(("role", "days"), [("decide", 7), ("propose", 7), ("effects", 30)])
def test_a_source_that_keeps_its_records_for_ever_is_told_how_long_would_do(role: Role, days: int) -> None:
    fault = retention_fault(terms(role), {"retention.ms": "-1"})

    assert re.search(rf"for ever.* {days * DAY_MS}$", str(fault))


def test_effects_go_out_in_small_batches() -> None:
    assert terms("effects").batch_size < terms("decide").batch_size
