"""How many cores this process may use: by its affinity, and by the CPU limit of its control groups.

Promise: at least 1. A limit of two and a half cores has room for two processes that each keep one busy.
Source: the kernel's admin-guide/cgroup-v2 (`cpu.max`) and scheduler/sched-bwc (`cpu.cfs_quota_us`). Every group up to
the root may set a limit, and the least of them holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ticketgate.streams.config.setting_kinds import AUTO
from ticketgate.streams.config.settings import Settings

_MOUNT = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


def usable_cores(*, mount: Path = _MOUNT, own_groups: Path = _OWN_GROUPS) -> int:
    """Whole cores, at least 1. mount: where control groups are mounted. own_groups: which ones this process is in."""
    allowed = _affinity()
    quotas = [quota for quota in _quotas(mount, own_groups) if quota > 0]
    return max(1, min(allowed, *(int(quota) for quota in quotas))) if quotas else allowed


def processes_of(settings: Settings) -> int:
    """How many processes the settings ask for; `auto`: one for each core, or for each `scorer_threads` of them."""
    if settings.processes == AUTO:
        return max(1, usable_cores() // settings.scorer_threads)
    return settings.processes


def _affinity() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1


def _quotas(mount: Path, own_groups: Path) -> Iterator[float]:
    """Cores that a group allows, one for each group that limits them."""
    try:
        lines = own_groups.read_text().splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            for folder in _up(mount, path):
                yield from _of_v2(folder)
        elif "cpu" in controllers.split(","):
            for folder in _up(mount / controllers, path):
                yield from _of_v1(folder)


def _up(root: Path, path: str) -> Iterator[Path]:
    """The group's folder, and each above it. In a container the path may be the host's, of which the root alone is
    seen."""
    folder = root / path.lstrip("/")
    while folder != root and root in folder.parents:
        yield folder
        folder = folder.parent
    yield root


def _of_v2(folder: Path) -> Iterator[float]:
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    yield from _cores(quota, period)


def _of_v1(folder: Path) -> Iterator[float]:
    yield from _cores(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))


def _cores(quota: str, period: str) -> Iterator[float]:
    try:
        yield int(quota) / int(period)
    except (ValueError, ZeroDivisionError):
        return  # "max", or no such file: no limit


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
