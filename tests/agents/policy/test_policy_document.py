"""Reading a policy: what is taken, and that each refusal says where, what and the way out."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from ticketgate.agents.policy import PolicyError, load_policy, parse_policy

from ...support.deciding import SUPPORT, small

QUESTION = '[questions.a]\ntype = "noul"\ninstructions = "a?"\n'


def refused(text: str) -> PolicyError:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, source="p.toml")
    return caught.value


# What is taken


def test_a_policy_has_everything_resolved() -> None:
    policy = parse_policy(SUPPORT)

    assert (policy.name, policy.version) == ("support", "1")
    assert policy.ids == tuple(policy.questions) == ("urgent", "review", "auto_reply", "billing", "technical")
    assert set(policy.thresholds.values()) == {0.5}
    assert [rule.id for rule in policy.rules] == [
        "urgent-requires-review",
        "review-excludes-auto_reply",
        "exactly-one-of-billing-technical",
    ]
    assert [(effect.place, effect.tool) for effect in policy.effects] == [
        (0, "assign_queue"),
        (1, "send_reply"),
    ]
    assert policy.abstain_below is None
    assert policy.on_truncation == "review"
    assert (policy.ref.name, policy.ref.version, policy.ref.hash) == ("support", "1", policy.hash)


def test_the_same_document_as_json_is_the_same_policy() -> None:
    document = tomllib.loads(SUPPORT)

    assert parse_policy(json.dumps(document, indent=2)) == parse_policy(SUPPORT)


def test_rules_and_effects_may_be_left_out() -> None:
    policy = parse_policy(f'name = "n"\nversion = "1"\n{QUESTION}')

    assert policy.rules == ()
    assert policy.effects == ()


def test_a_threshold_of_one_and_a_whole_number_are_thresholds() -> None:
    assert parse_policy(small("", top="threshold = 1", nouls="a")).thresholds == {"a": 1}


# The hash


def test_the_hash_ignores_comments_layout_and_the_order_of_fields() -> None:
    other = "# ours\n" + SUPPORT.replace(
        'name = "support"\nversion = "1"', 'version = "1"\n\nname   =   "support"'
    )

    assert parse_policy(other).hash == parse_policy(SUPPORT).hash


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('version = "1"', 'version = "2"'),
        ("handled today", "handled now"),
        ('["urgent", "review"]', '["review", "urgent"]'),
        ('queue = "billing"', 'queue = "money"'),
    ],
)
def test_the_hash_tells_policies_apart(before: str, after: str) -> None:
    assert before in SUPPORT
    assert parse_policy(SUPPORT.replace(before, after)).hash != parse_policy(SUPPORT).hash


def test_the_hash_keeps_the_order_of_labels_since_ties_go_by_it() -> None:
    def kinds(criteria: str) -> str:
        return small(f'[questions.k]\ntype = "choice"\ninstructions = "?"\ncriteria = {{ {criteria} }}')

    one, other = parse_policy(kinds('x = "1", y = "2"')), parse_policy(kinds('y = "2", x = "1"'))

    assert one.hash != other.hash


# What is refused


def test_every_problem_is_reported_at_once_by_line() -> None:
    error = refused(
        f'name = "n"\nversion = 1\nthreshhold = 0.4\n{QUESTION}threshold = 0\n[[rules]]\nimplys = ["a", "a"]\n'
    )

    assert str(error) == (
        "p.toml:2: version: input should be a valid string\n"
        '  write text in quotes, such as "1"\n'
        'p.toml:3: unknown field "threshhold" in the policy\n'
        '  write "threshold"; the fields are name, version, threshold, abstain_below, on_truncation, clean, schema,'
        " questions, rules, effects\n"
        "p.toml:7: questions.a.threshold is not above 0 and at most 1\n"
        "  write a number in (0, 1], such as 0.5\n"
        'p.toml:9: unknown field "implys" in rule 1\n'
        '  write "implies"; the fields are id, message, implies, iff, excludes, forbid, exactly_one, at_least, at_most,'
        " exactly, any_of"
    )
    assert (error.source, error.line, error.what) == ("p.toml", 2, "version: input should be a valid string")
    assert error.remedy == 'write text in quotes, such as "1"'
    assert len(error.problems) == 4
    assert error.summary.endswith("(and 3 more)")
    assert "\n" not in error.summary


HEAD = 'name = "n"\nversion = "1"\n'
RULE = f'{HEAD}{QUESTION}[questions.b]\ntype = "noul"\ninstructions = "b?"\n[[rules]]\n'  # ends with line 9
KINDS = (
    f'{HEAD}[questions.k]\ntype = "choice"\ninstructions = "k?"\ncriteria = {{ x = "1", y = "2" }}\n'
    '[questions.s]\ntype = "score"\ninstructions = "s?"\ncriteria = ["low", "high"]\n[[rules]]\n'
)  # ends with line 11
EFFECT = f'{HEAD}{QUESTION}[[effects]]\ntool = "t"\n'  # ends with line 7

REFUSALS = {
    # grammar
    "not TOML": (f"{HEAD}[questions", 3, "not TOML"),
    "a key twice": (f'{HEAD}name = "m"\n', 3, "not TOML: Cannot overwrite a value"),
    "not JSON": ('{"name": }', 1, 'not JSON: "}" where a value must stand'),
    "a JSON key twice": ('{"name": "a", "name": "b"}', None, 'duplicate key "name"'),
    # shape
    "empty": ("", 1, 'the policy has no "name"'),
    "no questions": (HEAD, 1, 'the policy has no "questions"'),
    "an empty table of questions": (f"{HEAD}[questions]\n", 3, "questions"),
    "a blank name": (f'name = " "\nversion = "1"\n{QUESTION}', 1, "name"),
    "an unknown field of a question": (f'{HEAD}{QUESTION}labels = ["x"]\n', 6, 'unknown field "labels" in questions.a'),
    "an unknown type": (f'{HEAD}[questions.a]\ntype = "bool"\n', 4, "questions.a.type"),
    "a threshold above one": (f"threshold = 1.5\n{HEAD}{QUESTION}", 1, "threshold is not above 0 and at most 1"),
    "a threshold that is no number": (f"threshold = nan\n{HEAD}{QUESTION}", 1, "threshold is nan"),
    "a threshold that is text": (f'threshold = "0.5"\n{HEAD}{QUESTION}', 1, "threshold"),
    "a threshold that is true": (f"threshold = true\n{HEAD}{QUESTION}", 1, "threshold"),
    "an abstention below 0": (f"abstain_below = 0.0\n{HEAD}{QUESTION}", 1, "abstain_below is not above 0"),
    "an unknown way with truncation": (f'on_truncation = "drop"\n{HEAD}{QUESTION}', 1, "on_truncation"),
    "an unknown step of cleaning": (f'clean = ["html", "emojis"]\n{HEAD}{QUESTION}', 1, "clean element 2"),
    "cleaning that is no list": (f'clean = "html"\n{HEAD}{QUESTION}', 1, "clean"),
    "a date": (f"{EFFECT}arguments = {{ due = 2026-01-01 }}\n", 8, "effect 1: arguments.due is a TOML date"),
    "a huge integer": (f"{EFFECT}arguments = {{ n = {10**20} }}\n", 8, "beyond 64 bits"),
    # questions
    "a noul without words": (f'{HEAD}[questions.a]\ntype = "noul"\n', 3, 'question "a"'),
    "a choice without options": (f'{HEAD}[questions.a]\ntype = "choice"\ninstructions = "?"\n', 3, 'question "a"'),
    "a choice of one": (
        f'{HEAD}[questions.a]\ntype = "choice"\ninstructions = "?"\ncriteria = {{ x = "1" }}\n', 6, "2 to 255 options"
    ),
    "a threshold on a choice": (
        f'{HEAD}[questions.a]\ntype = "choice"\ncriteria = {{ x = "1", y = "2" }}\nthreshold = 0.5\n',
        6,
        '"a" is a choice question and has no threshold',
    ),
    "a threshold on a fact": (
        f'{HEAD}[questions.a]\ntype = "noul"\nfrom = "attributes.a"\nthreshold = 0.5\n', 6, "mapped question"
    ),
    "an id that is an atom": (
        f'{HEAD}[questions."a=b"]\ntype = "noul"\ninstructions = "?"\n', 3, "cannot be a question's id"),
    "a label with blanks": (
        f'{HEAD}[questions.a]\ntype = "choice"\ninstructions = "?"\ncriteria = {{ " x" = "1", y = "2" }}\n', 6, "blanks"
    ),
    "a fact from elsewhere": (
        f'{HEAD}[questions.a]\ntype = "noul"\nfrom = "state.vip"\n', 5, '"state.vip" is no attribute'),
    "a fact from nowhere": (f'{HEAD}[questions.a]\ntype = "noul"\nfrom = "attributes."\n', 5, "is no attribute"),
    # rules
    "an empty rule": (RULE, 9, "rule 1 says nothing"),
    "two rules in one": (
        f'{RULE}implies = ["a", "b"]\nexcludes = ["a", "b"]\n', 11, "rule 1 says implies and excludes"),
    "an unknown question": (f'{RULE}implies = ["a", "bb"]\n', 10, 'no question "bb"'),
    "an unknown question on a line of its own": (f'{RULE}implies = [\n  "a",\n  "bb",\n]\n', 12, 'no question "bb"'),
    "three sides": (f'{RULE}implies = ["a", "b", "a"]\n', 10, "implies takes two sides, not 3"),
    "an empty side": (f'{RULE}implies = ["a", []]\n', 10, "neither an atom nor a list"),
    "a side that is a number": (f'{RULE}implies = ["a", 1]\n', 10, "neither an atom nor a list"),
    "an exclusion of three": (f'{RULE}excludes = ["a", "b", "!a"]\n', 10, "excludes takes two atoms, not 3"),
    "an atom twice": (f'{RULE}any_of = ["a", "a"]\n', 10, '"a" stands twice'),
    "nothing to forbid": (f"{RULE}forbid = []\n", 10, "forbid needs at least 1 atoms"),
    "exactly one of one": (f'{RULE}exactly_one = ["a"]\n', 10, "exactly_one needs at least 2 atoms"),
    "a count that cannot be": (
        f'{RULE}at_least = {{ count = 3, of = ["a", "b"] }}\n', 10, "at_least 3 of 2 can never hold"),
    "a count below zero": (f'{RULE}at_most = {{ count = -1, of = ["a"] }}\n', 10, "rule 1: at_most.count"),
    "a count of nothing": (f"{RULE}exactly = {{ count = 0, of = [] }}\n", 10, "exactly counts no atoms"),
    "a count without atoms": (f"{RULE}exactly = {{ count = 0 }}\n", 10, 'rule 1: exactly has no "of"'),
    "two rules of one id": (
        f'{RULE}id = "r"\nimplies = ["a", "b"]\n[[rules]]\nid = "r"\nexcludes = ["a", "b"]\n',
        12,
        'the id "r" of rule 1',
    ),
    "one rule twice": (
        f'{RULE}implies = ["a", "b"]\n[[rules]]\nimplies = ["a", "b"]\n', 11, 'the id "a-requires-b" of rule 1'
    ),
    # atoms
    "a choice without a label": (f'{KINDS}any_of = ["k"]\n', 12, '"k" is a choice question'),
    "an unknown label": (f'{KINDS}any_of = ["k=z"]\n', 12, 'question "k" has no label "z"'),
    "an ordered choice": (f'{KINDS}any_of = ["k>=x"]\n', 12, '"k>=x" orders the labels of a choice'),
    "an unknown level": (f'{KINDS}any_of = ["s>=2"]\n', 12, 'question "s" has no level "2"'),
    "a level by name": (f'{KINDS}any_of = ["s=high"]\n', 12, 'question "s" has no level "high"'),
    "a score without a level": (f'{KINDS}any_of = ["s"]\n', 12, '"s" is a score question'),
    "one level written twice": (f'{KINDS}any_of = ["s>=1", "s>0"]\n', 12, '"s>0" stands twice'),
    "a comparison of a noul": (f'{RULE}any_of = ["a=true"]\n', 10, '"a=true" compares a noul question'),
    "an empty atom": (f'{RULE}any_of = ["!"]\n', 10, '"!" names no question'),
    # effects
    "an effect without a tool": (f"{HEAD}{QUESTION}[[effects]]\n", 6, 'effect 1 has no "tool"'),
    "a condition on nothing": (f'{EFFECT}when = "z"\n', 8, 'no question "z"'),
    "an empty condition": (f"{EFFECT}when = []\n", 8, "neither an atom nor a list"),
    "a reference to nothing": (f'{EFFECT}arguments = {{ x = "{{state}}" }}\n', 8, '"{state}" refers to nothing'),
    "a reference to no question": (f'{EFFECT}arguments = {{ x = "{{labels.z}}" }}\n', 8, "refers to no question"),
    "a brace on its own": (f'{EFFECT}[effects.arguments]\ny = 1\nx = "a {{ b"\n', 10, "has a brace on its own"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line", "what"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_says_where_what_and_the_way_out(text: str, line: int | None, what: str) -> None:
    error = refused(text)

    found = [problem for problem in error.problems if what in problem.what]
    assert found, str(error)
    assert found[0].line == line, str(error)
    assert found[0].remedy


def test_a_rule_about_a_broken_question_does_not_repeat_its_problem() -> None:
    error = refused(f'{HEAD}[questions.a]\ntype = "choice"\n[[rules]]\nany_of = ["a=x"]\n')

    assert len(error.problems) == 1


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "a = " + "[" * 100_000, '{"a":' * 100_000, "a = " + "{b=" * 50_000]
)
def test_a_document_nested_beyond_reason_is_refused(text: str) -> None:
    assert refused(text).problems


# Files


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        load_policy(tmp_path / "none.toml")

    assert caught.value.summary == (
        f"{tmp_path}/none.toml: the policy cannot be read: No such file or directory;"
        " set TICKETGATE_POLICY to a readable file"
    )


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read: Is a directory"):
        load_policy(tmp_path)


def test_bytes_that_are_not_utf8_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b'name = "n"\nversion = "\xff"\n')

    with pytest.raises(PolicyError, match=r"p.toml:2: not UTF-8: byte 0xff"):
        load_policy(path)


def test_a_byte_order_mark_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes(b"\xef\xbb\xbf" + SUPPORT.encode())

    with pytest.raises(PolicyError, match=r"p.toml:1: begins with a byte order mark"):
        load_policy(path)


def test_a_file_that_is_no_policy_at_all_is_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"x" * (2 * 1024 * 1024))

    with pytest.raises(PolicyError, match="larger than"):
        load_policy(path)


def test_a_file_is_read_like_its_text(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(SUPPORT, encoding="utf-8")

    assert load_policy(path) == parse_policy(SUPPORT)
