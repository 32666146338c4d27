"""The comparison's parts: automata that are exact, a mask that keeps ratios, tables that follow from the seed."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ticketgate.agents.funnel.case import ABSTENTION_REASONS
from ticketgate.agents.funnel.catalogue import FieldSpec, compile_catalogue
from ticketgate.codecs.verdict import Status

from ....bench.funnel.automaton import UnsupportedField, accepts, call_automaton
from ....bench.funnel.contents import Day
from ....bench.funnel.decoding import TokenMask, decode, distribution
from ....bench.funnel.json_grammar import AnyObject
from ....bench.funnel.model import ToyModel
from ....bench.funnel.prompt import prompt_for
from ....bench.funnel.request_set import FLOOR, Kind, make_requests
from ....bench.funnel.results import Told
from ....bench.funnel.run import constraints, four, ontologies, run
from ....bench.funnel.systems import System, shape_verdict
from ....bench.funnel.table import by_kind, comparison, costs
from ....bench.funnel.variants import payments
from ....bench.funnel.vocabulary import END, INDEX, TOKENS, spell
from ....bench.funnel.weights import Weights

VARIANT = payments()
REQUESTS = make_requests(seed=3, each=4)
PLAIN = next(each for each in REQUESTS if each.kind is Kind.PLAIN)
PUBLISHED = compile_catalogue(VARIANT.catalogue, PLAIN.request, {}).published
PROMPT = prompt_for(PUBLISHED, has_abstention=False)
CALLS = call_automaton(PUBLISHED, has_abstention=False)
CALLS_OR_ABSTENTIONS = call_automaton(PUBLISHED, has_abstention=True)

# Texts of the vocabulary: what the model could write between quotes.
WORDS = st.lists(
    st.sampled_from([each for each in TOKENS if '"' not in each and each != END]), max_size=4
).map("".join)
AMOUNTS = st.from_regex(r"-?[0-9]{0,3}(\.[0-9]{0,3})?", fullmatch=True) | st.sampled_from(
    ["0", "-0", "0.00", "-0.00", "0.01", "600.0", "0600", "1" * 15, "1" * 16, "NaN", "6e2", ""]
)
DAYS = st.from_regex(r"(20[0-9]{2}|0[0-9]{3})-[01][0-9]-[0-3][0-9]", fullmatch=True) | st.sampled_from(
    [
        "2024-02-29",
        "2023-02-29",
        "2000-02-29",
        "1900-02-29",
        "0000-01-01",
        "20260904",
        "04/09/2026",
        "2026-9-4",
    ]
)
VALUES = {
    "amount_gbp": AMOUNTS,
    FLOOR: AMOUNTS,
    "payment_date": DAYS,
    "idempotency_key": WORDS | st.sampled_from(["a" * 7, "a" * 8, "a" * 256, "a" * 257]),
}


GOOD = {"amount_gbp": "600.5", FLOOR: "0", "payment_date": "2024-02-29", "idempotency_key": "bound-by-event"}


def members(pairs: list[tuple[str, str]]) -> str:
    """An object of members in this order; the values are JSON texts."""
    return "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}"


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Calls and abstentions, keys in any order, mostly almost right, and then perhaps a token more or less."""
    if draw(st.booleans()):
        pairs = [("call_id", '"c_1"'), ("abstain", f'"{draw(st.sampled_from(ABSTENTION_REASONS) | WORDS)}"')]
    else:
        tool = draw(st.sampled_from(sorted(VARIANT.catalogue.tools)))
        fields = draw(st.permutations(list(VARIANT.catalogue.tools[tool].fields)))
        left_out = draw(st.sets(st.sampled_from(fields), max_size=1))
        if draw(st.integers(0, 3)):
            left_out = left_out & {"idempotency_key"}
        # One field in turn is strange, or none.
        strange = draw(st.sampled_from([*fields, ""]))
        given = [
            (name, f'"{draw(VALUES.get(name, WORDS)) if name == strange else GOOD.get(name, "demo")}"')
            for name in fields
            if name not in left_out
        ]
        pairs = [("call_id", f'"{draw(WORDS)}"'), ("tool", f'"{tool}"'), ("arguments", members(given))]
    text = members(draw(st.permutations(pairs)))
    pieces = list(text)
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        place = draw(st.integers(0, len(pieces) - 1))
        token = draw(st.sampled_from([each for each in TOKENS if each != END]))
        pieces[place : place + draw(st.integers(0, 1))] = draw(st.sampled_from([[], [token]]))
    return "".join(pieces)


