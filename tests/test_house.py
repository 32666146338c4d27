"""The house: what each package hands out, what is installed, and what must not stand in the repository."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("agents", "codecs", "store", "streams")

# A name that is added or taken away here is a change that users see: say so in CHANGELOG.md.
PUBLIC_NAMES = {
    "ticketgate.agents": [],
    "ticketgate.agents.effects": [],
    "ticketgate.agents.funnel": [],
    "ticketgate.agents.policy": [
        "EffectTemplate",
        "Policy",
        "PolicyError",
        "Problem",
        "ProposedEffect",
        "Rule",
        "load_policy",
        "parse_policy",
        "violations",
    ],
    "ticketgate.agents.scoring": [
        "Failure",
        "FixedScorer",
        "Scorer",
        "ScorerError",
        "ScorerUnavailable",
        "Scores",
        "default_model_path",
        "open_scorer",
    ],
    "ticketgate.codecs": [
        "Action",
        "Answer",
        "CASE_DECISION_SCHEMA",
        "CaseDecision",
        "CatalogueRef",
        "ChoiceAnswer",
        "ChoiceQuestion",
        "Coordinate",
        "DECISION_SCHEMA",
        "DEFAULT_MAX_BYTES",
        "DecisionReceipt",
        "DecisionRecord",
        "Effect",
        "EffectReceipt",
        "EffectState",
        "EffectStatus",
        "Fingerprint",
        "Header",
        "IN_FORCE_SCHEMA",
        "IdempotencyKey",
        "InForceRecord",
        "JsonValue",
        "JudgedAgain",
        "Malformed",
        "ModelRef",
        "NoulAnswer",
        "NoulQuestion",
        "Outcome",
        "PROPOSAL_SCHEMA",
        "PolicyRef",
        "Probability",
        "Proposal",
        "ProposedCall",
        "ProposerModel",
        "Question",
        "QuestionError",
        "RECEIPT_SCHEMA",
        "RepairReceipt",
        "Request",
        "SETTLED_SCHEMA",
        "SETTLEMENT_SCHEMA",
        "ScoreAnswer",
        "ScoreQuestion",
        "SettledBy",
        "SettledByPerson",
        "SettledRecord",
        "Settlement",
        "Signed",
        "Stage",
        "Status",
        "StopReason",
        "TICKET_SCHEMA",
        "Ticket",
        "Verdict",
        "Violation",
        "answer_confidence",
        "answer_json",
        "canonical",
        "certainty",
        "check_answers",
        "collision_key",
        "confidence",
        "dead_letter_headers",
        "decision_headers",
        "decode",
        "decode_case_decision",
        "decode_in_force",
        "decode_proposal",
        "decode_receipt",
        "decode_settled",
        "decode_settlement",
        "decode_ticket",
        "effect_key",
        "effects_digest",
        "encode",
        "fingerprint",
        "foreign",
        "from_epoch_ms",
        "header",
        "is_empty_state",
        "proposal_fingerprint",
        "proposal_key",
        "read_case_decision",
        "read_decision",
        "read_dispatched",
        "read_in_force",
        "read_proposal",
        "read_question",
        "read_questions",
        "read_receipt",
        "read_settled",
        "read_settlement",
        "read_ticket",
        "receipt_headers",
        "receipt_key",
        "rfc3339",
        "settlement_fingerprint",
        "settlement_key",
        "tag_non_finite",
        "ticket_key",
        "value_digest",
    ],
    "ticketgate.store": [],
    "ticketgate.streams": [],
}


@pytest.mark.parametrize("package", PUBLIC_NAMES)
def test_a_package_hands_out_the_pinned_names(package: str) -> None:
    module = importlib.import_module(package)

    assert sorted(getattr(module, "__all__", [])) == PUBLIC_NAMES[package]
    for name in PUBLIC_NAMES[package]:
        named = getattr(module, name)
        assert not callable(named) or named.__doc__, f"{package}.{name} has no docstring"


def test_every_folder_with_code_is_an_installed_package() -> None:
    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])

    found = {
        "ticketgate." + ".".join(init.parent.relative_to(ROOT).parts)
        for folder in FOLDERS
        for init in (ROOT / folder).rglob("__init__.py")
    }

    assert found == listed
    assert all((ROOT / folder / "py.typed").exists() for folder in FOLDERS)


def test_the_root_holds_what_a_reader_looks_for_and_nothing_else() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")

    found = {path.split("/")[0] for path in tracked if path}

    allowed = {"pyproject.toml", "README.md", "LICENSE", "NOTICE", "SECURITY.md", "CHANGELOG.md", "Makefile"}
    allowed |= {"ARCHITECTURE.md", "CONTRIBUTING.md", ".github", ".pre-commit-config.yaml"}
    allowed |= {
        "docker-compose.yml",
        "streams",
        "agents",
        "codecs",
        "store",
        "deploy",
        "tests",
        ".ci",
        ".gitignore",
    }
    assert found <= allowed | {".dockerignore"}, found - allowed


def test_no_registry_is_named() -> None:
    hosts = r"(pypi|pythonhosted|npmjs|repo1\.maven)\.org"

    named = subprocess.run(
        ["git", "grep", "-IlE", hosts], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()

    assert not named


@pytest.mark.parametrize(
    ("package", "heavy"),
    [
        ("ticketgate.codecs", ("faust", "aiokafka", "onnxruntime", "redis", "numpy")),
        ("ticketgate.agents.policy", ("faust", "aiokafka", "onnxruntime", "redis", "numpy")),
        ("ticketgate.agents.workbench.funnel.cases", ("faust", "aiokafka", "onnxruntime", "redis", "numpy")),
        ("ticketgate.streams.cli.funnel.cases", ("faust", "aiokafka", "onnxruntime", "redis", "numpy")),
        ("ticketgate.streams.cli.deciding.check", ("faust", "aiokafka", "onnxruntime", "redis", "numpy")),
        ("ticketgate.streams.cli.running.worker", ("faust", "onnxruntime")),
    ],
)
def test_a_package_loads_no_more_than_it_needs(package: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys, {package}; print([name for name in {heavy!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_only_one_file_imports_faust() -> None:
    importing = [
        path.relative_to(ROOT)
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^\s*(from|import) (faust|mode)\b", path.read_text(), re.MULTILINE)
    ]

    assert importing == [Path("streams/process/app.py")]


# A position counted by hand is one that the next change counts wrong.
POSITIONS = re.compile(r"\b(KEYS|ARGV)\b|\.(eval|evalsha|fcall|script_load|register_script)\(")


def test_scripts_read_and_are_called_by_name() -> None:
    found = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if POSITIONS.search(path.read_text())
    }

    assert found == {"store/script.py"}


@pytest.mark.parametrize(
    "line", ["redis.call('GET', KEYS[1])", "unpack(ARGV, 6)", "pipeline.eval(text, 2, *names)"]
)
def test_a_position_counted_by_hand_is_found(line: str) -> None:
    assert POSITIONS.search(line)
