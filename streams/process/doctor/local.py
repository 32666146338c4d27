"""What can be looked at on this machine: versions, policy, funnel file, model, web port."""

from __future__ import annotations

import asyncio
import errno
import json
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from importlib import metadata

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from ticketgate.agents.plural import counted
from ticketgate.agents.policy import Policy
from ticketgate.agents.scoring import ScorerUnavailable
from ticketgate.agents.scoring.scorer import Closable
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.process.doctor.finding import MADE_FOR_PEOPLE, Finding, fault_of
from ticketgate.streams.process.preflight import (
    require_funnel,
    require_keys_in_force,
    require_policy,
    require_what_a_funnel_names,
)
from ticketgate.streams.process.supervising.cores import processes_of, usable_cores
from ticketgate.streams.roles.decide.scorers import require_scorer

PROJECT = "ticketgate"
# A worker of ours that is there answers at once; what is not a worker may hold the line.
ASK_TIMEOUT_S = 2.0
PROBE = Ticket(id="doctor", state="The printer prints blank labels since the update.")


def look_at_versions(
    *, python: tuple[int, ...] = sys.version_info[:3], version_of: Callable[[str], str] = metadata.version
) -> list[Finding]:
    """Python and the libraries, against what this version of ticketgate was made for."""
    told = metadata.metadata(PROJECT)
    ours, release = version_of(PROJECT), ".".join(map(str, python))
    wrong: list[Finding] = []
    if not SpecifierSet(told["Requires-Python"] or "").contains(release):
        what = f"Python {release} is not one that ticketgate {ours} was made for ({told['Requires-Python']})"
        wrong.append(Finding("versions", "fault", what, "install it into a Python that is"))
    for line in metadata.requires(PROJECT) or ():
        wanted = Requirement(line)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        try:
            found = version_of(wanted.name)
        except metadata.PackageNotFoundError:
            found = ""
        if not found or not wanted.specifier.contains(found, prereleases=True):
            what = (
                f"{wanted.name} is {found or 'not installed'}, and ticketgate {ours} wants {wanted.specifier}"
            )
            remedy = f"pip install '{wanted.name}{wanted.specifier}', or take the pinned constraints"
            wrong.append(Finding("versions", "fault", what, remedy))
    if wrong:
        return wrong
    named = ", ".join(f"{name} {version_of(name)}" for name in ("aiokafka", "redis", "faust-streaming"))
    return [Finding("versions", "ok", f"ticketgate {ours}, Python {release}, {named}")]


def look_at_policy(settings: Settings) -> tuple[list[Finding], Policy | None]:
    """The policy file, and the policy if it loads."""
    try:
        policy = require_policy(settings)
    except MADE_FOR_PEOPLE as err:
        return [fault_of("policy", err)], None
    asked, rules = counted(len(policy.ids), "question"), counted(len(policy.rules), "rule")
    what = f"{settings.policy}: {policy.name} {policy.version}, {asked}, {rules}"
    return [Finding("policy", "ok", what)], policy


def look_at_console_keys(settings: Settings) -> list[Finding]:
    """The keys that settlements may be signed by."""
    try:
        keys = require_keys_in_force(settings).keys
    except MADE_FOR_PEOPLE as err:
        return [fault_of("console keys", err)]
    return [Finding("console keys", "ok", f"{settings.console_keys}: {counted(len(keys), 'key')}")]


async def look_at_funnel(settings: Settings) -> list[Finding]:
    """The funnel file, for the roles that need one; nobody whom it names is asked."""
    try:
        await require_what_a_funnel_names(settings)
        file = require_funnel(settings)
    except MADE_FOR_PEOPLE as err:
        return [fault_of("funnel", err)]
    return [Finding("funnel", "ok", f"{file.path}: {counted(len(file.tools), 'tool')}")]


