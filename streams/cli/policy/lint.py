"""`ticketgate policy lint`: what a policy cannot mean, each finding with what proves it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.options import json_flag

if TYPE_CHECKING:
    from ticketgate.agents.workbench.policy.findings import Finding, LintReport

_STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}


@click.command("lint")
@click.argument("policy", type=click.Path(dir_okay=False, path_type=Path))
@json_flag
def command(policy: Path, as_json: bool) -> int:
    """Read POLICY as logic, without a ticket or a model.

    Every finding names the line, what proves it (rules of which none can be left out, or an assignment) and the
    remedy. Exit code 3 if there are errors, 2 if the file cannot be read.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.policy import PolicyError, load_policy
    from ticketgate.agents.workbench.policy.lint import lint, refused
    from ticketgate.streams.cli.output import print_json

    try:
        loaded = load_policy(policy)
        report, ref = lint(loaded), loaded.ref.to_json()
    except PolicyError as err:
        if any(problem.code == "unreadable" for problem in err.problems):
            raise
        report, ref = refused(err), None
    if as_json:
        print_json({"source": str(policy), "policy": ref, **report.to_json()})
    else:
        _print(report, str(policy))
    return EXIT_FINDINGS if report.has_errors else 0


def _print(report: LintReport, source: str) -> None:
    from rich.text import Text
    from ticketgate.streams.cli.output import console

    out = console()
    for finding in report.findings:
        where = source if finding.line is None else f"{source}:{finding.line}"
        out.print(
            Text.assemble(
                f"{where}: ",
                (finding.severity, _STYLES[finding.severity]),
                f": {finding.message} [{finding.code}]",
            ),
            soft_wrap=True,
        )
        for line in _proof(finding):
            out.print(Text(f"  {line}"), soft_wrap=True)
        out.print(Text(f"  {finding.remedy}"), soft_wrap=True)
    out.print(Text(_summary(report)), soft_wrap=True)


def _proof(finding: Finding) -> list[str]:
    if finding.example is None:
        return []
    return [f"example: {', '.join(finding.example) or 'no label at all'}"]


def _summary(report: LintReport) -> str:
    severities = [
        counted(count, severity)
        for severity in _STYLES
        if (count := sum(finding.severity == severity for finding in report.findings))
    ]
    found = ", ".join(severities) or "nothing found"
    if report.assignments is None:
        return f"{found}; nothing was searched, for the file is no policy"
    acceptable = "an unknown number" if report.acceptable is None else f"{report.acceptable:,}"
    return f"{found}; {acceptable} of {counted(report.assignments, 'assignment')} keep every rule"
