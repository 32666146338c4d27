"""`ticketgate review list`: what waits, the oldest first."""

from __future__ import annotations

from dataclasses import asdict

import click
from ticketgate.streams.cli.options import TEXT, json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, print_table, quiet_libraries, say
from ticketgate.streams.cli.review.sharing import as_flag, fed_view, log_texts, person_of
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.operations.review.moments import age, read_age

STATES = ("waiting", "expired", "accepted", "rejected", "returned")
KINDS = ("decision", "collision", "case", "receipt")
# What expires within this time is pressing.
PRESSING_MS = 2 * 86_400_000


@click.command("list")
@click.option(
    "--state", type=click.Choice(STATES), default="waiting", show_default=True, help="How it stands."
)
@click.option("--kind", type=click.Choice(KINDS), default="decision", show_default=True, help="What it is.")
@click.option("--rule", "rules", multiple=True, type=TEXT, help="A rule that it breaks; may be repeated.")
@click.option(
    "--label", "labels", multiple=True, type=TEXT, help="A label that the model selected; may be repeated."
)
@click.option("--stage", type=TEXT, help="The gate that sent it to review.")
@click.option("--by-policy", "policy", type=TEXT, metavar="NAME", help="The policy that judged it.")
@click.option("--tenant", type=TEXT, help="Whose ticket it is.")
@click.option("--text", type=TEXT, metavar="WORDS", help="Words that its text has, all of them.")
@click.option("--older-than", metavar="AGE", help="Such as 2d or 12h.")
@click.option(
    "--after", type=click.IntRange(min=0), default=0, metavar="ROW", help="The page behind this row."
)
@click.option("--most", type=click.IntRange(1, 1_000), default=50, show_default=True, help="Rows of a page.")
@as_flag
@json_flag
@settings_flags("kafka", "namespace", "console_keys", "console_key", "review_view")
def list_(
    *,
    state: str,
    kind: str,
    rules: tuple[str, ...],
    labels: tuple[str, ...],
    stage: str | None,
    policy: str | None,
    tenant: str | None,
    text: str | None,
    older_than: str | None,
    after: int,
    most: int,
    person: str | None,
    as_json: bool,
    settings: Settings,
) -> None:
    """List what waits for a person, the oldest first, with how many there are.

    Tickets whose claim is over are expired: they can be settled no more, and are sent again if they are still of
    interest. What ends within two days is marked. The beginning of each text is shown, and that is logged.
    """
    from ticketgate.agents.settling.console_keys import ConsoleRole
    from ticketgate.streams.operations.review.desk import require_key
    from ticketgate.streams.operations.review.feeding import now_ms
    from ticketgate.streams.operations.review.rows import State, Wanted

    quiet_libraries()
    is_filtered = bool(rules or labels or stage or policy or tenant or text) or kind != "decision"
    if is_filtered and state not in ("waiting", "expired"):
        raise CommandError(f"filters are for what waits: leave them out, or --state {state}")
    require_key(settings, ConsoleRole.READ)
    by, now = person_of(settings, person), now_ms()
    wanted = Wanted(
        state=State(state),
        kind=kind,
        stage=stage,
        policy=policy,
        tenant=tenant,
        rules=rules,
        labels=labels,
        words=text,
        older_than_ms=None if older_than is None else now - _ms(older_than),
    )
    with fed_view(settings) as view:
        page = view.page_from(wanted, now_ms=now, after=after, most=most)
        count, numbers = view.count(wanted, now_ms=now), view.numbers(now_ms=now)
    log_texts(settings, by, "list", [each.key for each in page.rows if each.says])
    if as_json:
        print_json(
            {"rows": [asdict(each) for each in page.rows], "next_after": page.next_after}
            | {"page_is_full": page.is_full, "count": count.rows, "count_is_whole": count.is_whole}
            | {"numbers": numbers}
        )
        return
    print_table(
        ("ticket", "age", "ends in", "gate", "why", "selected", "what it says"),
        [
            (
                each.ticket_id,
                age(now - each.at_ms),
                _ends(each.expires_ms - now) if state == "waiting" and kind == "decision" else each.state,
                each.stage,
                "; ".join(each.reasons[:2]),
                ", ".join(each.labels),
                each.says,
            )
            for each in page.rows
        ],
    )
    more = "" if count.is_whole else "at least "
    oldest = age(now - numbers["oldest_ms"]) if numbers["oldest_ms"] else "none"
    say(f"{more}{count.rows:,} {state}; the oldest that waits: {oldest}")
    if numbers["expired"]:
        say(
            f"{numbers['expired']:,} expired, which can be settled no more: `ticketgate review list --state expired`"
        )
    if not page.is_full:
        say("looking ended before the end, so that you need not wait: there may be more on the next page")
    if page.next_after is not None:
        say(f"next page: --after {page.next_after}")


def _ends(left_ms: int) -> str:
    return f"{age(left_ms)}{' !' if left_ms < PRESSING_MS else ''}"


def _ms(text: str) -> int:
    found = read_age(text)
    if found is None:
        raise CommandError("--older-than: must be a duration such as 30m, 12h or 2d")
    return found
