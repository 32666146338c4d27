"""`ticketgate policy`: lint, test, show, diff, rescore and import, as people and CI call them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.streams.cli.conftest import Run
from tests.support.policies import SEED_POLICY

SEED = SEED_POLICY.read_text(encoding="utf-8")
CONTRADICTION = (
    '\n[[rules]]\nid = "always"\nany_of = ["auto_reply"]\n[[rules]]\nid = "too"\nany_of = ["review"]\n'
)


@pytest.fixture
def contradictory(tmp_path: Path) -> Path:
    return written(tmp_path / "bad.toml", SEED + CONTRADICTION)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# lint


def test_lint_counts_and_names_the_impossible_pair_with_its_core(ticketgate: Run) -> None:
    ran = ticketgate("policy", "lint", SEED_POLICY)

    lines = ran.out.decode().splitlines()
    assert ran.code == 0
    assert (
        f'{SEED_POLICY}:26: note: urgent and auto_reply are never accepted together, by rules "urgent-review"'
        ' and "review-excludes-auto-reply" [impossible_pair]'
    ) in lines
    assert [line for line in lines if line.endswith("[label_like_topic]")]
    assert lines[-1] == "6 warnings, 4 notes; 8 of 32 assignments keep every rule"


def test_lint_tells_programs_the_same(ticketgate: Run) -> None:
    ran = ticketgate("policy", "lint", "--json", SEED_POLICY)

    (report,) = ran.lines
    assert (report["acceptable"], report["assignments"]) == (8, 32)
    assert report["policy"]["name"] == "seed"
    pair = next(each for each in report["findings"] if each["subjects"] == ["urgent", "auto_reply"])
    assert pair["core"] == ["urgent-review", "review-excludes-auto-reply"]
    assert (pair["line"], pair["example"]) == (26, ["auto_reply", "urgent"])


def test_lint_ends_with_3_for_an_error(ticketgate: Run, contradictory: Path) -> None:
    ran = ticketgate("policy", "lint", contradictory)

    assert ran.code == 3
    first = ran.out.decode().splitlines()[0]
    assert 'error: no assignment keeps rules "review-excludes-auto-reply", "always" and "too"' in first


def test_lint_reports_what_is_no_policy_as_findings(ticketgate: Run, tmp_path: Path) -> None:
    path = written(tmp_path / "p.toml", SEED.replace('"urgent", "review"', '"urgent", "revew"'))

    text, data = ticketgate("policy", "lint", path), ticketgate("policy", "lint", "--json", path)

    assert (text.code, data.code) == (3, 3)
    assert text.out.decode().splitlines()[:2] == [
        f'{path}:28: error: no question "revew" [unknown_id]',
        '  add [questions.revew], or write "review"',
    ]
    (report,) = data.lines
    assert report["policy"] is None
    assert report["findings"][0]["code"] == "unknown_id"


def test_lint_ends_with_2_for_a_missing_file(ticketgate: Run, tmp_path: Path) -> None:
    ran = ticketgate("policy", "lint", tmp_path / "none.toml")

    assert ran.code == 2
    assert "No such file" in ran.err


@pytest.mark.parametrize(
    "subcommand", ["policy_lint", "policy_show", "policy_diff", "policy_rescore", "policy_test"]
)
def test_a_subcommand_starts_light(subcommand: str) -> None:
    heavy = ("faust", "aiokafka", "onnxruntime", "tokenizers", "redis", "numpy", "pysat")
    code = (
        "import sys\nfrom click.testing import CliRunner\n"
        f"from ticketgate.streams.cli.{subcommand.replace('_', '.')} import command\n"
        f"arguments = {{'policy_lint': [{str(SEED_POLICY)!r}], 'policy_show': [{str(SEED_POLICY)!r}],"
        f" 'policy_diff': [{str(SEED_POLICY)!r}] * 2, 'policy_rescore': ['--help'],"
        f" 'policy_test': ['--help']}}[{subcommand!r}]\n"
        "ran = CliRunner().invoke(command, arguments)\n"
        f"print(ran.output[:0], sorted(set(sys.modules) & set({heavy!r})))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


# test

CASES = """
[[cases]]
name = "a bill"
answers = { urgent = 0.1, review = 0.9, auto_reply = 0.1, billing = 0.8, technical = 0.2 }
expect = "accept"
effects = ["assign_queue"]

