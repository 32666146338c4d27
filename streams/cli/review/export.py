"""`ticketgate review export`: what people settled, as labelled rows for an evaluation."""

from __future__ import annotations

import asyncio
from typing import Any

import click
from ticketgate.streams.cli.options import settings_flags
from ticketgate.streams.cli.output import print_json, quiet_libraries, say
from ticketgate.streams.cli.review.sharing import as_flag, fed_view, log_texts, person_of
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError

PAGE = 200


@click.command("export")
@as_flag
@settings_flags("kafka", "namespace", "console_keys", "console_key", "review_view")
def export(person: str | None, settings: Settings) -> None:
    """Write what people accepted and rejected as JSON lines: the ticket, what the model answered and selected, what the
    person selected, by which settlement and when. `origin` is person: these labels are of tickets that the policy
    sent to review, and of no others. A ticket whose text is nowhere any more is left out, and counted.
    """
    from ticketgate.agents.settling.console_keys import ConsoleRole
    from ticketgate.streams.operations.review.desk import look, require_key
    from ticketgate.streams.operations.review.feeding import now_ms
    from ticketgate.streams.operations.review.rows import Case, State, Wanted

    quiet_libraries()
    require_key(settings, ConsoleRole.READ)
    by, now, gone = person_of(settings, person), now_ms(), 0

    def row(case: Case, told: dict[str, Any]) -> dict[str, Any] | None:
        try:
            lying = asyncio.run(look(settings, case))
        except CommandError:
            return None
        if lying.ticket is None:
            return None
        return {
            "ticket": lying.ticket.to_json(),
            "labels": told["labels"] if case.state is State.ACCEPTED else None,
            "action": told["action"],
            "selected": list(lying.record.selected),
            "probabilities": dict(lying.record.probabilities),
            "model": {"id": lying.record.model.id, "hash": lying.record.model.hash},
            "policy": lying.record.policy.hash,
            "origin": "person",
            "by": told["by"],
            "settlement": told["id"],
            "settled_ms": told["at_ms"],
        }

    with fed_view(settings) as view:
        for state in (State.ACCEPTED, State.REJECTED):
            after = 0
            while page := view.page(Wanted(state=state), now_ms=now, after=after, most=PAGE):
                after = page[-1].id
                log_texts(settings, by, "export", [each.key for each in page])
                for case in page:
                    told = next(
                        (each for each in view.settlements(key=case.key) if each["id"] == case.settlement),
                        None,
                    )
                    found = None if told is None else row(case, told)
                    if found is None:
                        gone += 1
                    else:
                        print_json(found)
    if gone:
        say(f"{gone:,} left out: their text is nowhere any more")