def look_at_model(settings: Settings, questions: Mapping[str, Question]) -> list[Finding]:
    """The scorer, opened and asked. questions: the policy's."""
    try:
        scorer = require_scorer(settings)
    except MADE_FOR_PEOPLE as err:
        return [fault_of("model", err)]
    try:
        start = time.monotonic()
        (scores,) = scorer.score([PROBE], questions)
        took_ms = (time.monotonic() - start) * 1000
    except ScorerUnavailable as err:
        remedy = "start the server, or set TICKETGATE_SCORER to another"
        return [Finding("model", "fault", f"TICKETGATE_SCORER: {err}", remedy)]
    finally:
        if isinstance(scorer, Closable):
            scorer.close()
    if scores.failure is not None:
        remedy = "see what the server takes, and what the policy asks"
        return [Finding("model", "fault", f"TICKETGATE_SCORER: {scores.failure.reason}", remedy)]
    asked = counted(len(questions), "question")
    return [Finding("model", "ok", f"{scorer.model.id} answered {asked} in {took_ms:.0f} ms")]


def look_at_processes(settings: Settings) -> list[Finding]:
    """How many processes a worker would start, against what this machine has room for."""
    cores, processes = usable_cores(), processes_of(settings)
    threads = processes * settings.scorer_threads
    each = counted(settings.scorer_threads, "thread")
    what = f"{counted(processes, 'worker')} of {each} on {counted(cores, 'core')}"
    if threads > cores and threads > 1:
        remedy = "set it to auto, or TICKETGATE_SCORER_THREADS to less"
        return [Finding("cores", "warning", f"TICKETGATE_PROCESSES: {what}, which they share", remedy)]
    return [Finding("cores", "ok", what)]


async def look_at_port(settings: Settings) -> list[Finding]:
    """Whether a worker could listen here, or one of ours does."""
    if settings.web_port == 0:
        return [Finding("port", "ok", "a free one is taken (TICKETGATE_WEB_PORT=0)")]
    where = f"{settings.web_bind}:{settings.web_port}"
    try:
        _bind(settings.web_bind, settings.web_port)
    except OSError as err:
        if err.errno == errno.EADDRINUSE:
            return [await asyncio.to_thread(_who_listens, settings, where)]
        setting = "TICKETGATE_WEB_PORT" if err.errno == errno.EACCES else "TICKETGATE_WEB_BIND"
        remedy = "set a port above 1023" if err.errno == errno.EACCES else "set an address of this machine"
        return [
            Finding("port", "fault", f"{setting}: cannot listen on {where} ({err.strerror or err})", remedy)
        ]
    return [Finding("port", "ok", f"{where} is free")]


def _bind(host: str, port: int) -> None:
    """Raises OSError where nobody could listen."""
    kind, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(kind, socket.SOCK_STREAM) as probe:
        # As a server's socket: a port whose last connections are still being closed is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


def _who_listens(settings: Settings, where: str) -> Finding:
    try:
        told = json.loads(_readyz(settings))
        ready, waiting = told["ready"], told["waiting"]
    except (OSError, ValueError, KeyError, TypeError):
        what = f"TICKETGATE_WEB_PORT: {where} is taken, and not by a worker of ours"
        return Finding("port", "fault", what, "set another port, or 0 for a free one")
    processes = told.get("processes")
    of = f" with {len(processes)} processes" if isinstance(processes, dict) else ""
    if ready:
        return Finding("port", "ok", f"{where}: a worker of ours{of} listens there, and is ready")
    reasons = "; ".join(f"{part}: {reason}" for part, reason in waiting.items())
    what = f"{where}: a worker of ours{of} listens there, and is not ready ({reasons})"
    return Finding("port", "warning", what, "mend what it names; see /readyz")


def _readyz(settings: Settings) -> bytes:
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.web_bind, settings.web_bind)  # noqa: S104
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{host}:{settings.web_port}/readyz", timeout=ASK_TIMEOUT_S) as response:
            return bytes(response.read(2**20))
    except urllib.error.HTTPError as err:
        return err.read(2**20)
