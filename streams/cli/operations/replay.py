"""`ticketgate replay`: set a group's offsets back on purpose."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import click
from ticketgate.agents.plural import counted
from ticketgate.codecs.values.times import parse_rfc3339
from ticketgate.streams.cli.inputs import of_flag
from ticketgate.streams.cli.options import json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, print_table, quiet_libraries, say
from ticketgate.streams.cli.steps import Progress, steps
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.streams.operations.inputs import InputName, Source
    from ticketgate.streams.operations.replay import Plan
    from ticketgate.streams.operations.replay_places import ReplayFrom


@click.command("replay")
@click.option(
    "--replay-from",
    "place",
    required=True,
    metavar="marks|cut|beginning|OFFSET|TIME",
    help="marks: where commits ended. cut: where a topic that lost its end has records that were not decided."
    " OFFSET: with --partition. TIME: such as 2026-11-29T18:00:00Z.",
)
@of_flag(
    "Whose offsets; dispatch: those of the effects. dispatch and settlements: to marks or cut alone.",
    "dispatch",
)
@click.option("--partition", type=click.IntRange(min=0), help="This partition alone.")
@click.option("--yes", is_flag=True, help="Do it; without, it only says what would come of it.")
@json_flag
@settings_flags("kafka", "redis", "namespace", "group")
def command(
    place: str,
    of: InputName | Literal["dispatch"],
    partition: int | None,
    yes: bool,
    as_json: bool,
    settings: Settings,
) -> None:
    """Set the workers' offsets back, while no worker runs.

    `--replay-from marks` goes on where commits ended and emits nothing again: the remedy for offsets that were reset
    or deleted. `--replay-from cut` goes on at the first input that was not decided: the remedy for a topic that lost
    its end. Any other place decides inputs a second time and EMITS THEM AGAIN under their old idempotency keys:
    it says how many, and without --yes it does nothing else.
    """
    quiet_libraries()
    from ticketgate.streams.operations.inputs import dispatched, input_of

    wanted = parse_place(place)
    chosen = dispatched(settings) if of == "dispatch" else input_of(of, settings)
    with steps() as progress:
        plan = asyncio.run(_replay(settings, chosen, wanted, partition, yes, progress))
    if as_json:
        print_json(to_json(plan) | {"done": yes})
    else:
        show(plan, is_done=yes, topic=chosen.topic)


def parse_place(text: str) -> ReplayFrom:
    """Raises `CommandError`."""
    from ticketgate.streams.operations.replay_places import (
        FromBeginning,
        FromCut,
        FromMarks,
        FromOffset,
        FromTime,
    )

    if text == "marks":
        return FromMarks()
    if text == "cut":
        return FromCut()
    if text == "beginning":
        return FromBeginning()
    if text.isascii() and text.isdigit() and len(text) < 19:
        return FromOffset(int(text))
    try:
        return FromTime(parse_rfc3339(text))
    except ValueError as err:
        raise CommandError(
            f"--replay-from: {text!r} must be marks, cut, beginning, an offset or a time such as 2026-11-29T18:00:00Z"
        ) from err


async def _replay(
    settings: Settings, of: Source, place: ReplayFrom, partition: int | None, yes: bool, progress: Progress
) -> Plan:
    from ticketgate.streams.kafka.group import GroupHasMembers
    from ticketgate.streams.operations.command_redis import open_redis
    from ticketgate.streams.operations.replay import carry_out, plan_replay

    try:
        async with open_redis(settings) as redis:
            plan = await plan_replay(settings, of, redis, place, partition=partition, progress=progress)
            if yes:
                await carry_out(settings, of, redis, plan)
            return plan
    except GroupHasMembers as err:
        raise CommandError(str(err)) from err


def to_json(plan: Plan) -> dict[str, object]:
    """The plan as data."""
    return {
        "emitted_again": plan.emitted_again,
        "deduplicate_back_to": _time(plan.oldest_ms),
        "partitions": [
            {
                "partition": each.partition,
                "committed": each.committed,
                "mark": each.mark,
                "to": each.to,
                "read_again": each.read_again if each.is_change else 0,
                "emitted_again": each.emitted_again if each.is_change else 0,
            }
            for each in plan.partitions
        ],
    }


def show(plan: Plan, *, is_done: bool, topic: str) -> None:
    """What a person must know before, and what was done."""
    if not plan.changes:
        click.echo("nothing to do: every offset is where it should be")
        return
    print_table(
        ("partition", "offset now", "offset then", "read again", "emitted again"),
        [
            (
                str(each.partition),
                "none" if each.committed is None else str(each.committed),
                str(each.to),
                f"{each.read_again:,}",
                f"{each.emitted_again:,}",
            )
            for each in plan.changes
        ],
    )
    if plan.emitted_again:
        ends = ", ".join(
            f"{topic}:{each.partition} past {each.to + each.read_again}"
            for each in plan.changes
            if each.emitted_again
        )
        click.echo(
            f"Decided and EMITTED AGAIN, under the old idempotency keys: {counted(plan.emitted_again, 'record')}."
        )
        click.echo(
            "Consumers must deduplicate by ticketgate-idempotency-key against all that they took since"
            f" {_time(plan.oldest_ms) or 'the beginning'}, until the group is at {ends}."
        )
    else:
        click.echo("It goes on where commits ended, and emits nothing again.")
    say("done; start the workers" if is_done else "nothing was changed; add --yes to do it")


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="seconds")
