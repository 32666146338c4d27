"""`ticketgate review` on a real broker: listed, shown whole, settled, exported; by whom, and to whom it was shown."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ticketgate.codecs.records.in_force import InForceRecord, decode_in_force
from ticketgate.codecs.records.settlement import Action

from ....support.deployment import Sent, ticket
from ....support.desk import RIGHT, Desk, desk_settings
from ...conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


@pytest.fixture
def desk(deploy: NewDeployment, tmp_path: Path) -> Desk:
    """A, B and C are in review, and a worker takes settlements."""
    settings = desk_settings(tmp_path, list("ABCD"), review_view=str(tmp_path / "view.sqlite3"))
    desk = Desk(deploy(**settings), tmp_path)
    desk.deployment.start_worker(ROLES="decide,settle")
    desk.deployment.send([ticket(name, f"Ticket {name} about a refund.") for name in "ABC"])
    desk.reviews(3)
    return desk


def test_a_ticket_is_found_whatever_its_record_is_keyed_by(desk: Desk) -> None:
    own = {"id": "D", "state": "Ticket D about a refund."}
    other = {**own, "tenant": "other", "state": "What nobody else may read."}
    escaped = json.dumps(own).replace('"D"', '"\\u0044"')
    sent = [json.dumps(own), json.dumps(other), escaped]
    places = desk.deployment.send([Sent(each.encode(), key=f"k{n}".encode()) for n, each in enumerate(sent)])
    records = [json.loads(each.value or b"") for each in desk.deployment.wait_for_records(5, "review")]
    key = next(
        each["idempotency_key"] for each in records if (each["ticket_id"], each["tenant"]) == ("D", "")
    )

    found = review(desk, "show", key)

    tickets = desk.deployment.topic("tickets")
    shown = [each["coordinate"] for each in found["timeline"] if each["topic"] == tickets]
    assert sorted(shown) == sorted(f"{tickets}:{places[n][0]}:{places[n][1]}" for n in (0, 2))
    assert "nobody else" not in json.dumps(found)


def review(desk: Desk, *arguments: str, code: int = 0) -> Any:
    done = desk.deployment.run("review", *arguments, "--as", "Ada", "--json")
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def accept(name: str, *more: str) -> list[str]:
    labels = [part for label in RIGHT for part in ("--label", label)]
    return ["settle", name, "--accept", *labels, *more]


def test_what_waits_is_listed_settled_and_exported(desk: Desk) -> None:
    before = review(desk, "list")
    shown = review(desk, *accept("A"))
    assert desk.deployment.committed("settlements") == []
    settled = review(desk, *accept("A", "--yes", "--why", "seen the invoice"))
    rejected = review(desk, "settle", "B", "--reject", "--yes")
    after = review(desk, "list")
    again = desk.deployment.run("review", "settle", "A", "--reject", "--yes")
    done = desk.deployment.run("review", "export", "--as", "Ada")
    rows = [json.loads(line) for line in done.stdout.splitlines()]

    assert [each["ticket_id"] for each in before["rows"]] == ["A", "B", "C"]
    assert before["rows"][0]["says"] == "Ticket A about a refund."
    assert (before["count"], before["numbers"]["waiting"]) == (3, 3)
    assert (shown["would_be_accepted"], shown["sent"]) == (True, False)
    assert [each["tool"] for each in shown["effects"]] == ["assign_queue"]
    assert (settled["outcome"], rejected["outcome"]) == ("accepted", "rejected")
    assert [each["ticket_id"] for each in after["rows"]] == ["C"]
    assert again.returncode == 2
    assert "does not wait: it is accepted" in again.stderr
    (decision,) = desk.dispatched()
    assert decision["selected"] == list(RIGHT)
    assert decision["settled"]["by"] == settled["by"]
    assert "Ada" not in json.dumps(decision)
    assert [(row["ticket"]["id"], row["labels"], row["origin"]) for row in rows] == [
        ("A", list(RIGHT), "person"),
        ("B", None, "person"),
    ]


def test_what_the_policy_would_not_accept_is_not_sent(desk: Desk) -> None:
    found = review(desk, "settle", "A", "--accept", "--label", "urgent", "--yes", code=3)

    assert not found["would_be_accepted"]
    assert "urgent requires review" in found["reasons"]
    assert desk.deployment.committed("settlements") == []


def test_the_whole_case_is_shown_with_suggestions_and_a_timeline(desk: Desk) -> None:
    desk.press(desk.settlement(desk.reviews(3)["A"], labels=("unheard-of",)))
    desk.told(1)
    review(desk, *accept("A", "--yes"))

    found = review(desk, "show", "A")

    topics = [each["topic"].removeprefix(f"{desk.deployment.name}-") for each in found["timeline"]]
    assert topics[:2] == ["tickets", "review"]
    assert sorted(topics[2:]) == ["dispatch", "settled", "settled", "settlements", "settlements"]
    assert found["text"] == "Ticket A about a refund."
    assert found["probabilities"]["urgent"] == 0.9
    assert found["thresholds"]["urgent"] == 0.5
    assert found["violations"][0]["message"] == "urgent requires review"
    assert [each["labels"] for each in found["suggestions"]] == [["billing"], list(RIGHT)]
    assert [each["outcome"] for each in found["settlements"]] == ["void", "accepted"]
    assert found["policy"]["hash"] == desk.policy.hash
    assert found["policy"]["in_force"]["file"] == "policy.toml"
    plain = desk.deployment.run("review", "show", "A")
    assert f"policy: support 1 ({desk.policy.hash[:12]}), put in force " in plain.stdout
    assert "they say nothing of what is true" in plain.stderr


def test_a_policy_that_another_deployment_put_in_force_as_well_is_told_of_as_ours(desk: Desk) -> None:
    read = [decode_in_force(each.value or b"") for each in desk.deployment.committed("policies")]
    (own,) = [each for each in read if isinstance(each, InForceRecord)]
    other = replace(own, namespace="other", host="elsewhere", by="somebody else")
    key = f"{own.policy.hash}@{own.to_json()['at']}@other@elsewhere".encode()
    desk.deployment.send([Sent(other.encode(), key=key)], topic="policies")

    policy = desk.deployment.run("policy", "show", "--hash", own.policy.hash, "--json")
    assert [each["namespace"] for each in json.loads(policy.stdout)["in_force"]] == [own.namespace, "other"]
    assert review(desk, "show", "A")["policy"]["in_force"] == own.to_json()


def test_who_was_shown_what_is_logged_and_whom_a_pseudonym_stands_for_can_be_erased(desk: Desk) -> None:
    listed = review(desk, "list")
    review(desk, "show", "B")
    people = json.loads((desk.folder / "view.people.json").read_text())
    reads = [json.loads(line) for line in (desk.folder / "view.reads.jsonl").read_text().splitlines()]

    assert [(each["command"], len(each["tickets"])) for each in reads] == [("list", 3), ("show", 1)]
    assert {each["by"] for each in reads} == {people["Ada"]}
    assert reads[1]["tickets"] == [listed["rows"][1]["key"]]
    for name in ("view.sqlite3", "view.people.json", "view.reads.jsonl"):
        assert stat.S_IMODE((desk.folder / name).stat().st_mode) == 0o600

    done = desk.deployment.run("review", "forget", "Ada")

    assert done.returncode == 0, done.stderr
    assert "Ada" not in (desk.folder / "view.people.json").read_text()
    assert desk.deployment.run("review", "forget", "Ada").returncode == 3


def test_a_key_does_what_its_roles_say(desk: Desk) -> None:
    wall = Desk(
        replace(desk.deployment, settings={**desk.deployment.settings, "CONSOLE_KEY": "wall"}), desk.folder
    )

    assert review(wall, "list")["count"] == 3
    refused = wall.deployment.run("review", "settle", "A", "--reject", "--yes")
    assert refused.returncode == 2
    assert "may not settle" in refused.stderr
    assert wall.deployment.run("review", "forget", "Ada").returncode == 2


def test_without_a_worker_for_it_a_settlement_is_sent_and_waits(desk: Desk) -> None:
    assert desk.deployment.workers[0].stop() == 0

    found = review(desk, "settle", "A", "--reject", "--yes", code=3)
    assert found["outcome"] == "not_taken_yet"
    assert review(desk, "list")["numbers"]["waiting"] == 3

    desk.deployment.start_worker(ROLES="settle")
    assert desk.told(1)[found["settlement"]]["outcome"] == "rejected"
    assert review(desk, "list")["numbers"]["waiting"] == 2


def test_the_view_is_rebuilt_by_itself_and_passes_over_what_it_cannot_read(desk: Desk) -> None:
    desk.press(desk.settlement(desk.reviews(3)["A"], Action.REJECT))
    desk.told(1)
    first = review(desk, "list")
    desk.deployment.send([Sent(b"no JSON", key=b"x"), Sent(None, key=b"x"), Sent(b"[]")], topic="review")
    (desk.folder / "view.sqlite3").unlink()

    assert review(desk, "list")["numbers"] == first["numbers"]

    (desk.folder / "view.sqlite3").write_bytes(b"broken" * 1000)
    assert review(desk, "list")["numbers"] == first["numbers"]
