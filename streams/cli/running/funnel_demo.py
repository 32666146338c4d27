"""`ticketgate demo --funnel`: proposed payments through the funnel on this machine, and what came of each."""

from __future__ import annotations

import asyncio

import click
from ticketgate.agents.plural import counted
from ticketgate.codecs.records.receipt import verdict_json
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.output import print_json, print_table, progress, say
from ticketgate.streams.demo.funnel_demo import CaseResult, FunnelDemoResult, run_funnel_demo
from ticketgate.streams.demo.funnel_seen import Outcome

GUARANTEES = {
    "exactly_once": "exactly_once (records and offset in one transaction; an effect is written down before it is sent,"
    " sent under its key, and read back)",
    "at_least_once": "at_least_once: this broker has no transactions. Nothing is lost, and the ledger in Redis lets"
    " each key have one effect all the same, but a crash between sending and committing repeats a batch's records. On"
    " Apache Kafka (Java 17 and Maven, then `make kafka-jars`) the same demo runs with exactly_once.",
}


def run(*, as_json: bool) -> int:
    """Run the demo and show it. The exit code: 0 only if each case came out as expected, with one transfer a key."""
    with progress("cases accounted for", total=None) as advance:
        result = asyncio.run(run_funnel_demo(say=say, advance=advance))
    if as_json:
        for each in result.results:
            print_json(case_json(each))
        print_json(summary(result))
    else:
        show(result)
    for each in result.results:
        for fault in each.unmet:
            say(f"not as expected: {each.case.name}: {fault}")
    for fault in result.bank_faults:
        say(f"not as expected: {fault}")
    return 0 if result.is_as_expected else EXIT_FINDINGS


def case_json(result: CaseResult) -> dict[str, JsonValue]:
    """One case for programs: where its decision went, how it ended, and the newest receipt of its effect."""
    outcome = result.outcome
    case_id, attempt = outcome.attempt
    return {
        "case": case_id,
        "attempt": attempt,
        "went_to": outcome.went_to or "missing",
        "verdict": None if outcome.verdict is None else verdict_json(outcome.verdict),
        "effect": None if outcome.effect is None else outcome.effect.to_json(),
        "as_expected": not result.unmet,
        "unmet": list(result.unmet),
    }


def summary(result: FunnelDemoResult) -> dict[str, JsonValue]:
    """The object that `--json` ends with. Dispatched, review and repairs count decisions; effects are what the
    dispatched ones asked for, transfers what stands at the bank."""
    return {
        "cases": len(result.results),
        "dispatched": result.count("dispatch"),
        "review": result.count("review"),
        "repairs": result.count("repairs"),
        "effects": result.effects,
        "transfers": result.book.count,
        "guarantee": result.guarantee,
        "seconds": round(result.seconds, 3),
    }


def show(result: FunnelDemoResult) -> None:
    """The table and the counts for a person."""
    print_table(
        ("case", "went to", "status", "stage", "reasons", "effect"), [_row(each) for each in result.results]
    )
    counts, book = summary(result), result.book
    click.echo(
        f"\n{counted(len(result.results), 'case')} in {result.seconds:.1f} s on {result.broker}:"
        f" {counts['dispatched']} dispatched, {counts['review']} for review,"
        f" {counts['repairs']} for repair; effects asked for: {counts['effects']}"
    )
    click.echo(
        f"at the bank: {counted(book.count, 'transfer')}, under {counted(len(book.transfers), 'key')};"
        f" it got {counted(book.requests, 'request')} to transfer and {book.read_backs} to read back"
    )
    click.echo(f"guarantee: {GUARANTEES[result.guarantee]}")


def _row(result: CaseResult) -> tuple[str, ...]:
    outcome, verdict = result.outcome, result.outcome.verdict
    went_to = outcome.went_to or "missing"
    if verdict is None:
        return result.case.name, went_to, "", "", "", ""
    reasons = ", ".join(verdict.reasons)
    return result.case.name, went_to, verdict.status, verdict.stage, reasons, _effect(outcome)


def _effect(outcome: Outcome) -> str:
    """`created tr_0001`, or how far it is; and whether a person has to look."""
    effect = outcome.effect
    if effect is None:
        return "not told of" if outcome.asks_for_effect else ""
    told = f"{effect.status or effect.effect_state} {effect.provider_id or ''}".strip()
    return f"{told}, to review" if outcome.is_effect_reviewed else told
