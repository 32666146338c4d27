"""`ticketgate audit --of review`: how each record in review stands."""

from __future__ import annotations

import asyncio

import click
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.output import print_json, print_table
from ticketgate.streams.cli.steps import steps
from ticketgate.streams.config.settings import Settings

_MEANING = {
    "waiting": "for a person",
    "expired": "waited for longer than TICKETGATE_CLAIM_TTL: can be settled no more",
    "accepted": "by a person, and dispatched",
    "rejected": "by a person",
    "returned": "by a person",
    "replaced": "as the ticket was decided anew, and lies in review again",
    "looked_into": "collisions, cases and receipts, which nobody settles",
}


def review_standings(settings: Settings, *, as_json: bool) -> int:
    """Print them, and return the exit code. Raises `Unreachable` and `ConditionFailed`."""
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.streams.operations.review.feeding import now_ms
    from ticketgate.streams.operations.review.standing import count, review_books

    with steps() as progress:
        books = asyncio.run(review_books(settings, progress=progress))
    standings, past = list(books.standings(now_ms=now_ms())), books.settlements_of_past
    counts = count(standings)
    if as_json:
        for each in standings:
            print_json(each.to_json())
        print_json(
            {"records": len(standings)}
            | counts
            | {
                "settlements_of_past": past,
                "settled_twice": books.settled_twice,
                "settled_twice_first": books.settled_twice_first,
                "clean": not books.settled_twice,
            }
        )
    else:
        rows = [("records", f"{len(standings):,}", "read from review: all that are there")]
        rows += [(name, f"{counts[name]:,}", meaning) for name, meaning in _MEANING.items()]
        rows.append(("settlements_of_past", f"{past:,}", "took effect on what is gone from review by now"))
        rows.append(("settled_twice", f"{books.settled_twice:,}", "settlements beyond one of a record"))
        print_table(("", "count", "meaning"), rows)
        for place in books.settled_twice_first:
            click.echo(f"settled twice: {place}")
    return EXIT_FINDINGS if books.settled_twice else 0
