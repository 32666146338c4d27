"""`ticketgate review settle`: decide a ticket."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.options import TEXT, json_flag, settings_flags
from ticketgate.streams.cli.output import print_field, print_json, quiet_libraries, say
from ticketgate.streams.cli.review.sharing import as_flag, fed_view, log_texts, one_case, person_of
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.agents.policy import Policy
    from ticketgate.codecs.records.pieces import Effect
    from ticketgate.codecs.records.settlement import Settlement

# A worker takes a settlement in well under a second; one that just starts, in some.
WAIT_S = 15.0
LOOK_EVERY_S = 0.5


@click.command("settle")
@click.argument("key", type=TEXT)
@click.option(
    "--accept", "action", flag_value="accept", help="These labels are right: carry out what follows."
)
@click.option("--reject", "action", flag_value="reject", help="Nothing is to follow from it.")
@click.option("--return", "action", flag_value="return", help="The sender is to send another.")
@click.option(
    "--label", "labels", multiple=True, type=TEXT, help="With --accept: a label that holds; all of them."
)
@click.option("--why", type=TEXT, default="", help="The reason, which is kept with the record.")
@click.option("--yes", is_flag=True, help="Send it; without, it only says what would follow.")
@as_flag
@json_flag
@settings_flags("kafka", "namespace", "policy", "console_keys", "console_key", "review_view")
def settle(
    *,
    key: str,
    action: str | None,
    labels: tuple[str, ...],
    why: str,
    yes: bool,
    person: str | None,
    as_json: bool,
    settings: Settings,
) -> int:
    """Settle a ticket in review, by its KEY or its id: say what would follow, and with --yes send it and wait for what
    became of it.

    An accepted assignment has to be whole: a label for each choice and score, and each noul that holds. It is judged by
    the policy here and again by the worker, which alone decides. Exit code 3 if it would not be, or was not, taken.
    """
    from ticketgate.agents.policy import load_policy
    from ticketgate.agents.settling.console_keys import ConsoleRole
    from ticketgate.codecs.records.settlement import Action
    from ticketgate.streams.operations.review.desk import compose, look, preview, require_key
    from ticketgate.streams.operations.review.feeding import now_ms
    from ticketgate.streams.operations.review.rows import State

    quiet_libraries()
    signing = require_key(settings, ConsoleRole.SETTLE)
    if action is None:
        raise CommandError("give one of --accept, --reject and --return")
    if labels and action != "accept":
        raise CommandError("--label belongs to --accept")
    by = person_of(settings, person)
    with fed_view(settings) as view:
        case = one_case(view, key, now_ms())
    if case.state is not State.WAITING:
        raise CommandError(f"ticket {case.ticket_id!r} does not wait: it is {case.state}")
    log_texts(settings, by, "settle", [case.key])
    lying = asyncio.run(look(settings, case))
    shown: dict[str, Any] = {"ticket_id": case.ticket_id, "key": case.key, "action": action, "by": by}
    policy: Policy | None = None
    effects: tuple[Effect, ...] = ()
    if action == "accept":
        if settings.policy is None:
            raise SettingsError(
                "TICKETGATE_POLICY", "not set", "name the policy file that the workers judge by"
            )
        policy = load_policy(settings.policy)
        found = preview(lying, frozenset(labels), policy)
        effects = found.effects
        shown |= {
            "labels": sorted(labels),
            "policy": f"{policy.name} {policy.version}",
            "would_be_accepted": not found.reasons,
            "reasons": [*found.reasons],
            "effects": [{"tool": each.tool, "arguments": dict(each.arguments)} for each in effects],
        }
        if found.reasons:
            _tell(shown, as_json=as_json)
            return EXIT_FINDINGS
    if not yes:
        _tell(shown | {"sent": False}, as_json=as_json)
        say("nothing was sent; add --yes")
        return 0
    settlement = compose(
        settings,
        lying,
        Action(action),
        labels=frozenset(labels),
        policy=policy,
        effects=effects,
        why=why,
        by=by,
        at=datetime.now(UTC),
        key=signing,
    )
    outcome = _send(settings, settlement)
    _tell(shown | {"sent": True, "settlement": settlement.id} | outcome, as_json=as_json)
    return 0 if outcome["outcome"] in ("accepted", "rejected", "returned") else EXIT_FINDINGS


def _send(settings: Settings, settlement: Settlement) -> dict[str, Any]:
    """What became of it, once `settled` says so; `not_taken_yet` if it does not in time."""
    from ticketgate.streams.operations.review.desk import send

    at = asyncio.run(send(settings, settlement))
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        with fed_view(settings) as view:
            rows = view.settlements(id=settlement.id)
        told = [each for each in rows if each["coordinate"] == str(at) and each["outcome"]]
        if told:
            return {name: told[0][name] for name in ("outcome", "code", "reasons")}
        time.sleep(LOOK_EVERY_S)
    say("sent, and not taken yet: it counts once a worker with the role settle takes it")
    return {"outcome": "not_taken_yet", "code": "", "reasons": []}


def _tell(shown: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(shown)
        return
    for name, value in shown.items():
        print_field(name, value)
