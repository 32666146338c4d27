"""A policy's files changed in every way that files are changed: the next look takes what lies there, whole."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from ticketgate.agents.policy import Policy, load_policy
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.process.reload import PolicyReload

from tests.support.policies import SEED_POLICY

SEED = SEED_POLICY.read_text(encoding="utf-8")
SCHEMA_POLICY = 'name = "s"\nversion = "{}"\nthreshold = 0.5\nschema = "ticket.schema.json"\n'


def version(number: int) -> str:
    return SEED.replace('version = "1"', f'version = "{number}"')


def schema(*names: str) -> str:
    return json.dumps(
        {
            "type": "object",
            "properties": {name: {"type": "boolean", "description": f"Is it {name}?"} for name in names},
        }
    )


class Watched:
    """A policy and its watch, looked at by hand. `meanwhile` is what happens while a look waits."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.adopted = path, list[Policy]()
        self.meanwhile: Callable[[], object] = lambda: None
        self.reload = PolicyReload(
            path,
            in_force=load_policy(path),
            adopt=self.adopted.append,
            telemetry=Telemetry(),
            interval_s=3600,
        )
        monkeypatch.setattr(asyncio, "sleep", self._sleep)

    async def _sleep(self, _: float) -> None:
        happening, self.meanwhile = self.meanwhile, lambda: None
        happening()

    async def look(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.meanwhile = meanwhile
        await self.reload.look()

    @property
    def versions(self) -> list[str]:
        return [policy.version for policy in self.adopted]


Watch = Callable[[str], Watched]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    def begin(text: str) -> Watched:
        path = tmp_path / "policy.toml"
        path.write_text(text, encoding="utf-8")
        return Watched(path, monkeypatch)

    return begin


async def test_a_policy_is_reloaded_with_its_schema(watch: Watch, tmp_path: Path) -> None:
    beside = tmp_path / "ticket.schema.json"
    beside.write_text(schema("urgent"), encoding="utf-8")
    watched = watch(SCHEMA_POLICY.format(1))

    await watched.look()
    before = watched.reload.error
    beside.write_text(schema("urgent", "angry"), encoding="utf-8")
    await watched.look()
    watched.path.write_text(SCHEMA_POLICY.format(2), encoding="utf-8")
    await watched.look()

    assert before is None
    assert watched.reload.error is None
    assert [list(policy.questions) for policy in watched.adopted] == [["urgent", "angry"]] * 2
    assert watched.adopted[-1].hash == load_policy(watched.path).hash


async def test_a_schema_that_is_away_or_broken_keeps_the_policy_until_it_is_back(
    watch: Watch, tmp_path: Path
) -> None:
    beside = tmp_path / "ticket.schema.json"
    beside.write_text(schema("urgent"), encoding="utf-8")
    watched = watch(SCHEMA_POLICY.format(1))
    await watched.look()

    beside.write_text("{", encoding="utf-8")
    await watched.look()
    broken = watched.reload.error
    beside.unlink()
    await watched.look()
    away = watched.reload.error
    beside.write_text(schema("calm"), encoding="utf-8")
    await watched.look()

    assert "ticket.schema.json" in (broken or "")
    assert "No such file" in (away or "")
    assert watched.reload.error is None
    assert [list(policy.questions) for policy in watched.adopted] == [["calm"]]


async def replaced_by_renaming(path: Path, text: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


@pytest.mark.parametrize("back", ["the same", "another"])
async def test_a_file_that_is_gone_for_a_moment_is_no_fault_and_no_judgement(
    watch: Watch, back: str, caplog: pytest.LogCaptureFixture
) -> None:
    watched = watch(version(1))
    await watched.look()
    after = version(2 if back == "the same" else 3)
    caplog.set_level(logging.ERROR, "ticketgate")

    watched.path.write_text(version(2), encoding="utf-8")
    await watched.look(meanwhile=watched.path.unlink)  # deleted while it is read
    between = watched.reload.error
    watched.path.write_text(after, encoding="utf-8")
    await watched.look()
    watched.path.unlink()
    await watched.look(meanwhile=lambda: watched.path.write_text(after, encoding="utf-8"))  # and written anew
    await watched.look()

    assert between is None
    assert watched.reload.error is None
    assert watched.versions == ["2" if back == "the same" else "3"]
    assert not caplog.records


@pytest.mark.parametrize(
    "way", ["a symlink", "a folder's symlink", "deleted and written anew", "renamed over"]
)
async def test_each_way_to_replace_a_file_is_taken_over_at_the_next_look(
    watch: Watch, way: str, tmp_path: Path
) -> None:
    for number in (1, 2):
        (tmp_path / f"v{number}").mkdir()
        (tmp_path / f"v{number}/policy.toml").write_text(version(number), encoding="utf-8")
    watched = watch(version(1))
    if way.endswith("symlink"):
        # As Kubernetes mounts a ConfigMap: a link to a file behind a link to a folder.
        (tmp_path / "now").symlink_to("v1")
        watched.path.unlink()
        watched.path.symlink_to("now/policy.toml" if way.startswith("a folder") else "v1/policy.toml")
    await watched.look()

    match way:
        case "a symlink":
            (tmp_path / "new").symlink_to("v2/policy.toml")
            (tmp_path / "new").replace(watched.path)
        case "a folder's symlink":
            (tmp_path / "new").symlink_to("v2")
            (tmp_path / "new").replace(tmp_path / "now")
        case "deleted and written anew":
            watched.path.unlink()
            watched.path.write_text(version(2), encoding="utf-8")
        case _:
            await replaced_by_renaming(watched.path, version(2))
    await watched.look()

    assert (watched.versions, watched.reload.error) == (["2"], None)


@pytest.mark.parametrize("pieces", [2, 7])
async def test_a_slow_writer_is_waited_for(watch: Watch, pieces: int) -> None:
    watched = watch(version(1))
    await watched.look()
    text = version(2)
    step = len(text) // pieces + 1

    for end in range(0, len(text) + step, step):
        watched.path.write_text(text[:end], encoding="utf-8")
        following = text[: end + step]
        await watched.look(meanwhile=lambda more=following: watched.path.write_text(more, encoding="utf-8"))
    await watched.look()

    assert (watched.versions, watched.reload.error) == (["2"], None)
    assert watched.adopted[0].rules


async def test_a_file_that_does_not_change_is_parsed_once(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = watch(version(1))
    await watched.look()
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for _ in range(3):
        await watched.look()

    assert waits == []
