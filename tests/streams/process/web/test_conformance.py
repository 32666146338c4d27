"""`jevcompat test` and the official client against `ticketgate serve` with the default model.

The reports of `make conformance` are kept beside this file, in conformance/.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.streams.cli.conftest import command

jevcompat = pytest.importorskip(
    "jevcompat.runner", reason="no jevcompat: install ticketgate[conformance] (make conformance does)"
)
report = pytest.importorskip("jevcompat.report")

pytestmark = pytest.mark.conformance

KEPT = Path(__file__).parent / "conformance"
# Set by `make conformance`: write the reports anew.
KEEP = "KEEP_CONFORMANCE"
KEY = "the-key"
# Of each pair the one that the other mode exercises.
# errors.shape: the suite brings about an error that is no 422 by naming a model that is not there, and any name is
# answered by the default model; test_an_error_has_the_protocols_shape brings one about itself.
NOT_APPLICABLE = {
    None: {"auth.bearer", "auth.missing", "auth.invalid", "errors.shape"},
    KEY: {"auth.ignored-when-off", "errors.shape"},
}


@contextmanager
def process_serving(key: str | None) -> Iterator[str]:
    """`ticketgate serve` as a process of its own; its address."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TICKETGATE_")}
    if key is not None:
        environment["TICKETGATE_WEB_KEYS"] = f"another, {key}"
    server = subprocess.Popen(
        command("serve", "--web-port", "0"), stderr=subprocess.PIPE, text=True, env=environment
    )
    assert server.stderr is not None
    try:
        said = []
        for line in server.stderr:
            said.append(line)
            if "web port http://" in line:
                yield line.split("web port ")[1].strip()
                break
        else:
            pytest.fail(f"serve ended: {said}")
    finally:
        server.terminate()
        _, rest = server.communicate(timeout=30)
    assert server.returncode == 0, rest
    assert "Traceback" not in rest


@pytest.mark.parametrize("key", [None, KEY], ids=["without a key", "with a key"])
def test_every_must_and_every_should_holds(key: str | None) -> None:
    with process_serving(key) as url:
        found = jevcompat.run(url, key=key)

    not_passed = {
        result.id: [finding.message for finding in result.findings] or result.reason
        for result in found.results
        if result.status != "pass"
    }
    if os.environ.get(KEEP):
        keep(found, "with-key" if key else "without-key")
    assert found.verdict == "conformant", (found.verdict, not_passed)
    assert set(not_passed) == NOT_APPLICABLE[key], not_passed


def test_an_error_has_the_protocols_shape() -> None:
    from jevcompat.client import Client
    from jevcompat.validate import validate_error_shape

    with process_serving(None) as url:
        response = Client(url).request(
            "POST",
            "/v1/systemone",
            b"{}",
            headers={"Content-Encoding": "gzip", "Content-Type": "application/json"},
        )

    assert response.status == 415
    assert validate_error_shape(response) == []


def keep(found: Any, name: str) -> None:
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{name}.md").write_text(report.markdown(found, title=f"ticketgate serve, {name}"))


def test_the_official_client_reads_every_answer_type() -> None:
    sdk = pytest.importorskip("typesafe_sdk")
    with process_serving(None) as url, sdk.TypeSafeClient(api_key="any", base_url=url) as client:
        answered = client.system_one(
            model="jev-latest",
            state={"subject": "Charged twice", "body": "My card was charged twice. Fix this today."},
            questions={
                "urgent": sdk.Noul(instructions="Does the customer request urgent action?"),
                "route": sdk.Choice(
                    instructions="Which team?",
                    criteria={"billing": "payments", "technical": "bugs", "other": None},
                ),
                "anger": sdk.Score(instructions="How angry?", criteria=["calm", "annoyed", "angry"]),
            },
        )

    assert 0 <= answered.nouls["urgent"].noul <= 1
    assert answered.choices["route"].choice == "billing"
    assert sum(answered.choices["route"].probabilities.values()) == pytest.approx(1)
    assert 0 <= answered.scores["anger"].score <= 2
    assert answered.scores["anger"].legend == {0: "calm", 1: "annoyed", 2: "angry"}
    assert answered.usage.input_tokens > 0


def test_the_command_prints_what_the_endpoint_sends(tmp_path: Path) -> None:
    request = {"state": "hello", "questions": {"a": {"type": "noul", "instructions": "Is it a greeting?"}}}
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request))

    printed = subprocess.run(
        [*command("run", "--request", str(file), "--json")], capture_output=True, check=True, timeout=60
    )
    with process_serving(None) as url:
        sent = subprocess.run(
            [sys.executable, "-c", FETCH, url, file], capture_output=True, check=True, timeout=60
        )

    assert json.loads(printed.stdout) == json.loads(sent.stdout)


FETCH = """
import sys, urllib.request as u
data = open(sys.argv[2], "rb").read()
asked = u.Request(sys.argv[1] + "/v1/systemone", data, {"Content-Type": "application/json"})
print(u.urlopen(asked, timeout=30).read().decode())
"""
