"""The policy that people judge by, while its file is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from ticketgate.agents.policy import Policy
from ticketgate.agents.policy.load import load_policy
from ticketgate.streams.console.desk import policies
from ticketgate.streams.console.desk.policies import Policies, Unusable

from ....support.deciding import SUPPORT


@pytest.mark.parametrize("half", ["name = ", SUPPORT.replace('version = "', 'version = "0')])
async def test_what_a_file_says_while_it_is_written_is_shown_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: str
) -> None:
    monkeypatch.setattr(policies, "LOOK_EVERY_S", -1.0)
    path = tmp_path / "policy.toml"
    path.write_text(SUPPORT)
    known = Policies(path)
    was = await known.now()

    def load_and_write_on(*given: object, **named: object) -> Policy:
        try:
            return load_policy(*given, **named)  # type: ignore[arg-type]  # as it is given
        finally:
            path.write_text(SUPPORT)

    path.write_text(half)
    monkeypatch.setattr(policies, "load_policy", load_and_write_on)

    assert isinstance(was, Policy)
    assert await known.now() is was
    assert not isinstance(await known.now(), Unusable)
