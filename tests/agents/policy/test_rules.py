"""Each construct by its truth table, with an abstained question as the third value."""

from __future__ import annotations

import itertools

import pytest
from ticketgate.agents.policy import violations
from ticketgate.agents.policy.rules import truth

from ...support.deciding import policy, small

U = None  # abstained from: unknown


def rule_truth(rule: str, **values: bool | None) -> bool | None:
    """What the only rule of a small policy says when its questions have these values, None for abstained."""
    (only,) = policy(small(f"[[rules]]\n{rule}", nouls=tuple(values))).rules
    selected = {name for name, value in values.items() if value}
    abstained = {name for name, value in values.items() if value is None}
    return truth(only.constraint, selected, abstained)


TABLE: list[tuple[str, list[tuple[int | None, ...]]]] = [
    (
        'implies = ["a", "b"]',
        [(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 1), (1, U, U), (U, 0, U), (U, 1, 1), (0, U, 1), (U, U, U)],
    ),
    ('iff = ["a", "b"]', [(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 1, 1), (1, U, U), (U, 0, U), (U, U, U)]),
    ('excludes = ["a", "b"]', [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, U, U), (0, U, 1), (U, U, U)]),
    ('forbid = ["a", "!b"]', [(0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 1, 1), (U, 0, U), (U, 1, 1), (0, U, 1)]),
    (
        'exactly_one = ["a", "b"]',
        [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, U, U), (0, U, U), (U, U, U)],
    ),
    ('any_of = ["a", "b"]', [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1), (1, U, 1), (0, U, U)]),
    ('any_of = ["a"]', [(0, 0, 0), (1, 0, 1), (U, 0, U)]),
    ('implies = ["!a", "b"]', [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 1)]),
]


@pytest.mark.parametrize(
    ("rule", "a", "b", "expected"),
    [(rule, a, b, expected) for rule, rows in TABLE for a, b, expected in rows],
)
def test_a_rule_of_two_has_its_truth_table(
    rule: str, a: int | None, b: int | None, expected: int | None
) -> None:
    values = {"a": None if a is None else bool(a), "b": None if b is None else bool(b)}

    assert rule_truth(rule, **values) is (None if expected is None else bool(expected))


@pytest.mark.parametrize("values", list(itertools.product((False, True, None), repeat=3)))
def test_a_count_is_open_only_while_the_unknown_ones_decide_it(values: tuple[bool | None, ...]) -> None:
    named = dict(zip("abc", values, strict=True))
    sure, perhaps = values.count(True), values.count(True) + values.count(None)

    def expected(least: int, most: int) -> bool | None:
        possible = {least <= count <= most for count in range(sure, perhaps + 1)}
        return possible.pop() if len(possible) == 1 else None

    of = 'of = ["a", "b", "c"]'
    assert rule_truth(f"at_least = {{ count = 2, {of} }}", **named) is expected(2, 3)
    assert rule_truth(f"at_most = {{ count = 1, {of} }}", **named) is expected(0, 1)
    assert rule_truth(f"exactly = {{ count = 2, {of} }}", **named) is expected(2, 2)


@pytest.mark.parametrize("values", list(itertools.product((False, True), repeat=4)))
def test_several_atoms_on_a_side_must_all_hold(values: tuple[bool, ...]) -> None:
    a, b, c, d = values
    named = dict(zip("abcd", values, strict=True))

    assert rule_truth('implies = [["a", "b"], ["c", "d"]]', **named) is (not (a and b) or (c and d))
    assert rule_truth('iff = [["a", "b"], ["c", "!d"]]', **named) is ((a and b) == (c and not d))


KINDS = """
[questions.kind]
type = "choice"
instructions = "What is it?"
criteria = { bug = "broken", wish = "wanted", "how to" = "asked" }
[questions.anger]
type = "score"
instructions = "How angry?"
criteria = ["calm", "cross", "angry", "furious"]
"""


@pytest.mark.parametrize(
    ("atom", "holding"),
    [
        ("kind=bug", {"kind=bug"}),
        ("kind = how to", {"kind=how to"}),
        ("!kind=bug", {"kind=wish", "kind=how to"}),
        ("kind!=bug", {"kind=wish", "kind=how to"}),
        ("!kind!=bug", {"kind=bug"}),
        ("anger=0", {"anger=0"}),
        ("anger>=2", {"anger=2", "anger=3"}),
        ("anger > 2", {"anger=3"}),
        ("anger<=1", {"anger=0", "anger=1"}),
        ("anger<1", {"anger=0"}),
        ("!anger>=2", {"anger=0", "anger=1"}),
        ("anger!=1", {"anger=0", "anger=2", "anger=3"}),
    ],
)
def test_an_atom_holds_for_exactly_its_labels(atom: str, holding: set[str]) -> None:
    (rule,) = policy(small(f'{KINDS}\n[[rules]]\nany_of = ["{atom}"]')).rules
    question = next(iter(holding)).partition("=")[0]
    every = {"kind": ("kind=bug", "kind=wish", "kind=how to"), "anger": tuple(f"anger={n}" for n in range(4))}

    assert {label for label in every[question] if truth(rule.constraint, {label})} == holding
    assert all(truth(rule.constraint, {label}, {question}) is None for label in every[question])


def test_violations_come_in_the_policys_order_with_ids_and_messages() -> None:
    text = small("""
        [[rules]]
        any_of = ["c"]
        [[rules]]
        id = "mine"
        message = "never both, please"
        excludes = ["a", "b"]
        [[rules]]
        implies = ["c", "a"]
        [[rules]]
        implies = ["a", "c"]
    """)

    found = violations(policy(text).rules, {"a", "b"})

    assert [(each.rule, each.message) for each in found] == [
        ("always-c", "always c"),
        ("mine", "never both, please"),
        ("a-requires-c", "a requires c"),
    ]


def test_a_break_that_the_known_answers_make_is_found_beside_an_abstention() -> None:
    text = small('[[rules]]\nexactly_one = ["a", "b", "c"]\n[[rules]]\nimplies = ["a", "c"]')

    found = violations(policy(text).rules, {"a", "b"}, {"c"})

    assert [each.rule for each in found] == ["exactly-one-of-a-b-c"]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ('implies = ["a", "b"]', "a requires b"),
        ('implies = [["a", "!b"], "c"]', "a and not b require c"),
        ('iff = ["a", ["b", "c"]]', "a exactly when b and c"),
        ('excludes = ["a", "b"]', "a excludes b"),
        ('forbid = ["a", "!b"]', "never a and not b"),
        ('exactly_one = ["a", "b"]', "exactly one of a, b"),
        ('any_of = ["a", "b"]', "at least one of a, b"),
        ('any_of = ["a"]', "always a"),
        ('at_least = { count = 2, of = ["a", "b", "c"] }', "at least two of a, b, c"),
        ('at_most = { count = 0, of = ["a", "b"] }', "none of a, b"),
        ('exactly = { count = 2, of = ["a", "b", "!c"] }', "exactly two of a, b, not c"),
    ],
)
def test_an_unnamed_rule_reads_like_a_sentence(rule: str, sentence: str) -> None:
    (only,) = policy(small(f"[[rules]]\n{rule}")).rules

    assert only.message == sentence
    assert only.id == sentence.replace(",", "").replace(" ", "-")
