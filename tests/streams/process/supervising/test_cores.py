"""How many cores a process may use, by what Linux shows of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings, load_settings
from ticketgate.streams.process.supervising import cores
from ticketgate.streams.process.supervising.cores import processes_of, usable_cores


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of 16 cores."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)


def look(tmp_path: Path, groups: str, **files: str) -> int:
    """What is found where control groups hold these files; `a__b` is the file `b` of the group `a`."""
    mount, own = tmp_path / "cgroup", tmp_path / "own"
    mount.mkdir()
    own.write_text(groups)
    for name, text in files.items():
        *folders, file = name.split("__")
        folder = mount.joinpath(*folders)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file.replace("_max", ".max").replace("cpu_cfs", "cpu.cfs")).write_text(text)
    return usable_cores(mount=mount, own_groups=own)


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("400000 100000", 4),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("max 100000", 16),
        ("9999999 100000", 16),
        ("", 16),
    ],
)
def test_the_limit_of_a_container(tmp_path: Path, quota: str, cores: int) -> None:
    assert look(tmp_path, "0::/\n", cpu_max=quota) == cores


def test_the_least_limit_of_all_groups_above(tmp_path: Path) -> None:
    groups = "0::/system.slice/gate.service\n"

    found = look(
        tmp_path,
        groups,
        **{"system.slice__gate.service__cpu_max": "800000 100000", "system.slice__cpu_max": "300000 100000"},
    )

    assert found == 3


def test_a_group_that_is_named_as_the_host_sees_it(tmp_path: Path) -> None:
    assert look(tmp_path, "0::/kubepods/pod1/c1\n", cpu_max="200000 100000") == 2


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    found = look(
        tmp_path,
        "4:memory:/x\n3:cpu,cpuacct:/docker/1\n0::/\n",
        **{
            "cpu,cpuacct__docker__1__cpu_cfs_quota_us": "300000",
            "cpu,cpuacct__docker__1__cpu_cfs_period_us": "100000",
        },
    )

    assert found == 3


def test_no_limit_in_the_first_version_is_minus_one(tmp_path: Path) -> None:
    assert look(tmp_path, "3:cpu:/\n", cpu__cpu_cfs_quota_us="-1", cpu__cpu_cfs_period_us="100000") == 16


def test_affinity_is_less_than_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)

    assert look(tmp_path, "0::/\n", cpu_max="400000 100000") == 2


def test_a_system_without_control_groups_and_affinity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 10)

    assert usable_cores(mount=tmp_path, own_groups=tmp_path / "none") == 10


@pytest.mark.parametrize(("threads", "processes"), [(1, 6), (2, 3), (4, 1), (16, 1)])
def test_auto_has_room_for_the_threads_of_each(
    monkeypatch: pytest.MonkeyPatch, threads: int, processes: int
) -> None:
    monkeypatch.setattr(cores, "usable_cores", lambda: 6)

    assert (
        processes_of(Settings.model_validate({"processes": "auto", "scorer_threads": threads})) == processes
    )


@pytest.mark.parametrize("value", ["0", "-1", "many", "", "1.5", "513"])
def test_what_is_no_number_of_processes_is_refused(value: str) -> None:
    with pytest.raises(SettingsError, match="TICKETGATE_PROCESSES: must be auto, or a number from 1 to 512"):
        load_settings(environment={"TICKETGATE_PROCESSES": value})
