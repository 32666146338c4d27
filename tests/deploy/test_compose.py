"""The compose file, as far as it can be judged without a Docker engine.

The schema is the Compose specification's, as check-jsonschema ships it; with Docker's plugin, `docker compose config`
judges it too.
"""

import base64
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ticketgate.streams.config.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
SERVICES: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]


def has_compose_plugin() -> bool:
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0


def test_it_is_valid_by_the_specification() -> None:
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        str(COMPOSE),
    ]

    checked = subprocess.run(command, capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.skipif(not has_compose_plugin(), reason="needs Docker's compose plugin")
def test_docker_accepts_it() -> None:
    checked = subprocess.run(
        ["docker", "compose", "-f", str(COMPOSE), "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stderr


def test_nothing_is_published_beyond_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]

    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports), ports


def test_workers_scale() -> None:
    worker = SERVICES["worker"]

    assert "container_name" not in worker
    assert "ports" not in worker


def test_what_people_decide_is_taken_where_there_are_keys_and_else_nobody_is_asked_for_them() -> None:
    settler, worker = SERVICES["settler"], SERVICES["worker"]

    assert settler["command"] == ["worker", "--role", "settle"]
    assert settler["profiles"] == ["review"]
    assert "profiles" not in worker
    assert "TICKETGATE_CONSOLE_KEYS" not in worker["environment"]
    mounts = {each["target"]: each for each in settler["volumes"]}
    keys = settler["environment"]["TICKETGATE_CONSOLE_KEYS"]
    assert keys.rpartition("/")[0] in mounts
    assert all(each["read_only"] for each in mounts.values())
    assert settler["depends_on"] == worker["depends_on"]
    assert {name: settler["environment"][name] for name in worker["environment"]} == worker["environment"]


def test_the_console_asks_who_comes_in_and_keeps_what_it_alone_knows() -> None:
    console, settler = SERVICES["console"], SERVICES["settler"]
    environment = console["environment"]
    # The person who starts it names the key.
    given = {name: re.sub(r"^\$\{\w+:-(.+)\}$", r"\1", str(value)) for name, value in environment.items()}

    settings = load_settings(environment=given).settings

    assert console["command"] == ["console"]
    assert console["profiles"] == ["console"]
    assert console["ports"] == [f"127.0.0.1:{settings.console_port}:{settings.console_port}"]
    assert f":{settings.console_port}/healthz" in console["healthcheck"]["test"][-1]
    # Beyond the container's loopback it does not start without people.
    assert settings.console_bind == "0.0.0.0"  # noqa: S104 - of the container
    mounts = {each["target"]: each for each in console["volumes"] if isinstance(each, dict)}
    for path in (settings.console_users, settings.console_keys, settings.policy):
        assert path is not None
        assert {str(path), str(path.parent)} & set(mounts), path
    assert all(each["read_only"] for each in mounts.values())
    assert environment["TICKETGATE_CONSOLE_KEYS"] == settler["environment"]["TICKETGATE_CONSOLE_KEYS"]
    assert mounts.items() >= {each["target"]: each for each in settler["volumes"]}.items()
    (kept,) = [each for each in console["volumes"] if isinstance(each, str)]
    volume, _, folder = kept.partition(":")
    assert volume in yaml.safe_load(COMPOSE.read_text())["volumes"]
    assert settings.review_view.parent == Path(folder)
    assert re.search(rf"install -d -o 10001 .*{folder}$", DOCKERFILE.read_text(), flags=re.MULTILINE)


def test_a_worker_starts_after_what_it_needs() -> None:
    conditions = {name: need["condition"] for name, need in SERVICES["worker"]["depends_on"].items()}

    assert conditions == {
        "kafka": "service_healthy",
        "redis": "service_healthy",
        "topics": "service_completed_successfully",
    }
    assert all("healthcheck" in SERVICES[name] for name in ("kafka", "redis", "worker"))


def test_claims_are_on_disk_before_they_count_and_are_never_evicted() -> None:
    command = SERVICES["redis"]["command"]
    options = dict(zip(command[1::2], command[2::2], strict=True))

    assert options["--appendonly"] == "yes"
    assert options["--appendfsync"] == "always"
    assert options["--maxmemory-policy"] == "noeviction"


def test_every_file_that_it_and_the_image_name_exists() -> None:
    text = DOCKERFILE.read_text()
    sources = [
        name
        for line in re.findall(r"^COPY (?!--from)(.*)$", text, flags=re.MULTILINE)
        for name in line.split()[:-1]
    ]
    policy = SERVICES["worker"]["volumes"][0]["source"]

    missing = [name for name in sources if not (ROOT / name).exists()]

    assert not missing
    assert (ROOT / policy.removeprefix("${POLICY:-").removesuffix("}")).is_file()
    assert (ROOT / SERVICES["worker"]["build"]["dockerfile"]).is_file()


def test_its_kafka_is_the_one_that_the_tests_run_on() -> None:
    version = re.search(r"<kafka.version>(.+)</kafka.version>", (ROOT / "deploy/kafka/pom.xml").read_text())

    assert version is not None
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version[1]}"


def test_the_cluster_id_is_one_that_kafka_takes() -> None:
    cluster_id = SERVICES["kafka"]["environment"]["CLUSTER_ID"]

    assert len(base64.urlsafe_b64decode(cluster_id + "==")) == 16


def test_the_image_does_not_run_as_root() -> None:
    stages = DOCKERFILE.read_text().split("\nFROM ")

    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", stages[-1], flags=re.MULTILINE)
