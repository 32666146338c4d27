"""What is kept of settlements can be told, lost and restored: audit, rebuild, replay and dead letters know them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from redis import Redis
from ticketgate.codecs.records.settlement import Action
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment, Sent, ticket
from ...support.desk import Desk, desk_settings
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]


def audit(deployment: Deployment, of: str) -> dict[str, Any]:
    done = deployment.run("audit", "--of", of, "--json")
    assert done.returncode in (0, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def desk(deploy: NewDeployment, tmp_path: Path) -> Desk:
    """A is accepted, B rejected, C waits after a settlement that was not taken; then one more of A, and no settlement
    at all."""
    desk = Desk(deploy(**desk_settings(tmp_path, list("ABC"))), tmp_path)
    desk.deployment.start_worker(ROLES="decide,settle")
    desk.deployment.send([ticket(name) for name in "ABC"])
    lies = desk.reviews(3)
    desk.press(desk.settlement(lies["A"]), desk.settlement(lies["B"], Action.REJECT))
    desk.told(2)
    desk.press(desk.settlement(lies["C"], labels=("urgent",)), desk.settlement(lies["A"], Action.REJECT))
    desk.send(desk.sent[0])
    desk.deployment.send([Sent(b"{}", key=b"A")], topic="settlements")
    desk.told(4)
    desk.deployment.wait_for_records(1, "dead-letter")
    desk.wait_until(lambda: not desk.deployment.lag("settlements", group=f"{desk.deployment.name}.settle"))
    return desk


def test_every_settlement_is_accounted_for(desk: Desk) -> None:
    found = audit(desk.deployment, "settlements")
    tickets = audit(desk.deployment, "tickets")

    assert found["clean"], found
    assert found["records"] == 6
    assert found["settlements"] == 5
    counted = ("dispatched", "settled", "not_taken", "replayed", "dead_letter", "missing", "pending")
    assert {name: found[name] for name in counted} == {
        "dispatched": 1,
        "settled": 1,
        "not_taken": 2,
        "replayed": 1,
        "dead_letter": 1,
        "missing": 0,
        "pending": 0,
    }
    assert tickets["clean"], tickets
    assert (tickets["review"], tickets["outputs_of_others"]) == (3, 2)


def test_each_record_in_review_stands_as_a_plain_reader_and_the_view_say(desk: Desk) -> None:
    lies = desk.reviews(3)
    told = [json.loads(each.value or b"") for each in desk.deployment.committed("settled")]
    plain: dict[str, str] = {
        f"{each.topic}:{each.partition}:{each.offset}": "waiting" for each in lies.values()
    }
    for each in told:
        if each["outcome"] in ("accepted", "rejected", "returned"):
            plain["{topic}:{partition}:{offset}".format(**each["review"])] = each["outcome"]

    done = desk.deployment.run("audit", "--of", "review", "--json")
    listed = desk.deployment.run(
        "review", "list", "--json", "--review-view", str(desk.folder / "view.sqlite3")
    )
    table = desk.deployment.run("audit", "--of", "review")

    *lines, summary = (json.loads(line) for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stderr
    assert {each["review"]: each["state"] for each in lines} == plain
    counted = (
        "records",
        "waiting",
        "accepted",
        "rejected",
        "expired",
        "settled_twice",
        "settlements_of_past",
    )
    assert [summary[name] for name in counted] == [3, 1, 1, 1, 0, 0, 0]
    assert listed.returncode == 0, listed.stderr
    numbers = json.loads(listed.stdout)["numbers"]
    assert {name: numbers[name] for name in numbers if name in summary} == {
        name: summary[name] for name in numbers if name in summary
    }
    assert "for a person" in table.stdout


def test_what_redis_forgets_is_restored_and_settles_nothing_twice(desk: Desk, valkey: Valkey) -> None:
    lies = desk.reviews(3)
    again = [desk.settlement(lies[name], by="p-2") for name in "ABC"]
    with Redis.from_url(valkey.url) as redis:
        redis.flushall()
    worker = desk.deployment.workers[0]
    worker.wait_for(lambda state: state.get("ready") is False)

    done = desk.deployment.run("claims", "rebuild", "--json")
    assert done.returncode == 0, done.stderr
    worker.wait_ready()
    desk.press(*again)
    told = desk.told(7)
    desk.deployment.send([ticket(name) for name in "AB"])
    desk.wait_until(lambda: not desk.deployment.lag())

    restored = json.loads(done.stdout)
    assert (restored["restored"], restored["conflicts"], restored["without_identity"]) == (5, 0, 0)
    assert [told[each.id]["outcome"] for each in again] == [
        "already_settled",
        "already_settled",
        "accepted",
    ]
    assert len(desk.deployment.committed("review")) == 3
    assert sorted(each["ticket_id"] for each in desk.dispatched()) == ["A", "C"]
    assert audit(desk.deployment, "settlements")["clean"]


def test_offsets_that_were_lost_are_set_where_commits_ended(desk: Desk) -> None:
    """Also behind what was not taken, which no claim tells of."""
    assert desk.deployment.workers[0].stop() == 0

    done = desk.deployment.run("replay", "--of", "settlements", "--replay-from", "cut", "--json", "--yes")

    assert done.returncode == 0, done.stderr
    assert all(each["emitted_again"] == 0 for each in json.loads(done.stdout)["partitions"]), done.stdout
    desk.deployment.start_worker(ROLES="decide,settle").wait_ready()
    assert len(desk.deployment.committed("settled")) == 4


def test_what_a_person_decided_is_not_decided_again(desk: Desk) -> None:
    """Judged by today's policy and clock it would not be taken, and would let go of its ticket."""
    assert desk.deployment.workers[0].stop() == 0

    done = desk.deployment.run("replay", "--of", "settlements", "--replay-from", "beginning", "--yes")

    assert done.returncode == 2
    assert "what a person decided is not decided again; use --replay-from marks or cut" in done.stderr
    desk.deployment.start_worker(ROLES="decide,settle").wait_ready()
    desk.press(desk.settlement(desk.reviews(3)["B"]))
    assert sorted(each["outcome"] for each in desk.told(5).values()).count("already_settled") == 2


def test_a_dead_letter_goes_back_to_where_it_came_from(desk: Desk) -> None:
    done = desk.deployment.run("dead-letter", "replay", "--unmended", "--yes", "--json")

    assert done.returncode in (0, 3), done.stderr
    assert len(desk.deployment.wait_for_records(2, "dead-letter")) == 2
    assert len(desk.deployment.committed("tickets")) == 3
    assert len(desk.deployment.committed("settlements")) == 7
