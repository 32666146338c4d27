"""The catalogue goes out as the field writes it, and calls come in so; broken syntax is mended, and nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.funnel.call_text import read_text
from ticketgate.agents.funnel.catalogue import compile_catalogue
from ticketgate.agents.funnel.evidence import Evidence
from ticketgate.agents.funnel.judge import Judged, judge
from ticketgate.agents.funnel.tool_formats import FORMATS, Format, NotOffered, written_as
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.values.malformed import Malformed

from ...support.funnel import AT, PAYMENTS, SUPPORT, WORLD, authority, call, request

MENDING = replace(PAYMENTS, mends_syntax=True)


def judged(text: str, catalogue: Any = PAYMENTS) -> Judged:
    return judge(
        Proposal(case_id="case_1", attempt=1, call=text, request=request()),
        catalogue=catalogue,
        evidence=Evidence(authority=authority(), world=WORLD),
        at=AT,
        namespace="tests",
    )


def said(found: Judged) -> tuple[str, str]:
    return str(found.verdict.status), str(found.verdict.stage)


def offered(form: Format, catalogue: Any = PAYMENTS) -> Any:
    return written_as(compile_catalogue(catalogue, request(), WORLD.facts), form)


ARGUED = {name: value for name, value in json.loads(call())["arguments"].items() if name != "idempotency_key"}
AS_PROVIDERS_WRITE = {
    "openai": lambda name, args: {
        "id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}
    },
    "openai-responses": lambda name, args: {
        "type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed", "name": name,
        "arguments": json.dumps(args),
    },
    "anthropic": lambda name, args: {"type": "tool_use", "id": "toolu_1", "name": name, "input": args},
    "google": lambda name, args: {"functionCall": {"name": name, "args": args}},
}  # fmt: skip


@pytest.mark.parametrize("provider", AS_PROVIDERS_WRITE)
def test_a_providers_call_is_judged_as_ours_is(provider: str) -> None:
    theirs = judged(json.dumps(AS_PROVIDERS_WRITE[provider]("schedule_transfer", ARGUED)))
    ours = judged(json.dumps({"call_id": "c", "tool": "schedule_transfer", "arguments": ARGUED}))

    assert said(theirs) == said(ours) == ("accept", "authority")
    assert theirs.command == ours.command


@pytest.mark.parametrize("provider", AS_PROVIDERS_WRITE)
def test_a_call_of_abstain_is_an_abstention(provider: str) -> None:
    found = judged(json.dumps(AS_PROVIDERS_WRITE[provider]("abstain", {"reason": "missing_information"})))

    assert said(found) == ("review", "abstention")


@pytest.mark.parametrize("provider", AS_PROVIDERS_WRITE)
def test_arguments_of_another_meaning_are_found_in_a_providers_call_too(provider: str) -> None:
    drifted = {**ARGUED, "amount_gbp": "660.00"}

    found = judged(json.dumps(AS_PROVIDERS_WRITE[provider]("schedule_transfer", drifted)))

    assert said(found) == ("repair", "semantics")


def test_arguments_that_are_no_json_are_named() -> None:
    broken = {"type": "function", "id": "c", "function": {"name": "schedule_transfer", "arguments": "{"}}

    assert judged(json.dumps(broken)).verdict.reasons == ("invalid_call_envelope", "wrong_type:arguments")


def schemas(form: str, told: Any) -> dict[str, Any]:
    match form:
        case "openai":
            return {each["function"]["name"]: each["function"]["parameters"] for each in told["tools"]}
        case "anthropic":
            return {each["name"]: each["input_schema"] for each in told["tools"]}
        case _:
            (declared,) = told["tools"]
            return {each["name"]: each["parametersJsonSchema"] for each in declared["functionDeclarations"]}


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "json-schema"])
def test_a_round_trip_through_each_format(form: Format) -> None:
    told = offered(form)
    published = schemas(form, told)

    assert set(published) == {"quote_transfer", "schedule_transfer", "abstain"}
    jsonschema.validate(ARGUED, published["schedule_transfer"])
    assert told["catalogue"]["hash"] == compile_catalogue(PAYMENTS, request(), WORLD.facts).ref.hash
    written = AS_PROVIDERS_WRITE[form]("schedule_transfer", ARGUED)
    assert said(judged(json.dumps(written))) == ("accept", "authority")


@pytest.mark.parametrize("catalogue", [PAYMENTS, SUPPORT])
def test_one_schema_takes_what_the_gates_of_form_take(catalogue: Any) -> None:
    schema = offered("json-schema", catalogue)["schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    if catalogue is SUPPORT:
        return
    whole = json.dumps({"call_id": "c", "tool": "schedule_transfer", "arguments": ARGUED})
    empty = json.dumps({"call_id": "c", "tool": "schedule_transfer", "arguments": {}})
    for text in (whole, '{"call_id": "c", "abstain": "unsupported_operation"}'):
        jsonschema.validate(json.loads(text), schema)
    for text in (call("strange"), "{}", empty):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(json.loads(text), schema)


def test_a_name_that_no_provider_takes_is_refused() -> None:
    tool = PAYMENTS.tools["quote_transfer"]

    with pytest.raises(NotOffered, match=r"a\.b"):
        offered("openai", replace(PAYMENTS, tools={"a.b": tool}))
    with pytest.raises(NotOffered, match="abstain"):
        offered("openai", replace(PAYMENTS, tools={"abstain": tool}))


WHOLE = call()
BROKEN = [
    WHOLE[:-1],
    WHOLE[:-2],
    WHOLE + "}",
    WHOLE.replace(', "arguments"', ' "arguments"'),
    WHOLE.replace('"}}', '",}}'),
    f"```json\n{WHOLE}\n```",
    f"```\n{WHOLE}```",
]


@pytest.mark.parametrize("text", BROKEN)
def test_broken_syntax_alone_is_mended_and_the_receipt_says_so(text: str) -> None:
    assert said(judged(text)) == ("repair", "parse")
    found = judged(text, MENDING)

    assert said(found) == ("accept", "authority")
    assert found.decision.mended is not None
    assert found.decision.mended.startswith("json-repair ")
    assert found.decision.to_json()["mended"] == found.decision.mended
    assert found.command == judged(WHOLE, MENDING).command
    assert "mended" not in judged(WHOLE, MENDING).decision.to_json()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "I would schedule it.",
        WHOLE[:-4],  # within a text
        WHOLE.replace('"tool"', "tool"),
        WHOLE.replace('"', "'"),
        WHOLE + " done",
        WHOLE.replace('"600.00"', "600.00.1"),
        WHOLE.replace('"600.00"', "NaN"),
        '{"a": 1,, "b": 2}',
        '{"a": 1, "a": 2',
    ],
)
def test_what_would_have_to_be_guessed_is_left_to_the_proposer(text: str) -> None:
    assert isinstance(read_text(text, may_mend=True).document, Malformed | dict)
    assert read_text(text, may_mend=True).mended_by is None


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [each for key, inner in value.items() for each in (key, *leaves(inner))]
    return [each for inner in value for each in leaves(inner)] if isinstance(value, list) else [value]


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.data())
def test_a_mend_keeps_each_value_whatever_is_cut_or_added(document: Any, data: st.DataObject) -> None:
    text = json.dumps(document)
    places = [n for n, char in enumerate(text) if char in ",:{}[]"]
    place = data.draw(st.sampled_from(places))
    broken = text[:place] + data.draw(st.sampled_from(["", ",", "}", "]"])) + text[place + 1 :]

    found = read_text(broken, may_mend=True)

    if found.mended_by is not None:
        assert leaves(found.document) == leaves(document)


def test_a_change_that_is_not_permitted_is_found_in_a_mended_call_too() -> None:
    from ticketgate.agents.funnel.repair import Attempt

    first = call(amount_gbp="660.00")
    before = Attempt(1, first, judged(first, MENDING).verdict, ("amount_gbp",))
    second = Proposal(case_id="case_1", attempt=2, call=call(payee_id="supplier_8")[:-1], request=request())

    found = judge(
        second, catalogue=MENDING, evidence=Evidence(authority=authority(), world=WORLD), at=AT, namespace="t",
        committed=[before],
    )  # fmt: skip

    assert found.verdict.reasons[:2] == ("unpermitted_change", "payee_id")
