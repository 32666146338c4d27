"""The same text, however it is written: the same verdict. What only looks alike is told apart."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.deciding.decide import decide
from ticketgate.agents.policy import Policy, PolicyError, parse_policy
from ticketgate.agents.scoring.fixed import FixedScorer
from ticketgate.agents.scoring.render import render
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.identity import fingerprint
from ticketgate.codecs.records.ticket import Ticket

from tests.streams.cli.conftest import Run, no_settings, ticketgate
from tests.support.funnel import authority, call, confirmation, request, run

__all__ = ["no_settings", "ticketgate"]

# What reads the same, and is not the same bytes.
PAIRS = {
    "decomposed": ("café", unicodedata.normalize("NFD", "café")),
    "Hangul": ("한국", unicodedata.normalize("NFD", "한국")),
    "a zero-width space": ("urgent", "ur\u200bgent"),
    "a soft hyphen": ("complaint", "com\u00adplaint"),
    "a byte order mark": ("bug", "\ufeffbug"),
    "an emoji without its selector": ("❤️ love", "❤ love"),
    "direction marks": ("bug", "\u200ebug\u200f"),
}
TWO = {
    "Cyrillic": ("support", "\u0455upport"),
    "a family and its members": (
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\U0001f468\U0001f469\U0001f467",
    ),
    "flags": ("🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🏴󠁧󠁢󠁷󠁬󠁳󠁿"),
}


def policy(label: str, key: str = "kind") -> Policy:
    return parse_policy(
        f"""
