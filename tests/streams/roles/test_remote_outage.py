"""A remote model's server that is away pauses the partition: no ticket goes to review for it, and none is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from ticketgate.streams.parts.ports import free_port

from ...support.deployment import ticket
from ..conftest import NewDeployment

mock = pytest.importorskip("jevcompat.mock", reason="no jevcompat: install ticketgate[conformance]")

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

POLICY = """
name = "remote"
version = "1"
[questions.urgent]
type = "noul"
instructions = "Is it urgent?"
[[rules]]
any_of = ["urgent", "!urgent"]
"""


@contextmanager
def back_at(port: int) -> Iterator[None]:
    """The reference server on this port."""
    server = mock.make_server(mock.MockConfig(), port=port)
    thread = threading.Thread(target=server.serve_forever, name="reference server", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


@contextmanager
def page_at(port: int) -> Iterator[None]:
    """A page of maintenance on this port, with a status that says nothing of it."""

    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = b"<html>maintenance</html>"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Page)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="page", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def test_tickets_wait_behind_a_page_of_maintenance_and_none_goes_to_review_for_it(
    deploy: NewDeployment, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    port = free_port()
    gate = deploy(policy=str(policy), scorer=f"remote:http://127.0.0.1:{port}", partitions="1")
    worker = gate.start_worker()
    worker.wait_ready()

    with page_at(port):
        gate.send([ticket(f"T-{number}") for number in range(20)])
        worker.wait_for(lambda state: "cannot be read" in state.get("waiting", {}).get("scorer", ""))
    with back_at(port):
        records = [json.loads(r.value or b"") for r in gate.wait_for_records(20, "dispatch", "review")]

    assert {record["verdict"]["status"] for record in records} == {"accept"}


def test_tickets_wait_while_the_server_is_away_and_go_on_when_it_is_back(
    deploy: NewDeployment, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(POLICY)
    port = free_port()
    gate = deploy(policy=str(policy), scorer=f"remote:http://127.0.0.1:{port}", partitions="1")
    worker = gate.start_worker()
    worker.wait_ready()

    gate.send([ticket("A"), ticket("B")])

    waiting = worker.wait_for(lambda state: "scorer" in state.get("waiting", {}))
    assert f"http://127.0.0.1:{port}/v1/systemone: no connection" in waiting["waiting"]["scorer"]
    with back_at(port):
        records = [json.loads(r.value or b"") for r in gate.wait_for_records(2, "dispatch", "review")]
        worker.wait_ready()
        models, _ = worker.get("/v1/models")

    assert models == 200
    assert {record["ticket_id"]: record["verdict"]["status"] for record in records} == {
        "A": "accept",
        "B": "accept",
    }
    assert {record["model"]["id"] for record in records} == {"jevcompat-mock-0.1"}
    assert 'ticketgate_lane_reopens_total{cause="scorer_away"}' in worker.get("/metrics")[1]
