"""Each import contract of pyproject.toml is found broken once somebody breaks it."""

from __future__ import annotations

import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any

import grimp
import pytest
from importlinter import configuration
from importlinter.application.use_cases import _register_built_in_contract_types
from importlinter.domain.contract import registry

ROOT = Path(__file__).resolve().parents[1]
OPTIONS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS: dict[str, dict[str, Any]] = {each["name"]: each for each in OPTIONS["contracts"]}

S, A, C = "ticketgate.streams", "ticketgate.agents", "ticketgate.codecs"
# By contract: an import that it forbids.
PLANTED = {
    "Imports point down: streams, agents, store, codecs": (
        "ticketgate.store.claims",
        f"{S}.lane.taking.batch",
    ),
    "The rooms of streams: imports point down": (f"{S}.kafka.reading.salvage", f"{S}.lane.recovery"),
    "The console: its pages know nothing of its door": (f"{S}.console.pages", f"{S}.console.door.sessions"),
    "The roles know nothing of one another": (
        f"{S}.roles.propose.proposal_work",
        f"{S}.roles.decide.ticket_work",
    ),
    "The rooms of agents: imports point down": (f"{A}.scoring.fixed", f"{A}.deciding.decide"),
    "Nothing goes in a circle": (f"{A}.scoring.shortlisting", f"{A}.scoring.onnx"),
    "No worker runs what is for the workbench": (f"{S}.lane.taking.batch", f"{A}.workbench.policy.lint"),
    "The parts without Docker are for the demo and the tests": (f"{S}.lane.taking.batch", f"{S}.parts.kafka"),
    "Faust is known in one room": (f"{S}.process.runner", "faust"),
    "Deciding knows neither Kafka nor Redis nor the web, but for the adapters behind its ports": (
        f"{A}.deciding.decide",
        "aiokafka",
    ),
    "codecs stand on no engine": (f"{C}.records.ticket", "numpy"),
    "codecs by record: what holds another record stands above it": (
        f"{C}.records.ticket",
        f"{C}.records.decision",
    ),
    "codecs: files, records and protocol stand on values, and those on verdicts": (
        f"{C}.values.strict",
        f"{C}.records.ticket",
    ),
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """All imports of the product."""
    configuration.configure()
    _register_built_in_contract_types()
    roots = OPTIONS["root_packages"]
    return grimp.build_graph(*roots, include_external_packages=True, cache_dir=None)


def is_kept(name: str, graph: grimp.ImportGraph) -> bool:
    options = {key: value for key, value in CONTRACTS[name].items() if key not in {"name", "type", "id"}}
    session = {"root_packages": OPTIONS["root_packages"], "include_external_packages": "true"}
    options = {
        key: str(value).lower() if isinstance(value, bool) else value for key, value in options.items()
    }
    contract = registry.get_contract_class(CONTRACTS[name]["type"])(name, session, options)
    return bool(contract.check(deepcopy(graph), verbose=False).kept)


def test_every_contract_is_tried_here() -> None:
    assert set(PLANTED) == set(CONTRACTS)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_import_breaks_its_contract(name: str, graph: grimp.ImportGraph) -> None:
    importer, imported = PLANTED[name]
    assert is_kept(name, graph)
    broken = deepcopy(graph)
    assert importer in broken.modules
    if imported not in broken.modules:
        broken.add_module(imported, is_squashed=True)

    broken.add_import(importer=importer, imported=imported, line_number=1, line_contents="planted")

    assert not is_kept(name, broken)