[[cases]]
name = "urgent without review"
answers = { urgent = 0.9, review = 0.2, auto_reply = 0.1, billing = 0.8, technical = 0.2 }
expect = "review"
violations = ["urgent-review"]
"""


def test_test_judges_a_table_and_shows_what_it_covers(ticketgate: Run, tmp_path: Path) -> None:
    ran = ticketgate("policy", "test", SEED_POLICY, written(tmp_path / "cases.toml", CASES))

    assert ran.code == 0
    lines = ran.out.decode().splitlines()
    assert lines[1].split() == ["urgent-review", "1", "1"]
    assert lines[2].split() == ["review-excludes-auto-reply", "never", "fired", "2"]
    assert lines[-1] == "2 cases, 0 not as expected"


def test_test_ends_with_3_for_a_case_that_is_not_as_expected(ticketgate: Run, tmp_path: Path) -> None:
    ran = ticketgate(
        "policy", "test", SEED_POLICY, written(tmp_path / "c.toml", CASES.replace("0.2, auto", "0.8, auto"))
    )

    assert ran.code == 3
    assert "urgent without review: verdict: expected review, got accept" in ran.out.decode()


def test_strict_fails_for_a_rule_that_no_case_breaks(ticketgate: Run, tmp_path: Path) -> None:
    cases = written(tmp_path / "cases.toml", CASES)

    assert ticketgate("policy", "test", "--strict", SEED_POLICY, cases).code == 3


def test_test_tells_programs_the_same(ticketgate: Run, tmp_path: Path) -> None:
    ran = ticketgate("policy", "test", "--json", SEED_POLICY, written(tmp_path / "cases.toml", CASES))

    (report,) = ran.lines
    assert [(each["passed"], each["unmet"]) for each in report["cases"]] == [(True, []), (True, [])]
    assert report["coverage"]["never_fired"] == ["review-excludes-auto-reply", "one-route"]
    assert report["examples"] is None


EXAMPLES = '\n[questions.urgent.examples]\nfits = "now!"\nother = "whenever"\nunclear = "soon, or not"\n'


def test_test_shows_the_examples_to_a_model(ticketgate: Run, tmp_path: Path) -> None:
    policy = written(tmp_path / "p.toml", SEED + EXAMPLES)
    answers = {
        f"urgent.{kind}": {"urgent": {"type": "noul", "noul": p}}
        for kind, p in (("fits", 0.9), ("other", 0.7), ("unclear", 0.6))
    }
    scorer = f"fixed:{written(tmp_path / 'answers.json', json.dumps(answers))}"

    ran = ticketgate("policy", "test", policy, "--scorer", scorer)

    assert ran.code == 3
    lines = [line.split() for line in ran.out.decode().splitlines()]
    assert lines[1] == ["urgent", "fits", "true", "0.9", "as", "written"]
    assert lines[2] == ["urgent", "other", "true", "0.7", "FAILED:", "it", "should", "say", "false"]
    assert ran.out.decode().splitlines()[-1] == "3 examples, 1 not as written"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to test"),
        (("--scorer", "fixed:none.json"), "the policy has no examples"),
        (("no-such-cases.toml",), "no-such-cases.toml: the file cannot be read: No such file"),
    ],
)
def test_test_says_what_is_missing(ticketgate: Run, arguments: tuple[str, ...], said: str) -> None:
    ran = ticketgate("policy", "test", SEED_POLICY, *arguments)

    assert ran.code == 2
    assert said in ran.err


# show


def test_show_prints_sentences_and_a_picture(ticketgate: Run) -> None:
    text, picture = (
        ticketgate("policy", "show", SEED_POLICY),
        ticketgate("policy", "show", "--mermaid", SEED_POLICY),
    )
    (data,) = ticketgate("policy", "show", "--json", SEED_POLICY).lines

    assert "rule one-route: exactly one of billing, technical" in text.out.decode().splitlines()
    assert picture.out.decode().startswith("flowchart LR\n")
    assert data["mermaid"] == picture.out.decode()
    assert data["sentences"] == text.out.decode().splitlines()


# diff


def test_diff_counts_what_turns_with_examples(ticketgate: Run, tmp_path: Path) -> None:
    new = written(tmp_path / "new.toml", SEED.replace("exactly_one", "any_of"))

    ran = ticketgate("policy", "diff", SEED_POLICY, new)

    assert ran.code == 3
    assert ran.out.decode().splitlines() == [
        "rule one-route said: exactly one of billing, technical; it says: at least one of billing, technical",
        "of 32 assignments",
        "  no longer accepted: 0",
        "  newly accepted: 4",
        "    billing, technical",
    ]


def test_diff_of_a_policy_with_itself_ends_with_0(ticketgate: Run) -> None:
    assert ticketgate("policy", "diff", SEED_POLICY, SEED_POLICY).code == 0


def test_diff_judges_recorded_decisions_anew(ticketgate: Run, tmp_path: Path) -> None:
    new = written(tmp_path / "new.toml", SEED.replace("threshold = 0.5", "threshold = 0.75"))
    answers = {
        name: {"type": "noul", "noul": p}
        for name, p in {
            "urgent": 0.7,
            "review": 0.9,
            "auto_reply": 0.1,
            "billing": 0.7,
            "technical": 0.1,
        }.items()
    }
    record = {
        "schema": "decision/1",
        "ticket_id": "T-1",
        "verdict": {"status": "accept", "stage": "policy"},
        "answers": answers,
        "policy": {"hash": "another"},
    }
    decisions = written(tmp_path / "d.jsonl", json.dumps({"topic": "dispatch", "value": record}) + "\n")

    ran = ticketgate("policy", "diff", SEED_POLICY, new, "--decisions", decisions)
    (data,) = ticketgate("policy", "diff", SEED_POLICY, new, "--decisions", decisions, "--json").lines

    assert ran.code == 3
    assert ran.out.decode().splitlines()[-4:] == [
        "of 1 recorded decision 1 would change",
        "  1 accept to review",
        "    T-1: exactly one of billing, technical",
        "  1 recorded under another policy than the old one",
    ]
    assert data["decisions"]["changed"] == {"accept to review": 1}


def test_rescore_shows_what_another_model_makes_of_recorded_tickets(ticketgate: Run, tmp_path: Path) -> None:
    chances = {"urgent": 0.7, "review": 0.9, "auto_reply": 0.1, "billing": 0.7, "technical": 0.1}
    answers = {name: {"type": "noul", "noul": p} for name, p in chances.items()}
    record = {
        "schema": "decision/1",
        "ticket_id": "T-1",
        "verdict": {"status": "accept", "stage": "policy"},
        "answers": answers,
        "policy": {"hash": "another"},
    }
    decisions = written(tmp_path / "d.jsonl", json.dumps({"topic": "dispatch", "value": record}) + "\n")
    ticket = {"schema": "ticket/1", "id": "T-1", "state": "I was charged twice."}
    tickets = written(tmp_path / "t.jsonl", json.dumps({"topic": "tickets", "value": ticket}) + "\n")
    now = written(
        tmp_path / "now.json", json.dumps({"T-1": {**answers, "billing": {"type": "noul", "noul": 0.3}}})
    )
    command = ["policy", "rescore", SEED_POLICY, "--decisions", decisions, "--scorer", f"fixed:{now}"]

    ran = ticketgate(*command, "--tickets", tickets)
    (data,) = ticketgate(*command, "--tickets", tickets, "--json").lines
    without = ticketgate(*command)

    assert ran.code == 3
    assert ran.out.decode().splitlines()[3:] == [
        "billing: of 1 the threshold 0.5 selected 1, selects 0 (0 newly, 1 no longer); as many as before from 0.3 on",
        "technical: of 1 the threshold 0.5 selected 0, selects 0 (0 newly, 0 no longer)",
        "of 1 recorded ticket 1 would come out otherwise",
        "  1 accept to review",
        "    T-1: exactly one of billing, technical",
        "  1 recorded under another policy than this",
    ]
    assert data["changed"] == {"accept to review": 1}
    assert data["model"]["id"] == "fixed"
    assert without.code == 0
    assert "1 not asked: its ticket is not in the record; give the tickets besides" in without.out.decode()


def test_diff_refuses_a_line_that_is_not_json(ticketgate: Run, tmp_path: Path) -> None:
    ran = ticketgate(
        "policy", "diff", SEED_POLICY, SEED_POLICY, "--decisions", written(tmp_path / "d", "{}\n{x\n")
    )

    assert ran.code == 2
    assert f"{tmp_path / 'd'}:2: " in ran.err


# import


def test_import_prints_a_policy_that_lint_takes(ticketgate: Run, tmp_path: Path) -> None:
    schema = {
        "version": 3,
        "tasks": {
            "kind": {"labels": ["bug", "other"], "min_labels": 1, "max_labels": 1},
            "tags": {"labels": ["a", "b"]},
        },
        "constraints": [
            {
                "type": "Implies",
                "cond": {"type": "LabelRef", "task": "kind", "label": "bug"},
                "then": {"type": "LabelRef", "task": "tags", "label": "a"},
            }
        ],
    }

    ran = ticketgate("policy", "import", written(tmp_path / "schema.json", json.dumps(schema)))

    assert ran.code == 0
    policy = written(tmp_path / "policy.json", ran.out.decode())
    assert ticketgate("policy", "lint", policy).code == 0
    assert (
        b"rule kind=bug-requires-tags.a: kind=bug requires tags.a" in ticketgate("policy", "show", policy).out
    )


@pytest.mark.parametrize(
    "text", ["[]", '{"version": 3, "tasks": {"t": {}}}', '{"version": 3, "tasks": {}, "constraints": [1]}']
)
def test_import_refuses_what_is_no_schema(ticketgate: Run, tmp_path: Path, text: str) -> None:
    ran = ticketgate("policy", "import", written(tmp_path / "schema.json", text))

    assert ran.code == 2
    assert len(ran.err.splitlines()) <= 2
