"""Two requests that differ never read the same evidence: templates that could fill alike are refused when loaded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.funnel.lookups.template import Template, TemplateError
from ticketgate.codecs.records.proposal import Proposal, Request, Scalar

PARTS = st.text(st.sampled_from("ab-_.~@%=:/é 1"), max_size=4)


def proposal(tenant: str, actor_id: str, value: Scalar = "") -> Proposal:
    request = Request(operation="pay", actor_id=actor_id, values={"account": value})
    return Proposal(case_id="C", attempt=1, call="", request=request, tenant=tenant)


@pytest.mark.parametrize(
    "text", ["auth-{tenant}-{actor_id}", "{tenant}{actor_id}", "{tenant}%{actor_id}", "{tenant}=x={actor_id}"]
)
def test_a_template_that_could_be_filled_alike_is_refused(text: str) -> None:
    with pytest.raises(TemplateError, match="between two places"):
        Template.read(text)


@given(PARTS, PARTS, PARTS, PARTS)
def test_parts_that_differ_make_keys_that_differ(a: str, b: str, c: str, d: str) -> None:
    template = Template.read("x{tenant}-:-{actor_id}")

    one, other = (template.fill(proposal(*parts)) for parts in ((a, b), (c, d)))

    assert (one == other) == ((a, b) == (c, d))


@given(PARTS | st.integers() | st.booleans(), PARTS | st.integers() | st.booleans())
def test_values_of_different_types_make_keys_that_differ(one: Scalar, other: Scalar) -> None:
    template = Template.read("world:{values.account}", may=("values.",))

    keys = [template.fill(proposal("t", "a", value)) for value in (one, other)]

    assert (keys[0] == keys[1]) == (type(one) is type(other) and one == other)
