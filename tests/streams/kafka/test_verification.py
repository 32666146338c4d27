"""What brokers say of verifying transactions, and what they do not say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import NodeNotReadyError
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.kafka.verification import SETTING, check_verification

YES, NO = [(SETTING, "true")], [(SETTING, "false")]
NOT_ALLOWED = 31


class FakeAdmin:
    """Brokers by their number, each with what it answers: entries, an error's code, or what is raised."""

    def __init__(self, **answers: Any) -> None:
        self._answers = {name.removeprefix("b"): answer for name, answer in answers.items()}
        nodes = [SimpleNamespace(nodeId=int(name)) for name in self._answers]
        self._client = SimpleNamespace(cluster=SimpleNamespace(brokers=lambda: nodes))

    async def describe_configs(self, resources: Any) -> Any:
        (resource,) = resources
        answer = self._answers[resource.name]
        if isinstance(answer, Exception):
            raise answer
        code, entries = (answer, []) if isinstance(answer, int) else (0, answer)
        return [SimpleNamespace(resources=[(code, None, 4, resource.name, entries)])]


async def check(**answers: Any) -> None:
    """Ask brokers that answer so."""
    await check_verification(cast("AIOKafkaAdminClient", FakeAdmin(**answers)))


async def test_brokers_that_verify_are_let_in_and_so_is_one_that_knows_no_other_way() -> None:
    await check(b1=YES, b2=YES)
    await check(b1=[])


async def test_one_broker_that_does_not_verify_is_enough_to_refuse() -> None:
    with pytest.raises(ConditionFailed, match=f"broker 2 does not verify.*set {SETTING} to true"):
        await check(b1=YES, b2=NO)


async def test_a_broker_that_will_not_say_is_refused_with_the_right_that_is_missing() -> None:
    with pytest.raises(ConditionFailed, match=r"broker 1 does not say.*DescribeConfigs on the cluster"):
        await check(b1=NOT_ALLOWED)


async def test_one_of_several_brokers_that_is_away_is_not_waited_for() -> None:
    await check(b1=NodeNotReadyError("away"), b2=YES)
    with pytest.raises(ConditionFailed):
        await check(b1=NodeNotReadyError("away"), b2=NO)


async def test_without_any_answer_the_brokers_are_away() -> None:
    with pytest.raises(NodeNotReadyError):
        await check(b1=NodeNotReadyError("away"))