RIGHT = members(
    [("arguments", members([(name, f'"{PLAIN.values.get(name, "1.00")}"') for name in ("account_id", "payee_id",
     "payment_date", "amount_gbp")])), ("tool", '"quote_transfer"'), ("call_id", '"c"')]
)  # fmt: skip


@given(texts(), st.booleans())
@example(RIGHT, False)
@example(RIGHT.replace(',"tool"', ',"call_id":"c","tool"'), False)
@example('{"call_id":"c_1","abstain":"missing_information"}', True)
@example('{"call_id":"c_1","abstain":"missing_information"}', False)
@settings(max_examples=250)
def test_the_automaton_accepts_exactly_what_the_gates_on_form_accept(text: str, has_abstention: bool) -> None:
    machine = CALLS_OR_ABSTENTIONS if has_abstention else CALLS

    verdict = shape_verdict(text, PLAIN, VARIANT, has_abstention=has_abstention)

    assert accepts(machine, text) == (verdict is None), verdict


@given(texts())
@example('{"a":[1,-0.5e3,{"b":null}],"a":""}')
@example('{"a":01}')
@example('{"a":[1,]}')
def test_the_grammar_accepts_exactly_json_objects(text: str) -> None:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        is_object = isinstance(json.loads(text, parse_constant=refuse), dict)
    except ValueError:
        is_object = False

    assert accepts(AnyObject(), text) == is_object


BOUNDS: list[dict[str, str]] = [
    {},
    {"above": "0"},
    {"at_least": "0"},
    {"at_least": "12.50", "at_most": "399.99"},
    {"above": "-3", "at_most": "-1"},
]


@given(AMOUNTS, st.sampled_from(BOUNDS))
@example("-2.00", {"above": "-3", "at_most": "-1"})
@example("39", {"at_least": "12.50", "at_most": "399.99"})
def test_an_amount_is_accepted_within_its_bounds(text: str, bounds: dict[str, Any]) -> None:
    spec = FieldSpec(type="money", role="fact", source="request", set_by="requester", unit="GBP", **bounds)
    machine = call_automaton(
        {"tools": {"t": {"fields": {"f": {"type": "money", "required": True, **bounds}}}}},
        has_abstention=False,
    )
    try:
        spec.read(text)
    except ValueError:
        is_read = False
    else:
        is_read = True

    assert accepts(machine, f'{{"call_id":"c","tool":"t","arguments":{{"f":"{text}"}}}}') == is_read


@given(st.text("0123456789-", max_size=10))
@example("2023-02-29")
@example("2024-02-29")
@example("2023-02-3")
def test_a_date_is_alive_exactly_while_a_day_begins_so(text: str) -> None:
    state: Any = ""
    for character in text:
        state = None if state is None else Day().add(state, character)

    endings = (
        "",
        "1",
        "01",
        "-01",
        "1-01",
        "01-01",
        "-01-01",
        "1-01-01",
        "01-01-01",
        "001-01-01",
        "0001-01-01",
    )
    spec = FieldSpec(type="date", role="fact", source="request", set_by="requester")
    begins = any(_reads(spec, text + ending) for ending in (*endings, "0", "0-01", "0-01-01", "2-01"))
    assert (state is not None) == begins


def _reads(spec: FieldSpec, text: str) -> bool:
    try:
        spec.read(text)
    except ValueError:
        return False
    return True


def test_an_unsupported_type_is_refused_when_the_automaton_is_built() -> None:
    fields = {"n": {"type": "integer", "required": True}}

    with pytest.raises(UnsupportedField, match="n: no automaton for the type integer"):
        call_automaton({"tools": {"t": {"fields": fields}}}, has_abstention=False)


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=25)
def test_whatever_is_sampled_under_the_mask_conforms(seed: int, has_abstention: bool) -> None:
    # Every token equally likely: the mask alone keeps the form.
    model = ToyModel(PLAIN, PROMPT, Weights(floor=0.0))
    mask = TokenMask(CALLS_OR_ABSTENTIONS if has_abstention else CALLS)

    answer = decode(model, random.Random(seed), mask)

    if answer.is_whole:
        assert shape_verdict(answer.text, PLAIN, VARIANT, has_abstention=has_abstention) is None


def test_the_mask_keeps_the_ratios_of_what_it_leaves() -> None:
    model, mask = ToyModel(PLAIN, PROMPT), TokenMask(CALLS)
    place, state = model.start(), CALLS.start()
    for token in spell('{"call_id":"c_1","tool":"'):
        row = mask.row(state)
        free = distribution(model.logits(place))
        masked = distribution(model.logits(place), row.allowed)

        assert masked.sum() == pytest.approx(1.0)
        assert not masked[~row.allowed].any()
        left = row.allowed & (free > 0)
        assert np.allclose(masked[left] / masked[left].sum(), free[left] / free[left].sum(), rtol=1e-9)
        state, place = row.after[INDEX[token]], model.advance(place, token)


