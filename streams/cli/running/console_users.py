"""`ticketgate console user`: who may come in. Each change is made to the whole file or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from ticketgate.streams.cli.options import TEXT, json_flag, settings_flags
from ticketgate.streams.cli.output import print_field, print_json, print_table, say
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError

if TYPE_CHECKING:
    from ticketgate.streams.console.door.people import Entry

ROLES = ("read", "settle", "administer")


@click.group("user")
def user() -> None:
    """Who may come in to the console: the file that TICKETGATE_CONSOLE_USERS names.

    Of a token only a hash is kept: it is told once. A running console reads the file again within a second, and ends
    the sessions of whom it concerns.
    """


@user.command("add")
@click.argument("name", type=TEXT)
@click.option("--role", type=click.Choice(ROLES), required=True, help="What this person may do.")
@click.option("--key", type=TEXT, help="Key that signs for them.  [default: TICKETGATE_CONSOLE_KEY]")
@click.option("--by-proxy", is_flag=True, help="No token: a proxy of TICKETGATE_CONSOLE_PROXY names them.")
@json_flag
@settings_flags("console_users")
def add(name: str, role: str, key: str | None, by_proxy: bool, as_json: bool, settings: Settings) -> None:
    """Let NAME in, and print the token to sign in by."""
    from ticketgate.agents.settling.console_keys import ConsoleRole
    from ticketgate.streams.console.door.people import Entry, require_name

    try:
        require_name(name)
    except ValueError as err:
        raise CommandError(f"{name!r} is no name: {err}") from err
    token, written = (None, None) if by_proxy else _new_token()
    with _changing(settings) as entries:
        if name in entries:
            raise CommandError(f"{name} may come in already; use `ticketgate console user change`")
        entries[name] = Entry(role=ConsoleRole(role), token=written, key=key)
    _tell(name, token, as_json=as_json)


@user.command("change")
@click.argument("name", type=TEXT)
@click.option("--role", type=click.Choice(ROLES), help="Another role.")
@click.option("--key", type=TEXT, help="Another key that signs for them.")
@click.option("--new-token", is_flag=True, help="Another token; the old one is good for nothing more.")
@click.option("--by-proxy", is_flag=True, help="No token any more.")
@json_flag
@settings_flags("console_users")
def change(
    name: str,
    role: str | None,
    key: str | None,
    new_token: bool,
    by_proxy: bool,
    as_json: bool,
    settings: Settings,
) -> None:
    """Change what is known of NAME. Their sessions end."""
    from ticketgate.agents.settling.console_keys import ConsoleRole

    if new_token and by_proxy:
        raise CommandError("give one of --new-token and --by-proxy")
    if role is None and key is None and not new_token and not by_proxy:
        raise CommandError("give what changes: --role, --key, --new-token or --by-proxy")
    token: str | None = None
    with _changing(settings) as entries:
        entry = _known(entries, name)
        if role is not None:
            entry = replace(entry, role=ConsoleRole(role))
        if key is not None:
            entry = replace(entry, key=key)
        if by_proxy:
            entry = replace(entry, token=None)
        if new_token:
            token, written = _new_token()
            entry = replace(entry, token=written)
        entries[name] = entry
    _tell(name, token, as_json=as_json)


@user.command("remove")
@click.argument("name", type=TEXT)
@settings_flags("console_users")
def remove(name: str, settings: Settings) -> None:
    """Let NAME in no more. Their sessions end; what they settled keeps their pseudonym."""
    with _changing(settings) as entries:
        _known(entries, name)
        del entries[name]
    say(f"{name} may not come in any more")


@user.command("list")
@json_flag
@settings_flags("console_users")
def list_(as_json: bool, settings: Settings) -> None:
    """List who may come in, as what, and how they are known."""
    from ticketgate.streams.console.door.people import read_entries

    rows = [
        {
            "name": name,
            "role": str(entry.role),
            "known_by": "proxy" if entry.token is None else "token",
            "key": entry.key or settings.console_key,
        }
        for name, entry in read_entries(_file(settings)).items()
    ]
    if as_json:
        for row in rows:
            print_json(row)
        return
    print_table(
        ("name", "role", "known by", "key"), [[str(cell or "-") for cell in row.values()] for row in rows]
    )


def _file(settings: Settings) -> Path:
    if settings.console_users is None:
        raise SettingsError("TICKETGATE_CONSOLE_USERS", "not set", "name the file of who may come in")
    return settings.console_users


@contextmanager
def _changing(settings: Settings) -> Iterator[dict[str, Entry]]:
    """The entries, written back at the end. Two commands at once wait for one another."""
    from ticketgate.codecs.files.kept import alone
    from ticketgate.streams.console.door.people import read_entries, write_entries

    path = _file(settings)
    try:
        with alone(path):
            entries = read_entries(path) if path.exists() else {}
            yield entries
            write_entries(path, entries)
    except OSError as err:
        raise CommandError(
            f"TICKETGATE_CONSOLE_USERS: {path} cannot be written ({err.strerror}); name another file"
        ) from err


def _known(entries: dict[str, Entry], name: str) -> Entry:
    if name not in entries:
        raise CommandError(f"nobody of the name {name!r} may come in; see `ticketgate console user list`")
    return entries[name]


def _new_token() -> tuple[str, str]:
    from ticketgate.streams.console.door.tokens import hashed, new_token

    token = new_token()
    return token, hashed(token)


def _tell(name: str, token: str | None, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "token": token})
    elif token is None:
        say(f"{name} is known by the proxy's word")
    else:
        print_field("token", token)
        say(f"give it to {name}; it is not kept here, and told no second time")
