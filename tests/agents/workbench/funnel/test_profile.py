"""The failure profile: each rate over its own denominator, computed by hand, and lowered by its own fault alone."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.funnel.file.catalogue_file import example
from ticketgate.agents.workbench.funnel.cases import FunnelCaseError, read_cases
from ticketgate.agents.workbench.funnel.profile import Profile, profile
from ticketgate.agents.workbench.funnel.profiling import Profiled, profile_cases
from ticketgate.agents.workbench.funnel.rates import Rate
from ticketgate.streams.cli.funnel.profile import profile_lines

from ....support.funnel import FLOOR, PAYMENTS, SUPPORT, VALUES, authority, bare_call, call

Case = dict[str, Any]


def line(name: str, operation: str = "schedule", **changed: Any) -> Case:
    """A labelled case in which all is well, under a key of its own, and what a test changes."""
    tool = "schedule_transfer" if operation == "schedule" else "quote_transfer"
    right = call() if operation == "schedule" else bare_call(VALUES, tool)
    case: Case = {
        "name": name,
        "at": "2026-09-01T12:00:00Z",
        "request": {
            "operation": operation,
            "actor_id": "user_demo",
            "values": VALUES,
            "conditions": FLOOR,
            "control": {"idempotency_key": f"profile-{name}"},
        },
        "authority": authority(key=f"profile-{name}").to_json(),
        "world": {"facts": {"current_balance_gbp": "3000.00"}},
        "call": right,
        "label": {"admissible": [tool], "must_deny": False, "cost": "0.5"},
    }
    return case | changed


def abstaining(name: str, **changed: Any) -> Case:
    return line(
        name,
        "close_account",
        **{
            "call": '{"call_id": "c", "abstain": "unsupported_operation"}',
            "label": {"admissible": [], "cost": "0.5"},
            **changed,
        },
    )


def denied(name: str) -> Case:
    label = {"admissible": ["schedule_transfer"], "must_deny": True, "cost": "0.5"}
    return line(name, authority=authority(limit="1.00", key=f"profile-{name}").to_json(), label=label)


def run(cases: Sequence[Case], catalogue: Any = PAYMENTS) -> Profiled:
    text = "\n".join(json.dumps(case) for case in cases)
    return asyncio.run(
        profile_cases(read_cases(text, source="test"), catalogue=catalogue, provider=MemoryProvider())
    )


def counts(found: Profile) -> dict[str, tuple[int, int]]:
    return {each.name: (each.count, each.total) for each in (*found.rates, *found.fidelity)}


def test_a_profile_computed_by_hand() -> None:
    found = run(
        [
            line("good"),
            line("quote", "quote"),
            line("unreadable", call="{"),
            line("shape", call=call(amount_gbp=600)),
            line("drift", call=call(amount_gbp="660.00", payee_id="supplier_8")),
            line("wrong tool", "quote", call=call()),
            abstaining("abstained"),
            abstaining("called", call=call()),
            denied("denied"),
            line("late", faults={"execute": ["timeout_after_commit"]}),
            line("lost", faults={"execute": ["timeout_after_commit"], "read_back": ["unreadable"]}),
            line("twice", faults={"execute": ["commits_twice"]}),
            line("unlabelled", label={}),
        ]
    ).profile

    assert counts(found) == {
        "parse": (12, 13),
        # All that parsed but the amount that is a number; the abstention among them.
        "schema": (11, 12),
        # good, quote, shape, drift, denied, late, lost, twice; wrong tool and called are wrong.
        "selection_precision": (8, 10),
        "abstention": (1, 2),
        "needless_abstention": (0, 10),
        "unsafe_non_abstention": (1, 2),
        "false_tool_selection": (2, 12),
        # good, quote, drift, denied, late, lost, twice, unlabelled.
        "semantic_drift": (1, 8),
        "world_state": (7, 7),
        "authority": (6, 7),
        "denials_honoured": (1, 1),
        "needless_denials": (0, 5),
        # good, twice, unlabelled at once; late and lost were sent too.
        "execution": (3, 5),
        "verified_outcome": (4, 5),
        "unknown_outcome": (1, 5),
        "readback_coverage": (4, 5),
        "duplicate_effect": (1, 5),
        "fidelity.account_id": (8, 8),
        "fidelity.amount_gbp": (7, 8),
        "fidelity.minimum_remaining_balance_gbp": (7, 7),
        "fidelity.payee_id": (7, 8),
        "fidelity.payment_date": (8, 8),
    }
    # Read back once in vain, it is due 2 s after sending, and the provider answers then.
    assert (found.unknown_s, found.held) == ((2.0,), 0)
    # Twelve cases cost a half each; good, late and twice were verified.
    assert (found.cost.total, found.cost.verified, found.cost.each) == (Decimal("6.0"), 3, Decimal(2))
    assert found.unlabelled == {"admissible": 1, "must_deny": 3, "cost": 1}


def test_a_rate_over_nothing_is_no_number() -> None:
    found = run([line("unlabelled", call="{", label={})]).profile

    rate = found.rate("abstention")
    assert (rate.value, rate.interval, rate.shown()) == (None, None, ("", "none of 0", ""))
    assert rate.to_json()["rate"] is None
    assert found.cost.each is None


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (line("verified"), "0.5 (0.5 for 1 verified)"),
        (line("verified", label={}), "not known, as no case states what it cost (label.cost)"),
        (abstaining("asked"), "none, as nothing was verified of what states a cost (0.5 in 1 case)"),
    ],
)
def test_a_cost_that_cannot_be_told_says_what_is_missing(case: Case, told: str) -> None:
    *_, shown = profile_lines(run([case]).profile)

    assert shown == f"cost per verified outcome: {told}"


def test_a_replay_is_one_outcome_that_cost_twice() -> None:
    again = line("again", authority=authority(key="profile-first").to_json())
    again["request"]["control"] = {"idempotency_key": "profile-first"}

    found = run([line("first"), again]).profile

    assert (found.cost.verified, found.cost.each) == (1, Decimal(1))
    assert found.rate("verified_outcome").count == 2
    assert found.rate("duplicate_effect") == Rate(
        "duplicate_effect", 0, 1, "keys under which an effect stands", is_wanted=False
    )


@pytest.mark.parametrize(("reads", "unknown_s"), [(1, 2.0), (2, 4.0), (3, 8.0), (4, 16.0)])
def test_an_outcome_stays_unknown_until_reading_back_after_its_back_off_shows_it(
    reads: int, unknown_s: float
) -> None:
    faults = {"execute": ["timeout_after_commit"], "read_back": ["unreadable"] * reads}

    found = run([line("lost", faults=faults)]).profile

    assert found.unknown_s == (unknown_s,)


def test_what_nobody_can_read_for_an_hour_is_held_and_has_no_duration() -> None:
    faults = {"execute": ["timeout_after_commit"], "read_back": ["unreadable"] * 50}

    found = run([line("lost", faults=faults)]).profile

    assert (found.unknown_s, found.held) == ((), 1)


def test_a_label_is_the_truth_where_the_request_is_not() -> None:
    refund = {
        "name": "refund",
        "at": "2026-09-01T12:00:00Z",
        "request": {"operation": "reply", "actor_id": "u", "roles": ["agent"], "phase": "open", "values": {}},
        "authority": None,
        "call": "{",
        "label": {"fields": {"order_id": "order_5"}},
    }

    run([refund], catalogue=SUPPORT)

    invented = line("invented", call=call(payee_id="supplier_7"), label={"fields": {"payee_id": None}})
    found = run([invented, line("good")]).profile
    assert counts(found)["fidelity.payee_id"] == (1, 2)


@pytest.mark.parametrize(
    ("label", "part"),
    [
        ({"admissible": ["pay"]}, "invented: label.admissible: no tool 'pay'"),
        ({"fields": {"colour": "red"}}, "invented: label.fields: no tool of payments has a field 'colour'"),
        ({"fields": {"amount_gbp": "6e2"}}, "invented: label.fields.amount_gbp: not a decimal amount"),
    ],
)
def test_a_label_that_the_catalogue_has_no_place_for_is_refused(label: Case, part: str) -> None:
    with pytest.raises(FunnelCaseError) as refused:
        run([line("invented", label=label)])

    assert str(refused.value).startswith(part)


def test_a_case_without_expectation_or_label_is_refused() -> None:
    bare = line("bare")
    del bare["label"]

    with pytest.raises(FunnelCaseError, match="neither expect nor label"):
        read_cases(json.dumps(bare), source="test")


def test_a_cost_is_decimal_text() -> None:
    for cost in ("-1", "1e3", "NaN", 0.5):
        with pytest.raises(FunnelCaseError, match=r"label\.cost"):
            read_cases(json.dumps(line("dear", label={"cost": cost})), source="test")


GOOD: tuple[Case, ...] = (
    line("schedule"),
    line("another"),
    line("quote", "quote"),
    abstaining("abstained"),
)


def _call(text: str, nth: int = 0) -> Callable[[list[Case]], None]:
    def change(cases: list[Case]) -> None:
        cases[nth]["call"] = text

    return change


def _faults(**faults: Any) -> Callable[[list[Case]], None]:
    def change(cases: list[Case]) -> None:
        cases[0]["faults"] = faults

    return change


def _revoked(cases: list[Case]) -> None:
    _faults(authority_before_effect={"actor_id": "user_demo"})(cases)
    cases[0]["label"]["must_deny"] = True


def _superseded(cases: list[Case]) -> None:
    cases[0]["world"] = {**cases[0]["world"], "request_version": 2}


def _forgotten(cases: list[Case]) -> None:
    cases[0]["authority"] = None


LOST = {"execution", "verified_outcome", "unknown_outcome", "readback_coverage"}
WRONG_TOOL = {"selection_precision", "false_tool_selection"}
MUTATIONS: dict[str, tuple[Callable[[list[Case]], None], set[str]]] = {
    "text cut off": (_call(call()[:-1]), {"parse"}),
    "no object": (_call("[]"), {"parse"}),
    "broken envelope": (_call('{"tool": "schedule_transfer"}'), {"schema"}),
    "extra field": (_call(call(urgency="high")), {"schema"}),
    "missing field": (_call(call(payment_date=None)), {"schema"}),
    "retyped field": (_call(call(amount_gbp=600)), {"schema"}),
    "decimal": (_call(call(amount_gbp="660.00")), {"fidelity.amount_gbp", "semantic_drift"}),
    "unit": (_call(call(amount_gbp="60000.00")), {"fidelity.amount_gbp", "semantic_drift"}),
    "identifier": (_call(call(payee_id="supplier_8")), {"fidelity.payee_id", "semantic_drift"}),
    "date": (_call(call(payment_date="2026-09-05")), {"fidelity.payment_date", "semantic_drift"}),
    "condition": (
        _call(call(minimum_remaining_balance_gbp="1.00")),
        {"fidelity.minimum_remaining_balance_gbp", "semantic_drift"},
    ),
    "schedule for a quote": (_call(call(), 2), WRONG_TOOL),
    "quote for a schedule": (_call(bare_call(VALUES, "quote_transfer")), WRONG_TOOL),
    "call where none is admissible": (
        _call(call(), 3),
        {*WRONG_TOOL, "abstention", "unsafe_non_abstention"},
    ),
    "abstention where one is": (
        _call('{"call_id": "c", "abstain": "missing_information"}'),
        {"needless_abstention"},
    ),
    "superseding request": (_superseded, {"world_state"}),
    "permission revoked before the effect": (_revoked, {"authority"}),
    "authority that has forgotten": (_forgotten, {"authority", "needless_denials"}),
    "authority that cannot be read": (_faults(unreadable=["authority:bad signature"]), {"authority"}),
    "world that cannot be read before the effect": (
        _faults(unreadable_before_effect=["world:no JSON"]),
        {"world_state"},
    ),
    "refusal": (_faults(execute=["refused"]), {"execution"}),
    "time-out before commit": (_faults(execute=["timeout_before_commit"]), {"execution"}),
    "time-out after commit": (_faults(execute=["timeout_after_commit"]), {"execution"}),
    "no read-back": (_faults(execute=["timeout_after_commit"], read_back=["unreadable"]), LOST),
    "another effect stands": (
        _faults(execute=["timeout_after_commit"], read_back=["altered"]),
        {"execution", "verified_outcome"},
    ),
    "two effects": (_faults(execute=["commits_twice"]), {"duplicate_effect"}),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_mutation_worsens_the_rates_of_its_own_layer_and_no_other(mutation: str) -> None:
    change, expected = MUTATIONS[mutation]
    cases = deepcopy(list(GOOD))
    change(cases)

    before, after = run(GOOD).profile, run(cases).profile

    assert worse(before, after) == expected


def test_an_authority_that_lets_pass_what_must_be_denied_lowers_the_denials_honoured() -> None:
    lax = denied("denied") | {"authority": authority(key="profile-denied").to_json()}

    before, after = run([*GOOD, denied("denied")]).profile, run([*GOOD, lax]).profile

    assert worse(before, after) == {"denials_honoured"}


def worse(before: Profile, after: Profile) -> set[str]:
    """The rates that are worse than they were. One that is over nothing now has not changed."""
    found: set[str] = set()
    for rate in (*before.rates, *before.fidelity):
        now = after.rate(rate.name) if rate.name in counts(after) else rate
        if rate.value is None or now.value is None:
            continue
        if now.value < rate.value if rate.is_wanted else now.value > rate.value:
            found.add(rate.name)
    return found


EXAMPLE = run([json.loads(each) for each in example("profile.jsonl").splitlines()])
# These meet what an earlier case left: another order is another story.
IN_ORDER = {
    "schedule",
    "schedule_told_again",
    "another_effect_under_a_used_key",
    "brace_missing",
    "brace_mended",
}
INDEPENDENT = [
    each for each in map(json.loads, example("profile.jsonl").splitlines()) if each["name"] not in IN_ORDER
]


@given(st.permutations(EXAMPLE.observations))
def test_the_order_of_what_was_observed_changes_nothing(observations: list[Any]) -> None:
    assert profile(observations) == EXAMPLE.profile


@settings(max_examples=10)
@given(st.permutations(INDEPENDENT))
def test_the_order_of_independent_cases_changes_no_rate(cases: list[Case]) -> None:
    assert run(cases).profile == run(INDEPENDENT).profile


@given(st.lists(st.sampled_from(EXAMPLE.observations)))
def test_every_rate_is_a_share_within_its_interval(observations: list[Any]) -> None:
    found = profile(observations)

    for rate in (*found.rates, *found.fidelity):
        assert 0 <= rate.count <= rate.total <= max(len(observations), 0)
        if rate.value is None or rate.interval is None:
            assert rate.total == 0
        else:
            low, high = rate.interval
            assert 0 <= low <= rate.value <= high <= 1


def test_the_example_has_every_kind_of_trouble() -> None:
    stages = {str(each.outcome.verdict.stage) for each in EXAMPLE.results}
    statuses = {str(each.outcome.verdict.status) for each in EXAMPLE.results}

    assert statuses == {"accept", "review", "repair", "reject", "deny", "unknown"}
    assert stages == {
        *("parse", "envelope", "abstention", "tool_catalogue", "schema", "tool_selection", "semantics"),
        *("world_state", "authority", "idempotency", "outcome", "readback", "postcondition"),
    }
    assert all(rate.total for rate in EXAMPLE.profile.rates)
    assert EXAMPLE.profile.held == 1
    assert not [each.name for each in EXAMPLE.results if each.unmet]


# The classic values, to four places.
@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (2, 4, 0.15, 0.85), (81, 263, 0.2553, 0.3662)],
)
def test_an_interval_is_wilsons(count: int, total: int, low: float, high: float) -> None:
    interval = Rate("x", count, total, "cases").interval

    assert interval is not None
    assert interval == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


def test_what_is_not_all_is_not_shown_as_all_and_what_is_not_none_not_as_none() -> None:
    assert Rate("x", 9999, 10_000, "cases").shown()[0] == "99.9 %"
    assert Rate("x", 1, 10_000, "cases").shown()[0] == "0.1 %"
    assert Rate("x", 10, 10, "cases").shown()[0] == "100.0 %"
    assert Rate("x", 0, 10, "cases").shown()[0] == "0.0 %"


def funnel(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = str(Path(sys.executable).with_name("ticketgate"))
    return subprocess.run([command, "funnel", *arguments], capture_output=True, text=True, check=False)


def test_the_command_prints_a_line_a_rate_and_the_same_facts_as_json() -> None:
    ran = funnel("--example", "profile", "--profile")
    as_json = funnel("--example", "profile", "--profile", "--json")

    assert (ran.returncode, ran.stderr, as_json.returncode) == (0, "", 0)
    told = json.loads(as_json.stdout)
    assert told == {**EXAMPLE.profile.to_json(), "not_as_expected": []}
    lines = {each.split()[0]: each for each in ran.stdout.splitlines() if each}
    for name, rate in told["rates"].items():
        assert f"{rate['numerator']} of {rate['denominator']}" in lines[name]
        assert lines[name].endswith(rate["over"])
    assert "score" not in ran.stdout


def test_a_case_that_is_not_as_expected_is_named_beside_the_profile(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(line("surprise", expect={"status": "deny", "stage": "authority"})))

    ran = funnel(str(cases), "--profile")

    assert ran.returncode == 3
    assert "1 not as expected: surprise" in ran.stderr


def test_a_profile_needs_cases_and_labels_that_fit(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(line("odd", label={"admissible": ["pay"]})))

    ran = funnel(str(cases), "--profile")

    assert ran.returncode == 2
    assert "odd: label.admissible: no tool 'pay'" in ran.stderr
    assert funnel("--lint", "--profile").returncode == 2