name = "p"
version = "1"
[questions.kind]
type = "choice"
from = {json.dumps(f"attributes.{key}", ensure_ascii=False)}
[questions.kind.criteria]
{json.dumps(label, ensure_ascii=False)} = "one"
other = "else"
[[rules]]
id = "r"
any_of = [{json.dumps(f"kind={label}", ensure_ascii=False)}]
""",
    )


def decided(under: Policy, attributes: dict[str, Any]) -> Any:
    scorer = FixedScorer({}, model=ModelRef(id="fixed", hash="0" * 64))
    (decision,) = decide([Ticket(id="T", state="x", attributes=attributes)], policy=under, scorer=scorer)
    return decision


@pytest.mark.parametrize("way", PAIRS)
def test_a_fact_selects_the_label_that_reads_the_same(way: str) -> None:
    for label, given_label in (PAIRS[way], PAIRS[way][::-1]):
        decision = decided(policy(label), {"kind": given_label})

        assert decision.verdict.status == "accept", decision.verdict.reasons
        assert decision.selected == (f"kind={label}",)


@pytest.mark.parametrize("way", sorted(PAIRS.keys() - {"an emoji without its selector"}))
def test_an_attribute_is_found_under_a_name_that_reads_the_same(way: str) -> None:
    for name, given_name in (PAIRS[way], PAIRS[way][::-1]):
        decision = decided(policy("bug", key=name), {given_name: "bug"})

        assert decision.verdict.status == "accept", decision.verdict.reasons


@pytest.mark.parametrize("way", TWO)
def test_what_only_looks_alike_stays_two(way: str) -> None:
    label, other = TWO[way]

    assert decided(policy(label), {"kind": other}).verdict.status == "review"


def test_a_fact_that_looks_like_a_label_is_told_apart() -> None:
    reasons = " ".join(decided(policy("support"), {"kind": "\u0455upport"}).verdict.reasons)

    assert "U+0455" in reasons
    assert "U+0073" in reasons


def test_two_attributes_that_read_the_same_and_differ_are_no_fact() -> None:
    one, other = PAIRS["decomposed"]
    under = policy("bug", key="cafe\u0301\u200b")

    assert decided(under, {one: "bug", other: "bug"}).verdict.status == "accept"
    assert decided(under, {one: "bug", other: "other"}).verdict.status == "review"


@pytest.mark.parametrize("way", sorted(PAIRS.keys() - {"a byte order mark"}))
def test_a_policy_with_two_labels_or_questions_that_read_the_same_is_refused(way: str) -> None:
    one, other = PAIRS[way]
    two_labels = (
        f'name="p"\nversion="1"\n[questions.k]\ntype="choice"\ninstructions="?"\n'
        f'criteria = {{ "{one}" = "a", "{other}" = "b" }}\n'
    )
    two_questions = 'name="p"\nversion="1"\n' + "".join(
        f'[questions."{each}"]\ntype="noul"\ninstructions="?"\n' for each in (one, other)
    )
    for text in (two_labels, two_questions):
        with pytest.raises(PolicyError, match="reads the same as"):
            parse_policy(text)


@pytest.mark.parametrize("way", sorted(PAIRS.keys() - {"a byte order mark"}))
def test_rules_and_cases_name_labels_that_read_the_same(way: str, ticketgate: Run, tmp_path: Path) -> None:
    one, other = PAIRS[way]
    path, cases = tmp_path / "p.toml", tmp_path / "cases.toml"
    path.write_text(
        f'name="p"\nversion="1"\n[questions.k]\ntype="choice"\ninstructions="?"\n'
        f'criteria = {{ "{one}" = "a", other = "b" }}\n[[rules]]\nid = "r"\nany_of = ["k={other}"]\n',
        encoding="utf-8",
    )
    cases.write_text(
        f'[[cases]]\nanswers = {{ k = "{other}" }}\nexpect = "accept"\nselected = ["k={other}"]\n',
        encoding="utf-8",
    )

    ran = ticketgate("policy", "test", path, cases)

    assert ran.code == 0, (ran.err, ran.out)


def test_a_label_of_a_case_that_looks_like_one_is_told_apart(ticketgate: Run, tmp_path: Path) -> None:
    path, cases = tmp_path / "p.toml", tmp_path / "cases.toml"
    path.write_text(
        'name="p"\nversion="1"\n[questions.k]\ntype="choice"\ninstructions="?"\n'
        'criteria = { support = "a", other = "b" }\n',
        encoding="utf-8",
    )
    cases.write_text('[[cases]]\nanswers = { k = "\u0455upport" }\nexpect = "accept"\n', encoding="utf-8")

    ran = ticketgate("policy", "test", path, cases)

    assert "U+0455 CYRILLIC SMALL LETTER DZE" in ran.err
    assert "U+0073 LATIN SMALL LETTER S" in ran.err


# --- proposed calls ---


@pytest.mark.parametrize("way", ["decomposed", "a zero-width space", "direction marks"])
def test_a_payee_that_reads_the_same_is_the_requests(way: str) -> None:
    one, other = PAIRS[way]
    outcome = run(
        call(payee_id=other),
        asked=request(payee_id=one),
        may=authority(confirmations=(confirmation(payee_id=other),)),
    )

    assert outcome.verdict.status == "accept", outcome.verdict.reasons
    assert outcome.effect is not None
    assert outcome.effect.arguments["payee_id"] == one


@pytest.mark.parametrize(
    ("proposed", "bound", "told"),
    [
        ("\u0455upplier_7", "supplier_7", "character 1: U+0455 CYRILLIC SMALL LETTER DZE, and not U+0073"),
        ("x" * 200 + "a", "x" * 200 + "b", "character 201: U+0061"),
        ("supp1ier", "supplier", "character 5: U+0031 DIGIT ONE, and not U+006C"),
        ("supplier ", "supplier", "character 9: U+0020 SPACE, and not the end"),
    ],
)
def test_values_that_look_alike_or_are_cut_alike_are_told_apart(proposed: str, bound: str, told: str) -> None:
    outcome = run(call(payee_id=proposed), asked=request(payee_id=bound))

    assert outcome.verdict.stage == "semantics"
    assert told in outcome.verdict.reasons[0]


def test_values_that_differ_plainly_are_shown_and_no_more() -> None:
    outcome = run(call(payee_id="supplier_8"), asked=request(payee_id="supplier_7"))

    assert outcome.verdict.reasons == ("payee_id:proposal=supplier_8:request=supplier_7",)


@pytest.mark.parametrize("way", PAIRS)
def test_a_local_model_reads_the_same_text_of_a_ticket_that_reads_the_same(way: str) -> None:
    one, other = PAIRS[way]

    assert render({"text": one}) == render({"text": other})
    assert render(one) == render(other)


def test_fingerprints_are_of_what_was_sent() -> None:
    one, other = PAIRS["decomposed"]

    assert fingerprint(Ticket(id="T", state=one)) != fingerprint(Ticket(id="T", state=other))


@given(st.text(max_size=40))
def test_the_form_for_comparing_is_its_own(text: str) -> None:
    from ticketgate.codecs.values.texts import same

    assert same(same(text)) == same(text)
    assert same(unicodedata.normalize("NFD", text)) == same(unicodedata.normalize("NFC", text))
