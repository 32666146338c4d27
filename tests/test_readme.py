"""What the README tells a reader to type runs from a clean folder, in its order, and prints what it says."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from ticketgate.streams.cli.exit_codes import MEANINGS
from ticketgate.streams.cli.running.examples import example_files
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.ports import free_port
from ticketgate.streams.parts.valkey import Valkey

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
SCRIPTS = Path(sys.executable).parent
# A command of the README that has to say no, where the page says so.
FINDINGS = 3
SAYS_NO = (
    "ticketgate check answers.json",
    "ticketgate policy diff",
    "ticketgate dead-letter replay mend.jsonl",
)
DOCUMENTED_WEB_PORT = "6066"
# However busy the machine: what is waited for comes, or never.
LIMIT_S = 240


@dataclass
class Shell:
    """A reader's terminal: a clean folder, `ticketgate` and `python` on its path, and the parts where they are."""

    folder: Path
    environment: dict[str, str]
    web_port: int
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def type(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line to its end, as bash does; a `cd` is kept."""
        if line.startswith("export "):
            self.environment |= dict(each.split("=", 1) for each in line.split()[1:])
            return subprocess.CompletedProcess(line, 0, "", "")
        if line.startswith("cd "):
            self.folder = self.folder / line[3:].strip()
            assert self.folder.is_dir(), line
            return subprocess.CompletedProcess(line, 0, "", "")
        line = line.replace(DOCUMENTED_WEB_PORT, str(self.web_port))
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )

    def start(self, line: str) -> None:
        """Leave a line running, as in a terminal of its own; wait until it is ready, if its port is known."""
        log = self.folder / f"terminal-{len(self.running)}.log"
        with log.open("wb") as out:
            self.running.append(
                subprocess.Popen(
                    ["bash", "-c", f"exec env {line}"],
                    cwd=self.folder,
                    env=self.environment,
                    stdout=out,
                    stderr=out,
                )
            )
        wait_for(lambda: is_ready(log), log)

    def end(self) -> None:
        """End what runs; each must end well."""
        for each in self.running:
            each.send_signal(signal.SIGTERM)
        codes = [each.wait(timeout=LIMIT_S) for each in self.running]
        self.running.clear()
        assert set(codes) <= {0}, codes


def is_ready(log: Path) -> bool:
    """Whether the worker that writes this log says at its web port that it is ready."""
    found = re.search(r"web port (http://\S+)", log.read_text())
    try:
        return bool(found) and urllib.request.urlopen(f"{found[1]}/readyz", timeout=5).status == 200  # noqa: S310
    except OSError:
        return False


def wait_for(condition: object, log: Path) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each line that a block types, and what it shows that it prints."""
    line, shown = "", list[str]()
    for each in block.splitlines():
        if each.startswith("$ "):
            if line:
                yield line, shown
            line, shown = each[2:], []
        else:
            shown.append(each)
    yield line, shown


@pytest.fixture
def shell(kafka: Kafka, valkey: Valkey, tmp_path: Path) -> Iterator[Shell]:
    web_port = free_port()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TICKETGATE_")}
    made = Shell(
        tmp_path / "clean",
        {
            **kept,
            "PATH": f"{SCRIPTS}:{os.environ['PATH']}",
            "TICKETGATE_KAFKA": kafka.bootstrap,
            "TICKETGATE_REDIS": valkey.url,
            "TICKETGATE_WEB_PORT": str(web_port),
        },
        web_port,
    )
    made.folder.mkdir()
    try:
        yield made
    finally:
        for each in made.running:
            if each.poll() is None:
                each.kill()
                each.wait()


@pytest.mark.kafka
@pytest.mark.redis
def test_every_command_of_the_readme_runs_in_its_order_from_a_clean_folder(shell: Shell) -> None:
    typed = [each for kind, block in BLOCKS if kind == "console" for each in commands(block)]
    assert len(typed) > 30

    for line, shown in typed:
        if re.search(r"\bticketgate worker\b", line):
            shell.start(line)
            continue
        if shell.folder.name == "first-hour":
            point_at_the_parts(shell)
        ran = shell.type(line)
        wanted = FINDINGS if line.startswith(SAYS_NO) else 0
        assert ran.returncode == wanted, f"{line}\n{ran.stdout}\n{ran.stderr}"
        if shown:
            assert ran.stdout.splitlines() == shown, line
    shell.end()


def point_at_the_parts(shell: Shell) -> None:
    """The example's funnel file names a Redis at its usual address, and the test's has another."""
    path = shell.folder / "support.funnel.toml"
    path.write_text(
        path.read_text().replace("redis://127.0.0.1:6379/0", shell.environment["TICKETGATE_REDIS"])
    )


@pytest.mark.parametrize("block", [block for kind, block in BLOCKS if kind == "sh"])
def test_what_is_typed_outside_of_ticketgate_is_there(block: str) -> None:
    parsed = subprocess.run(["bash", "-n", "-c", block], capture_output=True, text=True, check=False)

    assert parsed.returncode == 0, parsed.stderr
    makefile, compose = (ROOT / "Makefile").read_text(), (ROOT / "docker-compose.yml").read_text()
    for target in re.findall(r"^make ([a-z-]+)", block, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for service in re.findall(r"docker compose build (\w+)|--scale (\w+)=", block):
        assert re.search(rf"^  {''.join(service)}:", compose, re.MULTILINE), service
    for image in re.findall(r"(ticketgate:[0-9.]+)", block):
        assert f"image: {image}" in compose
    assert not re.search(r"^\$ |\.venv/bin/ticketgate", block, re.MULTILINE)


def test_what_is_typed_once_installed_is_on_the_path_of_any_install() -> None:
    consoles = "".join(block for kind, block in BLOCKS if kind == "console")

    assert ".venv" not in consoles
    assert "streams/" not in consoles


@pytest.mark.kafka
def test_the_java_of_the_examples_compiles_against_kafkas_client(tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("no javac")
    jars = ROOT / "deploy" / "kafka" / "target" / "lib"

    ran = subprocess.run(
        ["javac", "-cp", f"{jars}/*", "-d", tmp_path, ROOT / "streams/examples/Consume.java"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr


def test_the_policy_that_the_readme_shows_loads(tmp_path: Path) -> None:
    (policy,) = [block for kind, block in BLOCKS if kind == "toml" and "kafka_security" not in block]
    (tmp_path / "policy.toml").write_text(policy)
    (tmp_path / "answers.json").write_text("{}")

    ran = subprocess.run(
        [SCRIPTS / "ticketgate", "check", tmp_path / "answers.json", "--policy", tmp_path / "policy.toml"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == FINDINGS, ran.stderr


def test_the_proposal_that_the_readme_shows_is_the_example() -> None:
    (shown,) = [block for kind, block in BLOCKS if kind == "json"]

    assert shown == dict(example_files())["proposals.jsonl"].read_text()


def test_the_settings_that_the_readme_shows_are_taken(tmp_path: Path) -> None:
    (given,) = [block for kind, block in BLOCKS if kind == "toml" and "kafka_security" in block]
    (tmp_path / "ticketgate.toml").write_text(given)

    loaded = load_settings(
        environment={
            "TICKETGATE_CONFIG": str(tmp_path / "ticketgate.toml"),
            "TICKETGATE_KAFKA_PASSWORD": "s3cret",
        }
    )

    assert loaded.settings.kafka_security == "sasl_ssl"


def test_links_in_the_readme_lead_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]

    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_the_table_of_exit_codes_is_the_one_in_the_code() -> None:
    section = README[README.index("## Exit codes") :]
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", section, re.MULTILINE)

    assert {int(code): meaning for code, meaning in rows} == MEANINGS


def test_each_example_is_named_in_the_page_beside_it() -> None:
    files = dict(example_files())
    page = files["README.md"].read_text()

    assert not [name for name in files if name != "README.md" and f"`{name}`" not in page]


def test_the_readme_leads_nobody_to_a_key_that_another_example_has() -> None:
    texts = [path.read_text() for name, path in example_files() if name != "README.md"]
    texts += [block for kind, block in BLOCKS if kind in ("console", "sh")]
    ids = [found for text in texts for found in set(re.findall(r'"id": "(T-\d+)"', text))]
    groups = [found for text in texts for found in re.findall(r'group[._]id(?:=|", )"([\w-]+)"', text)]

    assert len(ids) == len(set(ids)) >= 6
    assert len(groups) == len(set(groups)) == 2
