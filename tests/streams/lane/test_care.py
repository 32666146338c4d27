"""What died lanes left, as care: what is taken alone, and what is given up for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.store.lane_state.underway import Doing, Left, UnderWay, reading
from ticketgate.streams.lane.opening.care import MOST_DEATHS, Care, care_from
from ticketgate.streams.lane.taking.floor import Floor


def left(*under_ways: UnderWay) -> tuple[Left, ...]:
    return tuple(Left(f"t{n}", each, is_new=True) for n, each in enumerate(under_ways))


def alone(doing: Doing, offset: int) -> UnderWay:
    return UnderWay(doing, range(offset, offset + 1), is_alone=True)


@pytest.mark.parametrize(
    ("under_ways", "stop"),
    [
        ([], 5),
        ([UnderWay(Doing.DECIDING, range(5, 26))], 26),
        ([UnderWay(Doing.DECIDING, range(5, 9)), alone(Doing.DECODING, 5)], 9),
        # An idle worker had nothing under way, whatever comes later.
        ([reading(40)], 40),
        ([reading(5)], 21),
        ([reading(30)], 40),
    ],
)
def test_care_goes_as_far_as_what_was_under_way(under_ways: Sequence[UnderWay], stop: int) -> None:
    start = 40 if under_ways == [reading(40)] else 5

    assert care_from(left(*under_ways), start=start, end=40, most=16).stop == stop


@given(
    st.lists(
        st.builds(
            UnderWay,
            st.sampled_from(list(Doing)),
            st.tuples(st.integers(0, 4), st.integers(1, 3)).map(lambda at: range(at[0], at[0] + at[1])),
            st.just(False),
        )
    )
)
def test_deaths_beside_others_blame_nobody_however_many(under_ways: list[UnderWay]) -> None:
    care = Care(9, left(*under_ways))

    assert not any(care.objection(offset) for offset in range(9))
    assert not any(care.deaths(doing, offset) for doing in MOST_DEATHS for offset in range(9))


@pytest.mark.parametrize(("doing", "most"), MOST_DEATHS.items())
def test_a_record_is_given_up_for_deaths_of_its_own_in_one_phase(doing: Doing, most: int) -> None:
    enough = left(*[alone(doing, 7)] * most)

    assert Care(9, enough).deaths(doing, 7) == most
    assert not Care(9, enough[1:]).deaths(doing, 7)
    assert not Care(9, enough).deaths(doing, 8)


def test_deaths_in_different_phases_do_not_add_up() -> None:
    care = Care(9, left(alone(Doing.DECODING, 7), alone(Doing.DECIDING, 7)))

    assert not care.deaths(Doing.DECODING, 7)
    assert not care.objection(7)


async def test_one_alone_waits_for_all_and_all_wait_for_one_alone() -> None:
    floor, seen, release = Floor(), list[str](), asyncio.Event()

    async def beside(name: str) -> None:
        async with floor.beside():
            seen.append(f"{name} began")
            await release.wait()
            seen.append(f"{name} ended")

    async def alone() -> None:
        async with floor.alone():
            seen.append("alone began")
            await asyncio.sleep(0)
            seen.append("alone ended")

    async with asyncio.TaskGroup() as group:
        for work in (beside("a"), beside("b"), alone(), beside("c")):
            group.create_task(work)
            await asyncio.sleep(0)
        release.set()

    assert seen[:2] == ["a began", "b began"]
    assert sorted(seen[2:4]) == ["a ended", "b ended"]
    assert seen[4:] == ["alone began", "alone ended", "c began", "c ended"]


async def test_one_that_is_cancelled_while_it_waits_holds_nobody_up() -> None:
    floor, release = Floor(), asyncio.Event()

    async def beside() -> None:
        async with floor.beside():
            await release.wait()

    async def alone() -> None:
        async with floor.alone():
            pass

    first = asyncio.create_task(beside())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(alone())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    async with asyncio.timeout(5), floor.beside():
        release.set()
        await first
