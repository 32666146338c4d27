"""Steps under way: which is overdue, and which is not."""

from __future__ import annotations

from ticketgate.streams.config.overdue import Steps


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_step_is_overdue_after_its_limit_and_not_once_it_is_over() -> None:
    clock = Clock()
    steps = Steps(clock)
    with steps.step("opening", limit_s=5):
        clock.now += 5
        assert steps.overdue() is None

        clock.now += 0.1

        overdue = steps.overdue()
        assert overdue is not None
        assert overdue.what == "opening"
    assert steps.overdue() is None


def test_the_step_that_is_overdue_for_longest_is_named() -> None:
    clock = Clock()
    steps = Steps(clock)
    with steps.step("taking a batch", limit_s=20), steps.step("deciding", limit_s=10):
        clock.now += 30

        overdue = steps.overdue()

    assert overdue is not None
    assert overdue.what == "deciding"


def test_a_renewed_step_counts_from_its_last_sign_of_life() -> None:
    clock = Clock()
    steps = Steps(clock)
    with steps.step("deciding", limit_s=10) as step:
        clock.now += 9
        steps.renew(step)
        clock.now += 9

        assert steps.overdue() is None


def test_time_in_which_the_process_stood_still_is_forgiven() -> None:
    clock = Clock()
    steps = Steps(clock)
    with steps.step("polling", limit_s=10):
        clock.now += 3_600

        steps.forgive(3_600)

        assert steps.overdue() is None
