"""`ticketgate review settle`: decide a ticket."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.options import TEXT, json_flag, settings_flags
from ticketgate.streams.cli.output import print_field, print_json, quiet_libraries, say
from ticketgate.streams.cli.review.sending import (
    NOTHING_SENT,
    if_interrupted,
    outcome_of,
    send_and_wait,
    wait,
)
from ticketgate.streams.cli.review.sharing import (
    as_flag,
    fed_view,
    log_texts,
    one_case,
    person_of,
)
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.operations.review.moments import moment

if TYPE_CHECKING:
    from ticketgate.agents.policy import Policy
    from ticketgate.codecs.records.pieces import Effect
    from ticketgate.codecs.records.settlement import Settlement
    from ticketgate.streams.operations.review.desk import Lying
    from ticketgate.streams.operations.review.rows import Case
    from ticketgate.streams.operations.review.said_before import UnderWay


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

    After Ctrl-C, a crash or a broker that went away, run the same command again: it looks first for what you sent
    before, sends nothing beside that, and ends with 0 if the ticket is settled as you say. While another settlement of
    the ticket is under way it sends nothing, and says which that is.
    """
    quiet_libraries()
    with if_interrupted(NOTHING_SENT):
        given = _Given(key, action, labels, why, yes, as_json)
        prepared = _prepare(given, person, settings)
    if isinstance(prepared, int):
        return prepared
    if prepared.before is None:
        outcome = send_and_wait(settings, prepared.settlement)
    else:
        say("you sent this settlement before; nothing is sent, and it is waited for")
        outcome = wait(settings, prepared.before.settlement, prepared.before.coordinate)
    return _end(prepared.shown | {"sent": prepared.before is None} | outcome, as_json=as_json)


@dataclass(frozen=True, slots=True)
class _Given:
    """What was asked for on the command line."""

    key: str
    action: str | None
    labels: tuple[str, ...]
    why: str
    yes: bool
    as_json: bool


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What is to be sent, or, `before`, was. shown: what is told of it."""

    settlement: Settlement
    before: UnderWay | None
    shown: dict[str, Any]


def _prepare(given: _Given, person: str | None, settings: Settings) -> _Prepared | int:
    """All that comes before sending; the exit code where nothing is to be sent."""
    from ticketgate.agents.settling.console_keys import ConsoleRole
    from ticketgate.codecs.records.settlement import Action
    from ticketgate.streams.operations.review.desk import compose, look, require_key
    from ticketgate.streams.operations.review.feeding import now_ms
    from ticketgate.streams.operations.review.rows import State
    from ticketgate.streams.operations.review.said_before import says_the_same, under_way

    signing, action = require_key(settings, ConsoleRole.SETTLE), given.action
    if action is None:
        raise CommandError("give one of --accept, --reject and --return")
    if given.labels and action != "accept":
        raise CommandError("--label belongs to --accept")
    by = person_of(settings, person)
    with fed_view(settings) as view:
        case = one_case(view, given.key, now_ms())
        rows = view.settlements(key=case.key)
    shown: dict[str, Any] = {"ticket_id": case.ticket_id, "key": case.key, "action": action, "by": by}
    if case.state is not State.WAITING:
        return _settled_so(given, case, rows, shown)
    log_texts(settings, by, "settle", [case.key])
    lying = asyncio.run(look(settings, case))
    policy, effects = _judged(given, lying, settings, shown) if action == "accept" else (None, ())
    if shown.get("reasons"):
        _tell(shown, as_json=given.as_json)
        return EXIT_FINDINGS
    settlement = compose(
        settings,
        lying,
        Action(action),
        labels=frozenset(given.labels),
        policy=policy,
        effects=effects,
        why=given.why,
        by=by,
        at=datetime.now(UTC),
        key=signing,
    )
    others = asyncio.run(under_way(settings, case, rows))
    before = next((each for each in others if says_the_same(each.settlement, settlement)), None)
    if before is None and others:
        return _another_waits(given, others[0], shown)
    if not given.yes:
        _tell(shown | {"sent": False}, as_json=given.as_json)
        say("nothing was sent; add --yes" if before is None else "you sent this before; --yes waits for it")
        return 0
    return _Prepared(settlement, before, shown)


def _judged(
    given: _Given, lying: Lying, settings: Settings, shown: dict[str, Any]
) -> tuple[Policy, tuple[Effect, ...]]:
    """The policy and the effects of what is to be accepted, and into `shown` what it says."""
    from ticketgate.agents.policy import load_policy
    from ticketgate.streams.operations.review.desk import preview

    if settings.policy is None:
        raise SettingsError("TICKETGATE_POLICY", "not set", "name the policy file that the workers judge by")
    policy = load_policy(settings.policy)
    found = preview(lying, frozenset(given.labels), policy)
    shown |= {
        "labels": sorted(given.labels),
        "policy": f"{policy.name} {policy.version}",
        "would_be_accepted": not found.reasons,
        "reasons": [*found.reasons],
        "effects": [{"tool": each.tool, "arguments": dict(each.arguments)} for each in found.effects],
    }
    return policy, found.effects


def _settled_so(given: _Given, case: Case, rows: list[dict[str, Any]], shown: dict[str, Any]) -> int:
    """Of a ticket that waits no more: done, if it is settled as is asked for. Raises `CommandError`."""
    from ticketgate.streams.operations.review.said_before import settled_by, told_the_same

    told = settled_by(case, rows)
    labels = set(given.labels)
    if told is None or not told_the_same(told, by=shown["by"], action=str(given.action), labels=labels):
        by = "" if told is None else f" by {told['by']}, {moment(told['at_ms'])} UTC"
        raise CommandError(f"ticket {case.ticket_id!r} does not wait: it is {case.state}{by}")
    say(f"you settled it so before, {moment(told['at_ms'])} UTC; nothing was sent")
    return _end(shown | {"sent": False} | outcome_of(told), as_json=given.as_json)


def _another_waits(given: _Given, other: UnderWay, shown: dict[str, Any]) -> int:
    said = other.settlement
    waits = {"action": str(said.action), "labels": list(said.labels), "by": said.by, "id": said.id}
    _tell(shown | {"sent": False, "under_way": waits}, as_json=given.as_json)
    until = moment(round(said.expires_at.timestamp() * 1000))
    say(
        f"nothing was sent: another settlement of it is under way, {said.action} by {said.by}, and counts if a worker"
        f" takes it until {until} UTC; `ticketgate review show` tells what became of it"
    )
    return EXIT_FINDINGS


def _end(shown: dict[str, Any], *, as_json: bool) -> int:
    from ticketgate.streams.operations.review.rows import EFFECTIVE

    _tell(shown, as_json=as_json)
    return 0 if shown["outcome"] in EFFECTIVE else EXIT_FINDINGS


def _tell(shown: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(shown)
        return
    for name, value in shown.items():
        print_field(name, value)
