"""`ticketgate case`: a record of an incident as a case that shows it, for `ticketgate funnel` or `policy test`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from ticketgate.agents.plural import counted
from ticketgate.codecs.values.limits import MAX_FILE_BYTES
from ticketgate.streams.cli import EXIT_BAD_INPUT
from ticketgate.streams.cli.files import named, read_bytes
from ticketgate.streams.cli.output import print_json, say
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.codecs.records.case_decision import CaseDecision
    from ticketgate.codecs.records.decision import DecisionRecord
    from ticketgate.codecs.records.receipt import DecisionReceipt, EffectReceipt
    from ticketgate.codecs.values.strict import JsonValue, Malformed
    from ticketgate.streams.operations.inputs import InputName

    Read = CaseDecision | DecisionRecord | DecisionReceipt | EffectReceipt


@click.command("case")
@click.argument("records", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--name", metavar="TEXT", help="The case's name; numbered where there are several.")
@click.option(
    "--of",
    "of",
    type=click.Choice(["tickets", "proposals"]),
    help="Whose cases to write, where RECORDS has both.  [default: of proposals, if there are any]",
)
def command(records: Path, name: str | None, of: InputName | None) -> int:
    """Write RECORDS (- for standard input) as cases, one JSON object a line.

    RECORDS are lines as `ticketgate consume` prints them, or bare values: of dispatch, repairs, review and receipts;
    what `ticketgate reconcile --json` prints is taken too.
    Those on one attempt make one case, which expects what was said of it last: give a receipt with its decision, and a
    repaired attempt with the one before. Cases of proposals are for `ticketgate funnel`, cases of tickets for
    `ticketgate policy test`; no file of cases holds both, so records of the other kind are passed over. Exit code 2
    if a record cannot become a case; the others are written.
    """
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.agents.workbench.funnel.export import export_cases
    from ticketgate.agents.workbench.policy.recorded_case import RecordedCaseError, policy_case
    from ticketgate.codecs.records.case_decision import CaseDecision
    from ticketgate.codecs.records.decision import DecisionRecord
    from ticketgate.codecs.records.receipt import DecisionReceipt, EffectReceipt

    read, problems = _read(records)
    tickets = [each for each in read if isinstance(each, DecisionRecord)]
    decisions = [each for each in read if isinstance(each, CaseDecision)]
    receipts = [each for each in read if isinstance(each, EffectReceipt)]
    judged = [each for each in read if isinstance(each, DecisionReceipt)]
    policies = {effect.idempotency_key for ticket in tickets for effect in ticket.effects}
    of_policies = [each for each in receipts if each.idempotency_key in policies]
    receipts = [each for each in receipts if each.idempotency_key not in policies]
    of_proposals = len(decisions) + len(receipts) + len(judged)
    kind = of or ("proposals" if of_proposals or not tickets else "tickets")
    if of is not None and not (tickets if of == "tickets" else of_proposals):
        raise CommandError(f"{named(records)}: no records of {of}; leave --of out, or give theirs")
    if kind == "proposals":
        if of is None and tickets:
            say(
                f"{counted(len(tickets) + len(of_policies), 'record')} of tickets passed over;"
                " `ticketgate case --of tickets` writes their cases, for `ticketgate policy test`"
            )
        tickets, of_policies = [], []
    else:
        decisions, receipts, judged = [], [], []
    problems += [
        f"effect {each.idempotency_key}: a policy's effect passes no gates, so that no case shows what became of it"
        for each in of_policies
    ]
    lines, errors = export_cases(decisions, receipts, name=name)
    problems += [*map(str, errors), *_without_evidence(judged, decisions)]
    for number, ticket in enumerate(tickets, start=1):
        told = name if name is None or len(tickets) == 1 else f"{name} {number}"
        try:
            lines.append(policy_case(ticket, name=told))
        except RecordedCaseError as err:
            problems.append(str(err))
    for line in lines:
        print_json(line)
    for catalogue in dict.fromkeys(f"{each.catalogue.name} {each.catalogue.version}" for each in decisions):
        say(
            f"judged by the catalogue {catalogue}; run the cases with `ticketgate funnel CASES --catalogue …`"
        )
    for policy in dict.fromkeys(f"{each.policy.name} {each.policy.version}" for each in tickets):
        say(f"judged by the policy {policy}; run the cases with `ticketgate policy test POLICY CASES`")
    for problem in dict.fromkeys(problems):
        say(f"ticketgate: {problem}")
    return EXIT_BAD_INPUT if problems else 0


def _read(path: Path) -> tuple[list[Read], list[str]]:
    """The records, and what stands between them and is none: one such must not keep an incident from its case."""
    from ticketgate.codecs.values.strict import Malformed, decode
    from ticketgate.streams.kafka.envelope import LineError, read_line

    data = read_bytes(path)
    whole = decode(data, max_bytes=MAX_FILE_BYTES, is_our_own=True)
    # One value may be written over many lines; records have a line each.
    lines = [data] if isinstance(whole, dict) else data.split(b"\n")
    found: list[Read] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{named(path)}:{number}"
        try:
            value = read_line(line).value
        except LineError as err:
            raise CommandError(f"{where}: {err}") from err
        if value is None:
            continue
        decoded = decode(value, max_bytes=MAX_FILE_BYTES, is_our_own=True)
        for each in _records(decoded):
            read = each if isinstance(each, Malformed) else _record(each)
            if isinstance(read, Malformed):
                problems.append(
                    f"{where}: {read.reason}; give records of dispatch, repairs, review or receipts"
                )
            else:
                found.append(read)
    if not found and not problems:
        raise CommandError(f"{named(path)}: no records; pipe `ticketgate consume review` into this command")
    return found, problems


def _records(value: JsonValue | Malformed) -> Sequence[JsonValue | Malformed]:
    """The value, or the receipts that `ticketgate reconcile --json` wraps."""
    if (
        isinstance(value, dict)
        and "schema" not in value
        and isinstance(effects := value.get("effects"), list)
    ):
        return effects
    return [value]


def _record(value: JsonValue) -> Read | Malformed:
    """A record by its `schema`."""
    from ticketgate.codecs.records.case_decision import read_dispatched
    from ticketgate.codecs.records.receipt import read_receipt
    from ticketgate.codecs.values.malformed import Malformed
    from ticketgate.codecs.verdict import Stage

    schema = value.get("schema") if isinstance(value, dict) else None
    if schema is None:
        # Else each field of a decision would be named as missing from what was never one.
        return Malformed(Stage.SCHEMA, "missing_field", 'no record of ours: it has no "schema"')
    is_receipt = isinstance(schema, str) and schema.startswith("receipt/")
    return read_receipt(value) if is_receipt else read_dispatched(value)


def _without_evidence(judged: Sequence[DecisionReceipt], decisions: Sequence[CaseDecision]) -> list[str]:
    """The decision receipts whose decision was not given: they name the evidence's versions and do not hold it."""
    given = {(each.tenant, each.case_id, each.attempt) for each in decisions}
    return [
        f"case {each.case_id} attempt {each.attempt}: a receipt names evidence and does not hold it; give the decision"
        " from dispatch, repairs or review as well"
        for each in judged
        if (each.tenant, each.case_id, each.attempt) not in given
    ]
