"""`ticketgate funnel`: cases of proposed calls through every gate, on a provider in memory; no broker needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click
from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.files import named, read_text
from ticketgate.streams.cli.funnel.compare import compare as run_comparison
from ticketgate.streams.cli.funnel.compare import compare_flags
from ticketgate.streams.cli.output import print_json, say
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.agents.funnel.catalogue import Catalogue
    from ticketgate.agents.funnel.tool_formats import Format
    from ticketgate.agents.workbench.funnel.cases import CaseResult, ReadCase
    from ticketgate.agents.workbench.funnel.profiling import Profiled

# As agents/funnel/tool_formats.py has them, which --help does not load.
FORMATS: Final = ("json-schema", "openai", "anthropic", "google")
# Of the examples, and of cases for which none is named.
CATALOGUE = "payments"


@click.command("funnel")
@click.argument("cases", required=False, type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--example", type=click.Choice(["payments", "profile"]), help="Run the cases that come along.")
@click.option(
    "--catalogue",
    metavar="NAME|FILE",
    help="The catalogue that is offered: payments (unless given), support, or a TOML file.",
)
@click.option("--lint", is_flag=True, help="Report what the catalogue leaves unsaid, and run no case.")
@click.option(
    "--offered",
    is_flag=True,
    help="Print what is offered to a proposer for the request of each line, with its hash, and run no case.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="With --offered: as a JSON Schema of the calls, or in a provider's tool format.",
)
@click.option(
    "--mutate",
    is_flag=True,
    help="Change each accepted case in every way that must not pass, and report what passed; for `release`.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="With --mutate: the report's file.  [default: stdout]",
)
@compare_flags
@click.option("--profile", "as_profile", is_flag=True, help="Print the failure profile of labelled cases.")
@click.option(
    "--from-topics",
    is_flag=True,
    help="With --profile: of what the workers decided, as the settings' topics have it, in the place of CASES.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object for each case or finding, or for the profile.",
)
def command(
    cases: Path | None,
    example: str | None,
    catalogue: str | None,
    lint: bool,
    offered: bool,
    form: str | None,
    mutate: bool,
    out: Path | None,
    compare: bool,
    proposer: str | None,
    predictions: Path | None,
    plot: Path | None,
    as_profile: bool,
    from_topics: bool,
    as_json: bool,
) -> int:
    """Put CASES, a file of JSON lines (- for standard input), through the funnel's gates.

    Each case has a request, the authority and the world as they are looked up, the model's call as text, faults of
    the effect if wanted, what must come of it, and a label for --profile; `ticketgate manual funnel` shows one. The
    cases of a file share one provider in memory. Exit code 0 if each comes out as it expects, 3 otherwise.
    """
    if example is not None and catalogue is not None:
        raise CommandError("an example brings its catalogue; leave --catalogue out")
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.funnel.file.catalogue_file import example as example_text
    from ticketgate.agents.funnel.file.catalogue_file import load_catalogue

    if lint:
        _require(
            cases is None and example is None and not offered and not as_profile,
            "--lint reads a catalogue and no cases; leave CASES, --example, --offered and --profile out",
        )
        return _lint(load_catalogue(catalogue or CATALOGUE), as_json)
    if from_topics:
        if not as_profile or cases is not None or example is not None or offered:
            raise CommandError(
                "--from-topics takes the place of CASES in a profile; give it with --profile alone"
            )
        return _of_topics(load_catalogue(catalogue or CATALOGUE), as_json)
    if (cases is None) == (example is None):
        raise CommandError("nothing to run, or two things: name a file of CASES, or one of ours by --example")
    _require(
        not (offered and as_profile),
        "--offered runs no case, and a profile is of cases that were run; give one of the two",
    )
    source = f"{example}.jsonl" if cases is None else named(cases)
    text = example_text(source) if cases is None else read_text(cases)
    loaded = load_catalogue(catalogue or CATALOGUE)
    _require(form is None or offered, "--format says how --offered writes; give --offered as well")
    _require(out is None or mutate, "--out is where --mutate writes its report; give --mutate as well")
    if mutate:
        _require(
            not (offered or as_profile), "--mutate runs cases of its own; leave --offered and --profile out"
        )
        return _mutate(text, source, loaded, out)
    experiment = (proposer, predictions, plot)
    _require(
        compare or not any(experiment),
        "--proposer, --predictions and --plot are of --compare; give it as well",
    )
    if compare:
        return run_comparison(
            _read(text, source),
            text=text,
            catalogue=loaded,
            proposer=proposer,
            predictions=predictions,
            plot=plot,
            as_json=as_json,
        )
    if offered:
        return _offered(text, source, loaded, form)
    run = _profile if as_profile else _run
    code = run(_read(text, source), loaded, as_json)
    if code and cases is not None and catalogue is None:
        say(f"judged by the catalogue {loaded.name} {loaded.version}; cases of another need --catalogue")
    return code


def _require(fits: bool, otherwise: str) -> None:
    if not fits:
        raise CommandError(otherwise)


def _read(text: str, source: str) -> tuple[ReadCase, ...]:
    from ticketgate.agents.workbench.funnel.cases import FunnelCaseError, read_cases

    try:
        return read_cases(text, source=source)
    except FunnelCaseError as err:
        raise CommandError(str(err)) from err


def _offered(text: str, source: str, catalogue: Catalogue, form: str | None) -> int:
    from ticketgate.agents.workbench.funnel.cases import FunnelCaseError
    from ticketgate.agents.workbench.funnel.offering import offers

    try:
        for each in offers(text, source=source, catalogue=catalogue, form=cast("Format | None", form)):
            print_json(each)
    except FunnelCaseError as err:
        raise CommandError(str(err)) from err
    return 0


def _mutate(text: str, source: str, catalogue: Catalogue, out: Path | None) -> int:
    from ticketgate.agents.workbench.funnel.cases import FunnelCaseError
    from ticketgate.agents.workbench.funnel.mutating import mutate

    try:
        report = asyncio.run(mutate(text, source=source, catalogue=catalogue))
    except FunnelCaseError as err:
        raise CommandError(str(err)) from err
    if out is None:
        print_json(report.to_json())
    else:
        try:
            out.write_text(json.dumps(report.to_json(), indent=1) + "\n", encoding="utf-8")
        except OSError as err:
            raise CommandError(
                f"--out {out}: cannot be written: {err.strerror or err}; name another file"
            ) from err
    for told in (*report.survivors, *report.untried):
        say(f"ticketgate: {'PASSED: ' if told in report.survivors else ''}{_shown(told)}")
    return EXIT_FINDINGS if report.survivors or report.untried else 0


def _of_topics(catalogue: Catalogue, as_json: bool) -> int:
    from ticketgate.streams.cli.funnel.from_topics import profile_topics
    from ticketgate.streams.config.settings import load_settings

    return _show(asyncio.run(profile_topics(catalogue, load_settings({}).settings)), as_json)


def _profile(cases: tuple[ReadCase, ...], catalogue: Catalogue, as_json: bool) -> int:
    from ticketgate.agents.effects.adapters.memory import MemoryProvider
    from ticketgate.agents.workbench.funnel.cases import FunnelCaseError
    from ticketgate.agents.workbench.funnel.profiling import profile_cases

    try:
        profiled = asyncio.run(
            profile_cases(cases, catalogue=catalogue, provider=MemoryProvider(states=catalogue.states))
        )
    except FunnelCaseError as err:
        raise CommandError(str(err)) from err
    return _show(profiled, as_json)


def _show(profiled: Profiled, as_json: bool) -> int:
    from ticketgate.streams.cli.funnel.profile import profile_lines

    failed = [result.name for result in profiled.results if result.unmet]
    if as_json:
        print_json({**profiled.profile.to_json(), "not_as_expected": failed})
    else:
        click.echo("\n".join(profile_lines(profiled.profile)))
    if failed:
        told = ", ".join(map(_shown, failed))
        say(f"{len(failed)} not as expected: {told}; run them without --profile to see how")
    return EXIT_FINDINGS if failed else 0


def _run(cases: tuple[ReadCase, ...], catalogue: Catalogue, as_json: bool) -> int:
    from ticketgate.agents.effects.adapters.memory import MemoryProvider
    from ticketgate.agents.workbench.funnel.cases import run_cases

    provider = MemoryProvider(states=catalogue.states)
    results = asyncio.run(run_cases(cases, catalogue=catalogue, provider=provider))
    if as_json:
        for result in results:
            print_json(result.to_json())
    else:
        click.echo("\n".join(_lines(results, provider.committed)))
    return EXIT_FINDINGS if any(result.unmet for result in results) else 0


def _lint(catalogue: Catalogue, as_json: bool) -> int:
    from ticketgate.agents.funnel.file.catalogue_lint import lint_catalogue

    findings = lint_catalogue(catalogue)
    for found in findings:
        if as_json:
            print_json(found.to_json())
        else:
            click.echo(f"{found.place}: {found.what} [{found.code}]\n  {found.remedy}")
    if not as_json:
        click.echo(
            f"{catalogue.name} {catalogue.version}: {counted(len(catalogue.tools), 'tool')},"
            f" {counted(len(findings), 'finding')}"
        )
    return EXIT_FINDINGS if findings else 0


def _lines(results: Sequence[CaseResult], committed: int) -> list[str]:
    """A line a case, what was not expected below it, and the count."""
    names = [_shown(result.name) for result in results]
    width = max(map(len, names))
    lines: list[str] = []
    for name, result in zip(names, results, strict=True):
        verdict, effect = result.outcome.verdict, result.outcome.effect
        told = f"{name:{width}}  {verdict.status:7} {verdict.stage:14} {', '.join(verdict.reasons) or '-'}"
        lines.append(told if effect is None else f"{told}  [{effect.status} {effect.provider_id}]")
        lines += [f"  NOT AS EXPECTED: {_shown(fault)}" for fault in result.unmet]
    failed = sum(bool(result.unmet) for result in results)
    lines.append(f"{counted(len(results), 'case')}, {failed} not as expected; effects committed: {committed}")
    return lines


def _shown(text: str) -> str:
    """Text of a file as a line shows it: as JSON in ASCII where it could move a terminal's cursor or forge a line."""
    return text if text.isprintable() else json.dumps(text)