def test_free_and_masked_answers_agree_where_the_mask_forbids_nothing() -> None:
    masks = TokenMask(CALLS)
    agreeing = 0
    for asked in REQUESTS:
        model = ToyModel(asked, PROMPT)
        free, masked = decode(model, random.Random(1)), decode(model, random.Random(1), masks)
        if not masked.forced:
            agreeing += 1
            assert masked.text == free.text
    assert agreeing > len(REQUESTS) / 3


def test_a_mask_that_leaves_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="leaves no token"):
        distribution(np.zeros(len(TOKENS)), np.zeros(len(TOKENS), dtype=np.bool_))


def test_every_kind_of_trouble_comes_equally_often() -> None:
    counts = {kind: [each.kind for each in REQUESTS].count(kind) for kind in Kind}

    assert set(counts.values()) == {4}
    assert {fault for each in REQUESTS for fault in each.execute} == {
        "timeout_before_commit",
        "timeout_after_commit",
    }
    assert {each.truth.why_not for each in REQUESTS} >= {
        "unclear", "floor not said", "superseded", "superseded before the effect", "balance fell",
        "permission revoked", "not confirmed", "another amount was confirmed", "over the limit", "unsupported",
    }  # fmt: skip


def test_an_operation_that_the_schema_cannot_say_is_forced_into_a_legal_call() -> None:
    cancel = [each for each in make_requests(1, 30) if each.request.operation == "cancel"]
    masked, free = System("C", "schema"), System("P", "free")

    results = [(masked.run(asked, 1), free.run(asked, 1)) for asked in cancel]

    assert all(forced.conforms and not forced.refused for forced, _ in results)
    assert any(refused.refused for _, refused in results)
    assert any(forced.effects for forced, refused in results if refused.refused)


def test_the_gates_let_no_wrong_effect_and_no_duplicate_through() -> None:
    systems = [each for each in ontologies(has_gates=True) if each.name != "without the condition"]

    made = run(systems, REQUESTS, 3)

    for scores in made.scores.values():
        assert sum(each.unauthorised + each.duplicates for each in scores) == 0
    for results in made.results.values():
        assert all(each.time_outs for each in results if each.told is Told.HELD)
        assert all(each.stage for each in results if each.told is Told.STOPPED)


def test_the_gates_miss_a_condition_that_neither_schema_nor_request_has() -> None:
    (blind,) = [each for each in ontologies(has_gates=True) if each.name == "without the condition"]

    scores = run((blind,), REQUESTS, 3).scores[blind.name]

    harmed = {asked.truth.why_not for asked, each in zip(REQUESTS, scores, strict=True) if each.unauthorised}
    assert harmed == {"floor not said"}
    assert not any(each.duplicates for each in scores)


def test_without_the_gates_a_time_out_after_the_commit_makes_a_duplicate() -> None:
    asked = [each for each in REQUESTS if each.kind is Kind.TIME_OUT_AFTER]

    made = run((System("C", "schema"),), asked, 3)

    assert sum(each.duplicates for each in made.scores["C"]) >= len(asked) - 1


def test_the_same_seed_gives_the_same_tables_and_another_gives_others() -> None:
    def tables(seed: int) -> str:
        scores = run(four(), make_requests(seed, 2), seed).scores
        return comparison(scores) + costs(scores, seed=seed) + by_kind(scores)

    assert tables(5) == tables(5)
    assert tables(5) != tables(6)


def test_one_system_does_not_touch_another() -> None:
    alone = run((four()[2],), REQUESTS, 3).scores["C"]

    assert run(four(), REQUESTS, 3).scores["C"] == alone


def test_the_ablation_starts_from_the_systems_that_it_varies() -> None:
    compared = run(four(), REQUESTS, 3).scores
    varied = run((*constraints()[:1], constraints()[2]), REQUESTS, 3).scores

    assert varied["free"] == compared["P"]
    assert varied["schema"] == compared["C"]


def test_a_broken_brace_is_repairable_and_a_refusal_is_not_a_call() -> None:
    broken = shape_verdict('{"call_id":"c_1"', PLAIN, VARIANT, has_abstention=False)
    refusal = shape_verdict("I cannot do that.", PLAIN, VARIANT, has_abstention=False)

    assert broken is not None
    assert refusal is not None
    assert (broken.status, refusal.status) == (Status.REPAIR, Status.REPAIR)
