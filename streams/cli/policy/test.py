"""`ticketgate policy test`: a table of cases with their verdicts, and the questions' own examples on a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.files import named, read_text
from ticketgate.streams.cli.options import json_flag
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.agents.policy import Policy
    from ticketgate.agents.workbench.policy.trial import CaseResult, Coverage, ExampleResult


@click.command("test")
@click.argument("policy", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("cases", required=False, type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option(
    "--scorer", metavar="SPEC", help="Show the policy's examples to this scorer: onnx, or fixed:PATH."
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="Show the policy's examples to the onnx model in this folder.",
)
@click.option("--strict", is_flag=True, help="Fail if a rule never fired or never held in the cases.")
@json_flag
def command(
    policy: Path, cases: Path | None, scorer: str | None, model: Path | None, strict: bool, as_json: bool
) -> int:
    """Judge CASES by POLICY, and say which rule never fired in them and which never held.

    \b
    CASES is TOML, or one JSON object a line with the same fields (- for standard input):
      [[cases]]
      name = "urgent without review"
      answers = { urgent = 0.9, review = 0.2, kind = "bug", anger = 2 }
      attributes = { vip = true }             # facts
      expect = "review"                       # or "accept"
      violations = ["urgent-review"]          # also: stage, selected, effects

    With --scorer or --model the examples that stand in the policy are shown to a model, each expected to be answered
    as written. FixedScorer files answer by QUESTION.KIND, such as "urgent.fits". Exit code 3 if something is not as
    expected.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.policy import load_policy

    wants_model = scorer is not None or model is not None
    if cases is None and not wants_model:
        raise CommandError("nothing to test: name a table of cases, or --scorer or --model for the examples")
    loaded = load_policy(policy)
    ran = _run_cases(cases, loaded) if cases is not None else None
    shown = _run_examples(loaded, scorer, model) if wants_model else None
    if as_json:
        from ticketgate.streams.cli.output import print_json

        print_json(
            {
                "cases": None if ran is None else [each.to_json() for each in ran[0]],
                "coverage": None if ran is None else ran[1].to_json(),
                "examples": None if shown is None else [each.to_json() for each in shown],
            }
        )
    else:
        _print(ran, shown)
    is_failed = ran is not None and (
        any(each.unmet for each in ran[0]) or (strict and bool(ran[1].never_fired or ran[1].never_held))
    )
    return EXIT_FINDINGS if is_failed or any(each.passed is False for each in shown or ()) else 0


def _run_cases(path: Path, policy: Policy) -> tuple[Sequence[CaseResult], Coverage]:
    from ticketgate.agents.workbench.policy.case_file import CaseError, read_cases
    from ticketgate.agents.workbench.policy.trial import run_cases

    try:
        return run_cases(read_cases(read_text(path), source=named(path), policy=policy), policy)
    except CaseError as err:
        raise CommandError(str(err)) from err


def _run_examples(policy: Policy, scorer: str | None, model: Path | None) -> Sequence[ExampleResult]:
    from ticketgate.agents.scoring import open_scorer
    from ticketgate.agents.workbench.policy.trial import run_examples

    if not any(policy.examples.values()):
        raise CommandError(
            "the policy has no examples to show to a model; write [questions.ID.examples], as lint tells"
        )
    return run_examples(policy, open_scorer(scorer or "onnx", model=model))


def _print(ran: tuple[Sequence[CaseResult], Coverage] | None, shown: Sequence[ExampleResult] | None) -> None:
    from ticketgate.streams.cli.output import print_table

    if ran is not None:
        results, coverage = ran
        for result in results:
            for fault in result.unmet:
                click.echo(f"{result.name}: {fault}")
        print_table(
            ("rule", "fired", "held"),
            [
                (rule_id, _times(fired, "never fired"), _times(coverage.held[rule_id], "never held"))
                for rule_id, fired in coverage.broken.items()
            ],
        )
        failed = sum(bool(result.unmet) for result in results)
        click.echo(f"{counted(len(results), 'case')}, {failed} not as expected")
    if shown is not None:
        print_table(
            ("question", "example", "said", "confidence", ""),
            [
                (
                    each.question_id,
                    each.example.kind,
                    each.said or "",
                    # As it is compared, to the last digit.
                    "" if each.confidence is None else repr(each.confidence),
                    each.why if each.passed is not False else f"FAILED: {each.why}",
                )
                for each in shown
            ],
        )
        failed = sum(each.passed is False for each in shown)
        click.echo(f"{counted(len(shown), 'example')}, {failed} not as written")


def _times(count: int, never: str) -> str:
    return str(count) if count else never
