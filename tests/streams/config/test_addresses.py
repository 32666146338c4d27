"""What is said of an address, URL or path that cannot be right, and whose variables are not ours."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings, load_settings
from ticketgate.streams.lane.opening.topic_faults import retention_fault

KNOWN_WORD = "s3cr3t-w0rd"

WRONG = [
    ("KAFKA", "localhost:abc"),
    ("KAFKA", "127.0.0.1:99999"),
    ("KAFKA", "127.0.0.1:0"),
    ("KAFKA", '"127.0.0.1:9092"'),
    ("KAFKA", "'127.0.0.1:9092'"),
    ("KAFKA", "127.0.0.1:9092,"),
    ("KAFKA", "kafka://127.0.0.1:9092"),
    ("KAFKA", "PLAINTEXT://127.0.0.1:9092"),
    ("KAFKA", f"alice:{KNOWN_WORD}@127.0.0.1:9092"),
    ("KAFKA", ":9092"),
    ("KAFKA", "a b:9092"),
    ("KAFKA", "::1:9092"),
    ("REDIS", '"redis://127.0.0.1:6379/0"'),
    ("REDIS", "127.0.0.1:6379"),
    ("REDIS", "localhost:6379"),
    ("REDIS", "http://127.0.0.1:6379"),
    ("REDIS", "redis://127.0.0.1:abc/0"),
    ("REDIS", "redis://127.0.0.1:99999/0"),
    ("REDIS", "redis://127.0.0.1:6379/zero"),
    ("REDIS", "redis://127.0.0.1:6379/0?foo=1"),
    ("REDIS", f"redis://:{KNOWN_WORD}/x@127.0.0.1:6379/0"),
    ("REDIS", f"redis://:{KNOWN_WORD}#x@127.0.0.1:6379/0"),
    ("REDIS", f"redis://:{KNOWN_WORD}?x@127.0.0.1:6379/0"),
    ("REDIS", f"redis://:{KNOWN_WORD}:{KNOWN_WORD}@127.0.0.1:6379 /0"),
    ("REDIS", f"redis://:{KNOWN_WORD}[@127.0.0.1:6379/0"),
    ("REDIS", f"redis+sentinel://:{KNOWN_WORD}/x@127.0.0.1:26379/main/0"),
    ("REDIS", "redis+sentinel://127.0.0.1:abc/main"),
    ("REDIS", "redis:///0"),
    ("WEB_BIND", "127.0.0.1:6066"),
    ("WEB_BIND", "http://127.0.0.1"),
    ("WEB_BIND", '"127.0.0.1"'),
    ("SCORER", "remote:localhost:8000"),
    ("SCORER", "remote:http://localhost:abc"),
    ("SCORER", f"remote:http://alice:{KNOWN_WORD}@localhost:99999"),
    ("POLICY", '"policy.toml"'),
    ("MODEL", "a\x00b"),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_an_address_that_cannot_be_right_is_one_line_that_names_the_setting(name: str, value: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load_settings(environment={f"TICKETGATE_{name}": value})

    said = str(refused.value)
    assert said.startswith(f"TICKETGATE_{name}: ")
    assert "\n" not in said
    assert KNOWN_WORD not in said
    assert KNOWN_WORD[:4] not in said


RIGHT = [
    ("KAFKA", "127.0.0.1:9092"),
    ("KAFKA", "a.example:9092,b.example:9093"),
    ("KAFKA", "a.example:9092, b.example:9093"),
    ("KAFKA", "kafka"),
    ("KAFKA", "[::1]:9092"),
    ("KAFKA", "my_kafka-0.svc.cluster.local.:9092"),
    ("REDIS", "redis://127.0.0.1:6379/0"),
    ("REDIS", "redis://127.0.0.1"),
    ("REDIS", "redis://:p%40ss%2Fword@127.0.0.1:6379/2"),
    ("REDIS", "rediss://user:word@[::1]:6379?ssl_cert_reqs=none"),
    ("REDIS", "unix:///run/redis.sock?db=2"),
    ("REDIS", "redis://127.0.0.1:6379?db=2&health_check_interval=5"),
    ("REDIS", "redis+sentinel://:word@a:26379,b/main/2?sentinel_password=x"),
    ("WEB_BIND", "0.0.0.0"),  # noqa: S104
    ("WEB_BIND", "::"),
    ("WEB_BIND", "localhost"),
    ("SCORER", "remote:http://localhost:8000/v1"),
    ("SCORER", "onnx"),
    ("POLICY", "my policy.toml"),
]


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_an_address_that_can_be_right_is_taken(name: str, value: str) -> None:
    load_settings(environment={f"TICKETGATE_{name}": value})


@pytest.mark.parametrize("name", ["MODEL", "POLICY", "FUNNEL", "KAFKA_CA"])
def test_an_empty_path_is_unset(name: str) -> None:
    loaded = load_settings(environment={f"TICKETGATE_{name}": ""})

    assert getattr(loaded.settings, name.lower()) is None


ports = st.integers(1, 65_535)
services = st.from_regex(r"(WEB|X|KAFKA_2|MY_OWN)?", fullmatch=True)


@st.composite
def service_variables(draw: st.DrawFn) -> dict[str, str]:
    """What Kubernetes gives a pod for a Service whose name begins with `ticketgate`."""
    service, address, port = draw(services), draw(st.ip_addresses(v=4)), draw(ports)
    kind = draw(st.sampled_from(["TCP", "UDP", "SCTP"]))
    name = "TICKETGATE" + (f"_{service}" if service else "")
    url = f"{kind.lower()}://{address}:{port}"
    return {
        f"{name}_SERVICE_HOST": str(address),
        f"{name}_SERVICE_PORT": str(port),
        f"{name}_SERVICE_PORT_HTTP": str(port),
        f"{name}_PORT": url,
        f"{name}_PORT_{port}_{kind}": url,
        f"{name}_PORT_{port}_{kind}_PROTO": kind.lower(),
        f"{name}_PORT_{port}_{kind}_PORT": str(port),
        f"{name}_PORT_{port}_{kind}_ADDR": str(address),
    }


@given(service_variables())
def test_what_kubernetes_says_of_services_is_no_setting(variables: dict[str, str]) -> None:
    loaded = load_settings(environment={**variables, "TICKETGATE_GROUP": "mine"})

    assert loaded.settings == Settings.model_validate({"group": "mine"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TICKETGATE_SERVICE_HOST", "kafka.example"),
        ("TICKETGATE_SERVICE_PORT", "http"),
        ("TICKETGATE_PORT", "6066"),
        ("TICKETGATE_PORT_6066_TCP_PROTO", "http"),
        ("TICKETGATE_WEB_SERVICE_HOSTS", "10.0.0.1"),
        ("TICKETGATE_WEB_PORT", "tcp://web"),
        ("TICKETGATE_WEB_PORT", "http://10.0.0.1:80"),
    ],
)
def test_what_only_resembles_that_is_refused_as_before(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=name):
        load_settings(environment={name: value})


def test_a_web_port_is_still_a_setting() -> None:
    assert load_settings(environment={"TICKETGATE_WEB_PORT": "6067"}).settings.web_port == 6067


@pytest.mark.parametrize("role", ["decide", "propose"])
def test_claims_outlive_what_a_topic_of_kafkas_own_defaults_keeps(role: str) -> None:
    week_ms = str(round(timedelta(days=7).total_seconds() * 1000))

    config = {"retention.ms": week_ms, "segment.ms": week_ms}

    assert retention_fault(role_terms(role, Settings()), config) is None  # type: ignore[arg-type]
