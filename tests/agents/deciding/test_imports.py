"""What reading and checking a policy costs to start: no inference engine, no broker client, no Redis client."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "onnxruntime", "tokenizers", "faust", "aiokafka", "redis", "aiohttp")


@pytest.mark.parametrize(
    "module",
    [
        "ticketgate.agents.policy",
        "ticketgate.agents.workbench.policy.check",
        "ticketgate.agents.deciding.decide",
    ],
)
def test_deciding_starts_light(module: str) -> None:
    code = f"import sys, {module}; print(sorted(set(sys.modules) & set({HEAVY!r})))"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"
