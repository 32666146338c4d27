"""A policy's tool, which no catalogue describes, has its states in the funnel file; and models have their aliases."""

from __future__ import annotations

from pathlib import Path

import pytest
from ticketgate.agents.effects.states import States
from ticketgate.agents.funnel.file.funnel_file import FunnelFileError, load_funnel_file
from ticketgate.agents.scoring import default_model_path
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.roles.decide.scorers import require_models

FILE = """
[providers.desk]
adapter = "redis"
prefix = "desk:"
url = "redis://127.0.0.1:6379/0"

[tools.assign_queue]
provider = "desk"
contribution = "choice"
consequence = "reversible"
states = { done = ["assigned"], undone = ["withdrawn"] }
"""


def test_a_policys_tool_has_its_states_in_the_funnel_file(tmp_path: Path) -> None:
    path = tmp_path / "funnel.toml"
    path.write_text(FILE, "utf-8")

    assert load_funnel_file(path).states == {
        "assign_queue": States(done=("assigned",), undone=("withdrawn",))
    }


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (('undone = ["withdrawn"]', 'undone = ["assigned"]'), 'state "assigned" is declared twice'),
        (('done = ["assigned"], ', ""), "done"),
    ],
)
def test_states_of_a_file_that_cannot_be_meant_are_refused(
    tmp_path: Path, changed: tuple[str, str], what: str
) -> None:
    path = tmp_path / "funnel.toml"
    path.write_text(FILE.replace(*changed), "utf-8")

    with pytest.raises(FunnelFileError, match=what):
        load_funnel_file(path)


def test_an_alias_is_opened_for_the_request_that_names_it_alone() -> None:
    settings = load_settings({"model_aliases": f"small={default_model_path()}, other=/nowhere"}).settings

    models = require_models(settings, only="small")

    assert set(models.aliases) == {"small"}
    assert models.named("small") is models.aliases["small"]
    assert models.named("other") is models.named(None) is models.default
    models.close()


@pytest.mark.parametrize("written", ["small", "=x", "a=/x,a=/y", "a="])
def test_aliases_that_cannot_be_meant_are_refused_by_the_setting(written: str) -> None:
    with pytest.raises(SettingsError, match=r"--model-aliases|TICKETGATE_MODEL_ALIASES"):
        load_settings({"model_aliases": written})
