"""4. A model proposes a call. Gates judge it by evidence that no model wrote; what passes them is carried out once."""

from __future__ import annotations

from ticketgate.codecs import Stage, Status

from ..support.funnel import authority, call, run


def test_the_call_that_was_asked_for_is_carried_out_and_read_back() -> None:
    outcome = run(call())

    assert outcome.verdict.status is Status.ACCEPT
    assert outcome.verdict.stage is Stage.POSTCONDITION


def test_a_call_of_other_values_than_asked_for_may_be_mended() -> None:
    outcome = run(call(amount_gbp="6000.00"))

    assert (outcome.verdict.status, outcome.verdict.stage) == (Status.REPAIR, Stage.SEMANTICS)


def test_a_call_beyond_its_actors_limit_is_denied_however_well_it_is_formed() -> None:
    outcome = run(call(), may=authority(limit="100.00"))

    assert (outcome.verdict.status, outcome.verdict.stage) == (Status.DENY, Stage.AUTHORITY)
