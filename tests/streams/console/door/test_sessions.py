"""Sessions end, and guessing is slowed: by clocks of the test's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.settling.console_keys import ConsoleRole
from ticketgate.streams.console.door.attempts import FREE, LONGEST_WAIT_S, Attempts, network_of
from ticketgate.streams.console.door.people import People, Person
from ticketgate.streams.console.door.sessions import MOST_OF_ONE, Sessions
from ticketgate.streams.console.door.tokens import fits, hashed, is_hash, new_token
from ticketgate.streams.console.refusals import PageRefusal

from ..conftest import door_settings


class Clock:
    """Seconds that the test turns."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(door_settings(tmp_path))


def sessions_of(people: People, clock: Clock) -> Sessions:
    return Sessions(people, idle_s=60, longest_s=600, clock=clock)


def anna(people: People) -> Person:
    found = people.get("anna")
    assert found is not None
    return found


def test_a_session_that_is_left_alone_ends(people: People) -> None:
    clock = Clock()
    sessions = sessions_of(people, clock)
    name, session = sessions.open(anna(people), subject="p-1")

    clock.now += 59
    assert sessions.find(name) is session
    clock.now += 59
    assert sessions.find(name, is_use=False) is session
    clock.now += 1
    assert sessions.find(name) is None
    assert len(sessions) == 0


def test_a_session_that_is_used_all_the_time_ends_too(people: People) -> None:
    clock = Clock()
    sessions = sessions_of(people, clock)
    name, _ = sessions.open(anna(people), subject="p-1")

    lasted = 0
    while sessions.find(name) is not None:
        clock.now += 30
        lasted += 30

    assert lasted == 600


def test_a_session_of_whom_the_files_say_another_thing_ends(people: People) -> None:
    clock = Clock()
    sessions = sessions_of(people, clock)
    name, _ = sessions.open(replace(anna(people), role=ConsoleRole.READ), subject="p-1")

    sessions.sweep()

    assert sessions.find(name) is None


def test_one_person_has_so_many_sessions_and_the_one_used_longest_ago_goes(people: People) -> None:
    clock = Clock()
    sessions = sessions_of(people, clock)
    names = []
    for _ in range(MOST_OF_ONE + 1):
        clock.now += 1
        names.append(sessions.open(anna(people), subject="p-1")[0])

    assert [sessions.find(each) is None for each in names] == [True] + [False] * MOST_OF_ONE


@given(st.lists(st.floats(0, 1000), min_size=FREE, max_size=40))
async def test_however_it_is_spread_who_fails_waits_and_not_for_ever(pauses: list[float]) -> None:
    clock = Clock()
    attempts = Attempts(clock)
    tried, refusals = 0, []
    for pause in pauses:
        clock.now += pause
        try:
            async with attempts.trying("192.0.2.1"):
                attempts.failed("192.0.2.1")
                tried += 1
        except PageRefusal as err:
            refusals.append(err)

    assert {each.status for each in refusals} <= {429}
    assert all(1 <= (each.retry_after_s or 0) <= LONGEST_WAIT_S for each in refusals)
    # Five at once, and then not more than one in two seconds.
    assert tried <= FREE + sum(pauses) / 2 + 1
    clock.now += LONGEST_WAIT_S
    async with attempts.trying("192.0.2.1"):
        pass
    async with attempts.trying("192.0.2.2"):
        pass


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("None", "None", True),
    ],
)
def test_of_ipv6_a_network_counts_as_one(one: str, other: str, are_one: bool) -> None:
    assert (network_of(one) == network_of(other)) is are_one


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_hash_fits_its_own_token_alone(token: str, other: str) -> None:
    written = hashed(token, cost=2)

    assert is_hash(written)
    assert fits(token, written)
    assert fits(other, written) is (other == token)


def test_tokens_are_never_the_same_and_nor_are_their_hashes() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len({hashed("x", cost=2) for _ in range(20)}) == 20


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "scrypt$", 7, None, "scrypt$3$8$1$AAAAAAAAAAA=$AAAAAAAAAAAAAAAAAAAAAA=="),
        *(
            "scrypt$1048576$8$1$AAAAAAAAAAA=$AAAAAAAAAAAAAAAAAAAAAA==",
            "scrypt$2$8$1$AAAA===A$AAAAAAAAAAAAAAAA====",
        ),
    ],
)
def test_what_could_not_be_checked_here_is_no_hash(text: object) -> None:
    assert not is_hash(text)
