"""`ticketgate topics create`: what the settings name, made if it is missing."""

from __future__ import annotations

import asyncio

import click
from ticketgate.streams.cli.options import json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, print_table, quiet_libraries
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.making_topics import make_topics


@click.group("topics")
def command() -> None:
    """The topics that the settings name."""


@command.command("create")
@json_flag
@settings_flags("kafka", "partitions", "replication")
def create(as_json: bool, settings: Settings) -> None:
    """Make the topics that the settings name, with their retention.

    Those that are there stay as they are, and the table says where they differ from the settings.
    """
    quiet_libraries()
    created = asyncio.run(make_topics(settings))
    if as_json:
        for each in created:
            print_json({"topic": each.name, "created": each.is_new, "differences": each.differences})
        return
    print_table(
        ("topic", "", "differs from the settings"),
        [
            (each.name, "created" if each.is_new else "is there", "; ".join(each.differences))
            for each in created
        ],
    )
