"""`ticketgate claims`: look one up, or rebuild them after Redis lost some."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.operations.gaps import LEFT_CLOSED, accept_gaps_flag, show_gaps
from ticketgate.streams.cli.options import TEXT, json_flag, settings_flags
from ticketgate.streams.cli.output import print_field, print_json, print_table, quiet_libraries, say
from ticketgate.streams.cli.steps import Progress, steps
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.codecs.records.identity import IdempotencyKey
    from ticketgate.streams.operations.claims_rebuild import RaisedMark, Rebuild


@click.group("claims")
def command() -> None:
    """The claims that bind an idempotency key to the one ticket or proposal that owns it."""


# --- show -------------------------------------------------------------------------------------------------------


@command.command("show")
@click.argument("key", required=False, type=TEXT)
@click.option(
    "--ticket",
    type=TEXT,
    metavar="ID",
    help="Instead of KEY: the id of a ticket that gives no key of its own.",
)
@click.option(
    "--idempotency-key",
    "given",
    type=TEXT,
    metavar="TEXT",
    help="Instead of KEY: the key that a ticket gives.",
)
@click.option(
    "--case", type=TEXT, metavar="ID", help="Instead of KEY: the id of a proposed case, with --attempt."
)
@click.option("--attempt", type=click.IntRange(min=1), help="The attempt at the case.")
@click.option("--tenant", type=TEXT, default="", help="The ticket's or the case's tenant.")
@json_flag
@settings_flags("redis", "namespace")
def show(
    key: str | None,
    ticket: str | None,
    given: str | None,
    case: str | None,
    attempt: int | None,
    tenant: str,
    as_json: bool,
    settings: Settings,
) -> int:
    """Show the claim on KEY (from a record's header ticketgate-idempotency-key), on a ticket's id, on the key that a
    ticket gives, or on an attempt at a case: which input owns it, for how long, and which keys are derived from it.

    Exit code 0 if there is one, 3 if not.
    """
    from ticketgate.streams.operations.claim_lookup import look_up_claim

    if sum(each is not None for each in (key, ticket, given, case)) != 1:
        raise CommandError("give one of KEY, --ticket, --idempotency-key and --case")
    if (case is None) != (attempt is None):
        raise CommandError("give --case and --attempt together: each attempt at a case has a key of its own")
    wanted = _key(settings, key, ticket=ticket, given=given, case=case, attempt=attempt, tenant=tenant)
    found = asyncio.run(look_up_claim(settings, wanted))
    if as_json:
        print_json(found)
    else:
        for name, value in found.items():
            if isinstance(value, list):
                for derived in value:
                    click.echo(f"derived key: {derived['key']}, owner {derived['owner']}")
            else:
                print_field(name, value)
    return 0 if found["owner"] is not None else EXIT_FINDINGS


def _key(
    settings: Settings,
    key: str | None,
    *,
    ticket: str | None,
    given: str | None,
    case: str | None,
    attempt: int | None,
    tenant: str,
) -> IdempotencyKey:
    from ticketgate.codecs.records.identity import IdempotencyKey, proposal_key, ticket_key
    from ticketgate.codecs.records.ticket import Ticket

    if key is not None:
        return IdempotencyKey(key)
    if case is not None and attempt is not None:
        return proposal_key(settings.namespace, tenant, case, attempt)
    wanted = Ticket(id=ticket or "", state="", tenant=tenant, idempotency_key=given)
    return ticket_key(settings.namespace, wanted)


# --- rebuild ----------------------------------------------------------------------------------------------------


@command.command("rebuild")
@click.option("--dry-run", is_flag=True, help="Say what would be restored; change nothing.")
@click.option(
    "--offsets-deleted",
    is_flag=True,
    help="The group's offsets are gone as well: take how far it came from the outputs.",
)
@accept_gaps_flag
@json_flag
@settings_flags("kafka", "redis", "namespace", "group")
def rebuild(
    dry_run: bool, offsets_deleted: bool, accept_gaps: bool, as_json: bool, settings: Settings
) -> int:
    """Restore the claims on tickets, proposals and settlements that Redis lost, out of the headers of what is in
    dispatch, review, repairs and settled, and the attempts at cases, from which repair budgets are counted. Lanes that
    refuse for lost claims open by themselves afterwards; workers need not be restarted, nor stopped: all lanes are
    closed meanwhile.

    A claim that stands is never changed, and a second run changes nothing. Exit code 3 if a claim that stands
    contradicts the outputs, or if these cannot vouch for all that was committed; then lanes stay closed.
    """
    quiet_libraries()
    with steps() as progress:
        done = asyncio.run(_rebuild(settings, dry_run, offsets_deleted, accept_gaps, progress))
    if as_json:
        print_json(to_json(done) | {"dry_run": dry_run})
    else:
        show_rebuild(done, dry_run=dry_run, accept_gaps=accept_gaps)
    return EXIT_FINDINGS if done.conflicts or (done.gaps and not accept_gaps) else 0


async def _rebuild(
    settings: Settings, dry_run: bool, offsets_deleted: bool, accept_gaps: bool, progress: Progress
) -> Rebuild:
    from ticketgate.streams.operations.claims_rebuild import rebuild_claims
    from ticketgate.streams.operations.command_redis import open_redis

    async with open_redis(settings) as redis:
        return await rebuild_claims(
            settings,
            redis,
            dry_run=dry_run,
            offsets_deleted=offsets_deleted,
            accept_gaps=accept_gaps,
            progress=progress,
        )


def to_json(done: Rebuild) -> dict[str, object]:
    """The counts, the marks, and the first conflicts."""
    return {
        "outputs": done.outputs,
        "restored": done.restored,
        "present": done.present,
        "expired": done.expired,
        "without_identity": done.without_identity,
        "of_others": done.of_others,
        "conflicts": done.conflicts,
        "conflicts_first": [
            {
                "key": each.written.key,
                "emitted_for": str(each.written.coordinate),
                "claimed_by": str(each.stands.coordinate),
            }
            for each in done.conflicts_first
        ],
        "attempts": {
            "restored": done.attempts.restored,
            "present": done.attempts.present,
            "expired": done.attempts.expired,
            "unknown": done.attempts_unknown,
        },
        "marks": [
            {
                "topic": each.source.topic,
                "partition": each.source.partition,
                "claimed_before": each.claimed_before,
                "to": each.to,
                "was_reset": each.was_reset,
            }
            for each in done.marks
        ],
        "bound_identity": done.bound_identity,
        "gaps": [*done.gaps],
    }


def show_rebuild(done: Rebuild, *, dry_run: bool, accept_gaps: bool) -> None:
    """The table for a person, and what is to be done next."""
    attempts = done.attempts
    rows = (
        ("outputs", done.outputs, "read from dispatch, review, repairs and settled", True),
        ("restored", done.restored, "claims set anew" + (" (would be)" if dry_run else ""), True),
        ("present", done.present, "claims that were there, and the same", True),
        ("expired", done.expired, "claims that would be over by now", True),
        ("conflicts", done.conflicts, "claims that were there, and another's: not changed", True),
        ("without identity", done.without_identity, "records that no worker wrote: passed over", True),
        ("of others", done.of_others, "records that bear no claim, such as receipts of effects", False),
        ("attempts restored", attempts.restored, "attempts at cases, for their repair budgets", False),
        ("attempts present", attempts.present, "attempts that were there: not changed", False),
        ("attempts expired", attempts.expired, "attempts that would be over by now", False),
        ("attempts unknown", done.attempts_unknown, "records too large to tell of their attempt", False),
    )
    print_table(
        ("", "count", "meaning"),
        [(name, f"{count:,}", meaning) for name, count, meaning, always in rows if always or count],
    )
    for each in done.conflicts_first:
        click.echo(
            f"conflict: key {each.written.key} was emitted for {each.written.coordinate}, and is claimed by"
            f" {each.stands.coordinate}"
        )
    for mark in done.marks:
        before = "nothing" if mark.claimed_before is None else mark.claimed_before
        click.echo(f"{_place(mark)}: marks from {before} to at least {mark.to}")
    if done.bound_identity:
        click.echo(
            "the namespace was bound to this cluster, group and topics" if not dry_run else "Redis is empty"
        )
    reset = [mark for mark in done.marks if mark.was_reset]
    show_gaps(done.gaps)
    if dry_run:
        say("nothing was changed")
    elif done.gaps and not accept_gaps:
        say(LEFT_CLOSED)
    elif reset:
        say(
            f"the group's offset was reset in {', '.join(map(_place, reset))}:"
            " `ticketgate replay --replay-from marks` sets it right, for others than tickets with --of"
        )
    else:
        say("lanes that refused for lost claims open within 10 s")


def _place(mark: RaisedMark) -> str:
    return f"{mark.source.topic}:{mark.source.partition}"
