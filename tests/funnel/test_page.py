"""The funnel's page shows what is so."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

from ticketgate.agents.effects.memory import MemoryLedger
from ticketgate.agents.funnel.cases import read_cases, run_cases
from ticketgate.agents.funnel.lint import lint_catalogue
from ticketgate.agents.funnel.load import parse_catalogue

from .support import PAYMENTS

PAGE = (Path(__file__).parents[2] / "agents" / "funnel" / "README.md").read_text(encoding="utf-8")


def block(kind: str) -> str:
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_the_shown_command_prints_what_is_shown() -> None:
    typed, _, printed = block("console").partition("\n")
    name, *arguments = typed.removeprefix("$ ").split()

    ran = subprocess.run(
        [Path(sys.executable).with_name(name), *arguments], capture_output=True, text=True, check=True
    )

    assert ran.stdout == printed


def test_the_shown_catalogue_loads_and_has_no_findings() -> None:
    assert lint_catalogue(parse_catalogue(block("toml"))) == ()


def test_the_shown_case_comes_out_as_it_says() -> None:
    line = json.dumps(json.loads(block("json")))

    (result,) = asyncio.run(
        run_cases(read_cases(line, source="page"), catalogue=PAYMENTS, ledger=MemoryLedger())
    )

    assert result.faults == ()
