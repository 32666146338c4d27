"""`ticketgate settings`: every setting, its value, where it came from, and what it means."""

from __future__ import annotations

import os
from datetime import timedelta
from urllib.parse import urlsplit

import click
from pydantic import SecretStr
from ticketgate.codecs.values.redact import HIDDEN, redact
from ticketgate.streams.cli.options import json_flag
from ticketgate.streams.cli.output import print_json, print_table, say
from ticketgate.streams.config.kafka_settings import Key
from ticketgate.streams.config.setting_kinds import show_duration
from ticketgate.streams.config.settings import CONFIG_VARIABLE, PREFIX, Settings, load_settings

# What may stand behind an address without being a secret.
_PLAIN_PATHS = "/0123456789"


@click.command("settings")
@json_flag
def command(as_json: bool) -> None:
    """Show every setting: its name, value, source and meaning. Secrets are hidden.

    A setting is a TICKETGATE_ variable, or the same name without the prefix, in small letters, in the TOML file that
    TICKETGATE_CONFIG names. The variable goes over the file, a command's flag over both.
    """
    loaded = load_settings()
    rows = [
        {
            "name": f"{PREFIX}{name.upper()}",
            "value": shown(getattr(loaded.settings, name)),
            "source": loaded.sources[name],
            "meaning": field.description,
        }
        for name, field in Settings.model_fields.items()
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return
    print_table(
        ("setting", "value", "source", "meaning"),
        [(str(row["name"]), _text(row["value"]), str(row["source"]), str(row["meaning"])) for row in rows],
    )
    if path := os.environ.get(CONFIG_VARIABLE):
        say(f"{CONFIG_VARIABLE} names the file {path}")
    else:
        say(f"no file is read; {CONFIG_VARIABLE} can name one (TOML, names such as `web_port = 6066`)")


def shown(value: object) -> str | int | float | bool | None:
    """A setting's value as a person would write it, secrets hidden."""
    if isinstance(value, Key):
        return HIDDEN
    if isinstance(value, tuple):
        return ",".join(str(shown(each)) for each in value) or None
    if isinstance(value, SecretStr):
        return hide_secrets(value.get_secret_value())
    if isinstance(value, timedelta):
        return show_duration(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return redact(str(value))


def hide_secrets(url: str) -> str:
    """`redis://********@host:6379/0`: host, port and database of a URL, and nothing else that stands in it.

    What is not plainly that, such as a password with an unescaped `/` or `?`, is hidden whole.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return HIDDEN
    if not host or parts.fragment or parts.path.strip(_PLAIN_PATHS) or "@" in parts.query or not parts.scheme:
        return HIDDEN
    address = f"[{host}]" if ":" in host else host
    return (
        f"{parts.scheme}://"
        + (f"{HIDDEN}@" if "@" in parts.netloc else "")
        + address
        + (f":{port}" if port is not None else "")
        + parts.path
        + (f"?{HIDDEN}" if parts.query else "")
    )


def _text(value: object) -> str:
    if value is None:
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
