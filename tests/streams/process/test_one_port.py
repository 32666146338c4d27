"""Several workers on one machine, and what a first start says."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.streams.conftest import NewDeployment
from tests.support.deployment import COMMAND, Worker
from tests.support.policies import FIXED_ANSWERS, SEED_POLICY


@pytest.mark.kafka
@pytest.mark.redis
def test_a_second_worker_on_the_same_port_is_told_in_one_line(deploy: NewDeployment, tmp_path: Path) -> None:
    deployment = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}")
    deployment.create_topics()
    first = deployment.start_worker()
    first.wait_ready()
    second = Worker(deployment.environment, tmp_path / "second.log", [COMMAND], port=first.port)

    code = second.process.wait(timeout=120)

    assert code == 2
    said = second.log_file.read_text()
    assert "Traceback" not in said
    (told,) = [line for line in said.splitlines() if line.startswith("ticketgate: ")]
    assert told.startswith(f"ticketgate: TICKETGATE_WEB_PORT: cannot listen on 127.0.0.1:{first.port} (")
    assert told.endswith("set another port, or 0 for a free one")


def test_a_coordinator_that_is_being_made_is_no_error() -> None:
    from ticketgate.streams.kafka import connection

    assert connection
    logger = logging.getLogger("aiokafka.consumer.group_coordinator")
    expected, other = (
        logger.makeRecord(
            logger.name, logging.ERROR, "", 0, "Group Coordinator Request failed: %s", (said,), None
        )
        for said in (
            "[Error 15] GroupCoordinatorNotAvailableError",
            "[Error 30] GroupAuthorizationFailedError",
        )
    )

    assert not logger.filter(expected)
    assert logger.filter(other)
