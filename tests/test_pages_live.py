"""What the pages besides the README tell a reader to type runs on a deployment as the README makes one."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from ticketgate.agents.scoring.shipped import default_model_path

from tests.support.pages import WITH_WORKERS, WITHOUT_WORKERS, Live
from tests.test_readme import Shell, point_at_the_parts, shell

__all__ = ["shell"]

# The README's way to it, without what it shows on the way.
DEPLOYMENT = (
    "ticketgate examples first-hour",
    "cd first-hour",
    "sed 's/threshold = 0.56/threshold = 0.6/' policy.toml > edited.toml",
    "ticketgate topics create",
    "ticketgate worker --policy policy.toml",
    "TICKETGATE_WEB_PORT=0 ticketgate worker --role propose,effects --funnel support.funnel.toml",
    "python evidence.py",
    "ticketgate produce tickets.jsonl",
    "ticketgate produce proposals.jsonl --topic proposals",
    "ticketgate consume review --follow --until 1",
)


@pytest.mark.chaos
@pytest.mark.kafka
@pytest.mark.redis
def test_every_line_of_the_other_pages_works(shell: Shell) -> None:
    for line in DEPLOYMENT:
        if shell.folder.name == "first-hour":
            point_at_the_parts(shell)
        if " worker " in line:
            shell.start(line)
            continue
        ran = shell.type(line)
        assert ran.returncode == 0, f"{line}\n{ran.stdout}\n{ran.stderr}"
    ran = shell.type("ticketgate consume receipts --follow --until 3 --values")
    receipts = map(json.loads, ran.stdout.splitlines())
    key = next(key for each in receipts if (key := each.get("idempotency_key")))
    known = {"EFFECT": key, "MODEL": str(default_model_path())}

    wrong = [*typed(shell, WITH_WORKERS, known)]
    shell.end()
    wrong += typed(shell, WITHOUT_WORKERS, known)

    assert not wrong, "\n".join(wrong)


def typed(shell: Shell, lines: Iterable[Live], known: dict[str, str]) -> list[str]:
    """Type lines with this deployment's names; which of them did not end as they may."""
    wrong = []
    for each in lines:
        line = each.on(known)
        if each.starts:
            shell.start(line)
            continue
        ran = shell.type(line)
        if ran.returncode not in each.codes:
            wrong.append(f"{line}: {ran.returncode}\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}")
    return wrong
