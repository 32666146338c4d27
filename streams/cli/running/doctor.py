"""`ticketgate doctor`: what a deployment needs, each in a line with its remedy."""

from __future__ import annotations

import asyncio

import click
from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.options import json_flag
from ticketgate.streams.cli.output import print_json, quiet_libraries, say
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.process.doctor.examine import examine
from ticketgate.streams.process.doctor.finding import Finding, fault_of
from ticketgate.streams.process.doctor.local import look_at_versions

_MARKS = {"ok": "ok", "warning": "look", "fault": "FAULT"}


@click.command("doctor")
@click.option("--kafka", help="Kafka bootstrap servers, comma-separated host:port.")
@click.option("--redis", help="URL of the Redis or Valkey that holds the claims.")
@click.option("--policy", help="The policy file.")
@click.option(
    "--role", "roles", help="What the worker does, comma-separated: decide, propose, effects, settle."
)
@click.option("--funnel", help="The funnel file, for propose and effects.")
@json_flag
def command(as_json: bool, **flags: str | None) -> int:
    """Look at all that a worker needs, and say of each in a line how it stands and what mends it: versions, settings,
    policy, model, broker (where it sends its clients too), topics, Redis, clocks, the web port.

    Nothing is changed. Exit code 0 if a worker would run, 3 if something is in its way.
    """
    quiet_libraries()
    try:
        settings = load_settings(flags).settings
    except SettingsError as err:
        found = [*look_at_versions(), fault_of("settings", err)]
    else:
        found = asyncio.run(examine(settings))
    faults = sum(each.status == "fault" for each in found)
    for each in found:
        _tell(each, as_json)
    if faults:
        say(f"{counted(faults, 'fault')}: a worker with these settings would not do its work")
    return EXIT_FINDINGS if faults else 0


def _tell(finding: Finding, as_json: bool) -> None:
    if as_json:
        print_json(finding.to_json())
        return
    click.echo(f"{_MARKS[finding.status]:<6}{finding.check:<9}{finding.what}")
    if finding.remedy:
        click.echo(f"{'':<15}{finding.remedy}")
