"""`ticketgate funnel --compare`: the experiment with a proposer of one's own."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from ticketgate.streams.cli.output import print_json, say
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.agents.funnel.catalogue import Catalogue
    from ticketgate.agents.workbench.funnel.cases import ReadCase
    from ticketgate.agents.workbench.funnel.comparing import Answer, Propose
    from ticketgate.codecs.values.strict import JsonValue

Command = TypeVar("Command", bound=Callable[..., Any])
# A proposer may be a large model on a small machine.
TIMEOUT_S = 120.0
MAX_ANSWER_BYTES = 2**20


def compare_flags(function: Command) -> Command:
    """The flags of the experiment."""
    path = click.Path(dir_okay=False, path_type=Path)
    for option in (
        click.option("--plot", type=path, help="With --compare: write the rates as a picture (SVG)."),
        click.option(
            "--predictions",
            type=path,
            help="With --compare: what you predict, written before; the report has its hash.",
        ),
        click.option(
            "--proposer",
            metavar="COMMAND|URL",
            help="With --compare: who is asked, JSON in and the model's text out: a command by stdin and stdout, or a"
            " URL by POST.",
        ),
        click.option(
            "--compare",
            is_flag=True,
            help="Ask a proposer for each request in four ways (told, asked again, constrained, gated), and say what"
            " each changes.",
        ),
    ):
        function = option(function)
    return function


def compare(
    cases: tuple[ReadCase, ...],
    *,
    text: str,
    catalogue: Catalogue,
    proposer: str | None,
    predictions: Path | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Run it. Raises CommandError without a proposer, or without predictions."""
    from ticketgate.agents.funnel.file.mutation_report import hash_of
    from ticketgate.agents.workbench.funnel.comparing import try_all
    from ticketgate.agents.workbench.funnel.comparison import Comparison

    if proposer is None:
        raise CommandError("--compare asks a proposer; name it: --proposer './my-model', or its URL")
    hashes = {
        "predictions_sha256": _hash_of_predictions(predictions),
        "requests_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "catalogue_sha256": hash_of(catalogue),
    }
    tried = asyncio.run(try_all(cases, catalogue, _proposer(proposer)))
    found = Comparison(hashes=hashes, tried=tried)
    if as_json:
        print_json(found.to_json())
    else:
        click.echo("\n".join(found.lines()))
    if plot is not None:
        try:
            plot.write_text(found.plot(), encoding="utf-8")
        except OSError as err:
            raise CommandError(
                f"--plot {plot}: cannot be written: {err.strerror or err}; name another file"
            ) from err
    return 0


def _hash_of_predictions(path: Path | None) -> str:
    way_out = "write down what you expect of each cause before, and name the file by --predictions"
    if path is None:
        raise CommandError(f"no predictions: an experiment without them shows whatever came out; {way_out}")
    try:
        content = path.read_bytes()
    except OSError as err:
        raise CommandError(f"--predictions {path}: {err.strerror or err}; {way_out}") from err
    if not content.strip():
        raise CommandError(f"--predictions {path}: it is empty; {way_out}")
    return hashlib.sha256(content).hexdigest()


def _proposer(named: str) -> Propose:
    if named.startswith(("http://", "https://")):
        return _over_http(named)
    try:
        words = shlex.split(named)
    except ValueError as err:
        raise CommandError(f"--proposer: {err}; write a command as in a shell, or a URL") from err
    if not words:
        raise CommandError("--proposer is empty; name a command or a URL")
    return _by_command(words)


def _by_command(words: list[str]) -> Propose:
    from ticketgate.agents.workbench.funnel.comparing import Answer

    async def propose(question: Mapping[str, JsonValue]) -> Answer:
        started = time.perf_counter()
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
        except OSError as err:
            raise CommandError(
                f"--proposer {words[0]}: {err.strerror or err}; name a command that is there"
            ) from err
        try:
            async with asyncio.timeout(TIMEOUT_S):
                out, _ = await process.communicate(json.dumps(question).encode())
        except TimeoutError:
            process.kill()
            await process.wait()
            return _nothing(question, f"no answer within {TIMEOUT_S:g} s", started)
        if process.returncode:
            return _nothing(question, f"exit code {process.returncode}", started)
        return Answer(
            out[:MAX_ANSWER_BYTES].decode("utf-8", "replace").strip(), time.perf_counter() - started
        )

    return propose


def _over_http(url: str) -> Propose:
    from ticketgate.agents.http_asking import HttpAsker, NoAnswer
    from ticketgate.agents.workbench.funnel.comparing import Answer

    async def propose(question: Mapping[str, JsonValue]) -> Answer:
        started = time.perf_counter()
        asker = HttpAsker(timeout_s=TIMEOUT_S, max_bytes=MAX_ANSWER_BYTES, token=None)
        try:
            status, body = await asker.ask("POST", url, headers={}, body=json.dumps(question).encode())
        except NoAnswer as err:
            return _nothing(question, str(err), started)
        finally:
            await asker.close()
        if status != 200:
            return _nothing(question, f"status {status}", started)
        return Answer(_text_of(body), time.perf_counter() - started)

    return propose


def _text_of(body: bytes) -> str:
    """The model's text: of an object with `text` that, else the body."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value["text"] if isinstance(value, dict) and isinstance(value.get("text"), str) else text


def _nothing(question: Mapping[str, JsonValue], why: str, started: float) -> Answer:
    from ticketgate.agents.workbench.funnel.comparing import Answer

    say(f"ticketgate: the proposer, asked for {question['case']} as {question['system']}: {why}")
    return Answer("", time.perf_counter() - started)
