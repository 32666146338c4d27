"""`ticketgate audit`: every input accounted for, from the topics alone."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

import click
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.inputs import of_flag
from ticketgate.streams.cli.operations.standings import review_standings
from ticketgate.streams.cli.options import json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, print_table, quiet_libraries, say
from ticketgate.streams.cli.steps import steps
from ticketgate.streams.config.settings import Settings

if TYPE_CHECKING:
    from ticketgate.streams.operations.audit import AuditReport
    from ticketgate.streams.operations.inputs import InputName


@click.command("audit")
@of_flag("Which inputs to account for; or review: how each record for a person stands.", "review")
@json_flag
@settings_flags("kafka", "redis", "namespace", "group", "max_ticket_bytes")
def command(of: InputName | Literal["review"], as_json: bool, settings: Settings) -> int:
    """Read tickets, dispatch, review and dead-letter as they are committed, and account for every input: what became
    of it, which output is there twice, which input left no trace. Of proposals, repairs is read as well, and of
    settlements, settled. Workers may
    be at work meanwhile.

    Of review it reads review and settled, and says of each record whether it waits, is settled, expired, or replaced
    as its ticket was decided anew: a line each with --json, and the counts last.

    It keeps some 350 bytes in memory for each output, 500 for a record in review. Exit code 0 if nothing is there twice
    and nothing is missing, 3 otherwise.
    """
    quiet_libraries()
    if of == "review":
        return review_standings(settings, as_json=as_json)
    from ticketgate.streams.operations.audit_run import run_audit
    from ticketgate.streams.operations.inputs import input_of

    with steps() as progress:
        audit = asyncio.run(run_audit(settings, input_of(of, settings), progress=progress))
    if audit.without_redis is not None:
        say(
            f"Redis does not answer ({audit.without_redis}): inputs in a range that was passed over on purpose"
            " count as missing"
        )
    if as_json:
        print_json(to_json(audit.report, of=of) | {"voids_known": audit.without_redis is None})
    else:
        show(audit.report, of=of)
    return 0 if audit.report.is_clean else EXIT_FINDINGS


def to_json(report: AuditReport, *, of: InputName) -> dict[str, object]:
    """The counts under their names, what could be read under the input's, and the first offenders."""
    counts = {of if name == "documents" else name: count for name, count in asdict(report).items()}
    return counts | {
        "missing_first": [
            {"key": each.key, "coordinate": str(each.coordinate)} for each in report.missing_first
        ],
        "duplicates_first": [
            {"key": each.key, "coordinate": str(each.coordinate), "first": str(each.first)}
            for each in report.duplicates_first
        ],
        "clean": report.is_clean,
    }


# What a person reads, in this order: name, what it means, and whether it is there where it is 0. INPUTS are what is
# accounted for.
_ROWS = (
    ("records", "read from INPUTS: all that are there", True),
    ("documents", "of them, could be read as INPUTS", True),
    ("malformed", "of them, could not", True),
    ("tombstones", "of them, had no value", True),
    ("dispatched", "decided and accepted", True),
    ("review", "decided and for a person", True),
    ("repairs", "for their proposer to mend", False),
    ("settled", "rejected or returned by a person", False),
    ("not_taken", "settlements that took no effect, and were told why", False),
    ("collisions", "of these, had an id that was used before for something else", True),
    ("dead_letter", "put aside as they came", True),
    ("replayed", "duplicates, suppressed", True),
    ("skipped", "tombstones, passed over", False),
    ("void", "in a range that was passed over, without an effect", False),
    ("pending", "not decided yet", True),
    ("cut_by_retention", "without an outcome, but outputs of that age are gone: nothing can be said of them", False),
    ("duplicates", "outputs too many: a second one under one key, or of one dead letter", True),
    ("missing", "inputs without a trace", True),
    ("lost_unread", "inputs that retention removed before they were read", False),
    ("unreadable", "offsets of batches in INPUTS that nobody can read: not among records", False),
    ("decided_anew", "outputs under a key whose claim was over: sent again after TICKETGATE_CLAIM_TTL", False),
    ("outputs_of_past_inputs", "outputs whose input is gone by now, as retention wants it", False),
    ("outputs_unexplained", "outputs of no input here: another namespace's, or of a topic made anew", False),
    ("outputs_of_others", "outputs that were made from something other than INPUTS", False),
    ("outputs_without_identity", "records in output topics that no worker wrote", False),
)  # fmt: skip


def show(report: AuditReport, *, of: InputName) -> None:
    """The table for a person, and the first offenders."""
    counts = asdict(report)
    print_table(
        ("", "count", "meaning"),
        [
            (of if name == "documents" else name, f"{counts[name]:,}", meaning.replace("INPUTS", of))
            for name, meaning, always in _ROWS
            if always or counts[name]
        ],
    )
    for missing in report.missing_first:
        click.echo(f"missing: {missing.coordinate}" + (f", key {missing.key}" if missing.key else ""))
    for repeated in report.duplicates_first:
        of_key = (
            f"key {repeated.key}, made from {repeated.first} and from " if repeated.key else "dead letter of "
        )
        click.echo(f"duplicate: {of_key}{repeated.coordinate}")
