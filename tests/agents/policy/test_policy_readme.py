"""The policy page's examples are policies, and its sentences about them are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ticketgate.agents.policy import PolicyError, parse_policy
from ticketgate.agents.policy.document import CONSTRUCTS
from ticketgate.agents.workbench.policy.case_file import read_cases
from ticketgate.agents.workbench.policy.findings import SEVERITIES
from ticketgate.agents.workbench.policy.trial import run_cases

PAGE = (Path(__file__).parents[3] / "agents" / "policy" / "README.md").read_text(encoding="utf-8")
WHOLE, *FRAGMENTS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_begins_with_a_whole_policy() -> None:
    policy = parse_policy(WHOLE)

    assert [rule.message for rule in policy.rules] == ["urgent requires review", "review excludes auto_reply"]
    assert [rule.id for rule in policy.rules] == ["urgent-requires-review", "review-excludes-auto_reply"]


@pytest.mark.parametrize("fragment", FRAGMENTS)
def test_each_further_example_fits_into_it(fragment: str) -> None:
    parse_policy(f"{WHOLE}\n{fragment}" if fragment.startswith("[") else f"{fragment}\n{WHOLE}")


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_each_construct_has_an_example(construct: str) -> None:
    assert any(f"\n{construct} = " in block for block in (WHOLE, *FRAGMENTS))


def test_every_finding_of_lint_is_in_the_table() -> None:
    assert all(f"`{code}`" in PAGE for code in SEVERITIES)
    rows = re.findall(r"^\| (`.*`) \| (error|warning|note) \|", PAGE, re.MULTILINE)
    told = {code: severity for codes, severity in rows for code in re.findall(r"`(\w+)`", codes)}
    assert told == SEVERITIES


def test_the_shown_case_comes_out_as_it_says() -> None:
    (table,) = re.findall(r"```\n(\[\[cases\]\].*?)```", PAGE, re.DOTALL)
    policy = parse_policy(WHOLE.replace("customer.vip", "vip"))

    (result,), _ = run_cases(read_cases(table, source="cases.toml", policy=policy), policy)

    assert result.unmet == ()


def test_the_shown_errors_are_those_that_come() -> None:
    broken = WHOLE.replace('implies = ["urgent", "review"]', 'implies = ["urgent", "revew"]') + (
        '[[rules]]\nat_least = { count = 3, of = ["urgent", "vip"] }\n'
    )

    with pytest.raises(PolicyError) as caught:
        parse_policy(broken, source="policy.toml")

    said = re.sub(r":\d+:", ":", str(caught.value))
    (shown,) = re.findall(r"```\n(policy\.toml:.*?)\n```", PAGE, re.DOTALL)
    assert said == re.sub(r":\d+:", ":", shown)
