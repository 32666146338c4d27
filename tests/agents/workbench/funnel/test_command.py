"""`ticketgate funnel`: the seed's seven cases from a file, with their statuses, stages, reasons and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

EXAMPLE = resources.files("ticketgate.agents.funnel") / "examples" / "payments.jsonl"

SEVEN = {
    "positive_quote": ("accept", "outcome", []),
    "wrong_tool_valid_shape": (
        "reject",
        "tool_selection",
        ["requested:quote", "proposed:schedule_transfer"],
    ),
    "semantic_amount_drift": ("repair", "semantics", ["amount_gbp:proposal=660.00:request=600.00"]),
    "timeout_after_commit": ("accept", "readback", ["transport_timed_out_after_commit"]),
    "duplicate_same_key": ("accept", "postcondition", []),
    "same_key_different_effect": (
        "reject",
        "idempotency",
        ["idempotency key reused for a different effect"],
    ),
    "valid_but_unauthorised": ("deny", "authority", ["amount_exceeds_limit:500.00"]),
}


def funnel(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = str(Path(sys.executable).with_name("ticketgate"))
    return subprocess.run([command, "funnel", *arguments], capture_output=True, text=True, check=False)


def test_the_example_gives_the_seeds_verdicts_one_object_a_line() -> None:
    ran = funnel("--example", "payments", "--json")

    assert (ran.returncode, ran.stderr) == (0, "")
    results = {each["name"]: each for each in map(json.loads, ran.stdout.splitlines())}
    told = {
        name: (each["verdict"]["status"], each["verdict"]["stage"], each["verdict"]["reasons"])
        for name, each in results.items()
    }
    assert told == SEVEN
    receipts = {name: each["receipt"] and each["receipt"]["status"] for name, each in results.items()}
    assert receipts["timeout_after_commit"] == "verified_by_readback"
    assert receipts["duplicate_same_key"] == "replayed"
    told = results["timeout_after_commit"]["receipt"]
    assert (told["subject"], told["at"]) == ("timeout_after_commit", "2026-09-01T12:00:00.000Z")
    assert results["positive_quote"]["decision"]["effect_created"] is False


def test_a_file_of_the_same_cases_commits_one_effect(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_text(EXAMPLE.read_text(encoding="utf-8"))

    ran = funnel(str(cases))

    assert ran.returncode == 0
    assert ran.stdout.splitlines()[-1] == "7 cases, 0 not as expected; effects committed: 1"


def test_a_case_that_comes_out_otherwise_is_named_and_ends_with_3(tmp_path: Path) -> None:
    first = json.loads(EXAMPLE.read_text(encoding="utf-8").splitlines()[0])
    first["expect"] = {"status": "deny", "stage": "authority"}
    cases = tmp_path / "cases.jsonl"
    cases.write_text(json.dumps(first))

    ran = funnel(str(cases))

    assert ran.returncode == 3
    assert "NOT AS EXPECTED: status: expected deny, got accept" in ran.stdout
    assert ran.stderr == "judged by the catalogue payments 1; cases of another need --catalogue\n"
    assert funnel(str(cases), "--catalogue", "payments").stderr == ""
    told = json.loads(funnel(str(cases), "--json").stdout)
    assert (told["as_expected"], "faults" in told) == (False, False)
    assert told["unmet"][0] == "status: expected deny, got accept"


def test_a_file_that_cannot_be_used_is_one_line_with_its_place(tmp_path: Path) -> None:
    first = json.loads(EXAMPLE.read_text(encoding="utf-8").splitlines()[0])
    cases = tmp_path / "cases.jsonl"
    for text, part in (
        ("{}\n", ":1: name: field required; a case has name, at, request,"),
        (json.dumps({**first, "fault": {}}), ":1: fault: unknown field; a case has name, at, request,"),
        (json.dumps({**first, "expect": {}}), ":1: expect.status: field required; expect has status, stage,"),
        ('{"name": "a", "name": "b"}', 'duplicate key "name"'),
        (
            json.dumps({**first, "at": "9999-12-31T23:59:59-14:00"}),
            ':1: at: value error, "9999-12-3',
        ),
        ("", "no cases"),
    ):
        cases.write_text(text)

        ran = funnel(str(cases))

        assert ran.returncode == 2
        assert part in ran.stderr
        assert len(ran.stderr.splitlines()) == 1


def test_nothing_to_run_or_an_unknown_catalogue_is_bad_input(tmp_path: Path) -> None:
    assert funnel().returncode == 2
    assert funnel("--lint", "--catalogue", str(tmp_path / "none.toml")).returncode == 2


def test_an_example_is_not_run_by_another_catalogue_than_its_own() -> None:
    ran = funnel("--example", "payments", "--catalogue", "support")

    assert (ran.returncode, ran.stdout) == (2, "")
    assert "leave --catalogue out" in ran.stderr


def test_what_a_proposer_was_offered_bears_the_hash_that_its_record_names() -> None:
    offered = funnel("--example", "payments", "--offered")
    judged = funnel("--example", "payments", "--json")

    assert (offered.returncode, offered.stderr) == (0, "")
    told = [json.loads(line) for line in offered.stdout.splitlines()]
    named = [json.loads(line)["decision"]["catalogue"]["hash"] for line in judged.stdout.splitlines()]
    assert [each["hash"] for each in told] == named
    assert sorted(told[0]["tools"]) == ["quote_transfer", "schedule_transfer"]


def test_what_is_offered_follows_from_the_request_and_the_facts(tmp_path: Path) -> None:
    lines = tmp_path / "requests.jsonl"

    def offered(request: object, **more: object) -> subprocess.CompletedProcess[str]:
        lines.write_text(json.dumps({"request": request, **more}))
        return funnel(str(lines), "--offered", "--catalogue", "support")

    asked = {"operation": "refund", "actor_id": "a", "phase": "open"}
    agent = json.loads(offered({**asked, "roles": ["agent"]}).stdout)
    nobody = json.loads(offered(asked, world={"facts": {"case_status": "open"}}).stdout)

    assert "refund_order" in agent["tools"]
    assert "refund_order" not in nobody["tools"]
    for refused, part in (
        (offered({"operation": "refund"}), '"actor_id" is missing'),
        (offered(asked, world={"fact": {}}), "requests.jsonl:1: world: fact"),
        (funnel("--example", "payments", "--offered", "--profile"), "give one of the two"),
    ):
        assert refused.returncode == 2
        assert part in refused.stderr


def test_the_built_in_catalogues_have_no_findings() -> None:
    for name in ("payments", "support"):
        assert funnel("--lint", "--catalogue", name).returncode == 0


def test_attempts_at_one_case_are_followed_through_the_file(tmp_path: Path) -> None:
    drift = json.loads(EXAMPLE.read_text(encoding="utf-8").splitlines()[2])
    again = {
        **drift,
        "name": "mended",
        "case_id": drift["name"],
        "attempt": 2,
        "call": drift["call"].replace("660.00", "600.00"),
        "expect": {"status": "accept", "stage": "postcondition", "stop_reason": "repaired", "committed": 1},
    }
    cases = tmp_path / "cases.jsonl"
    cases.write_text(f"{json.dumps(drift)}\n{json.dumps(again)}\n")

    ran = funnel(str(cases))

    assert ran.returncode == 0, ran.stdout


def test_a_cases_text_cannot_move_the_terminals_cursor_or_forge_a_line(tmp_path: Path) -> None:
    (first, *_) = EXAMPLE.read_text(encoding="utf-8").splitlines()
    name = "evil\x1b[2J\x9b2J\nforged"
    case = {
        **json.loads(first),
        "name": name,
        "expect": {"status": "deny", "stage": "parse", "reasons": [name]},
    }
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps({**case, "label": {}}) + "\n")

    ran, profiled = funnel(str(file)), funnel("--profile", str(file))

    assert ran.returncode == profiled.returncode == 3
    for told in (ran.stdout, profiled.stderr):
        assert '"evil\\u001b[2J\\u009b2J\\nforged"' in told
        assert all(line.isprintable() for line in told.split("\n"))
    assert len(ran.stdout.splitlines()) > 2
