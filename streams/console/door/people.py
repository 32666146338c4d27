"""Who may come in: the users' file, and each person as the console knows them.

    {"anna": {"role": "settle", "token": "scrypt$…"}, "ben": {"role": "read", "token": null, "key": "front-desk"}}

token: null for who comes by a proxy alone. key: the one in TICKETGATE_CONSOLE_KEYS that signs for them; left out,
TICKETGATE_CONSOLE_KEY.

Promise: a file that cannot be used is refused at the start; one that breaks later changes nobody's rights, and is told
of. A file is never left half-written.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ticketgate.agents.settling.console_keys import (
    ConsoleKey,
    ConsoleKeysError,
    ConsoleRole,
    load_console_keys,
)
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.json_text import read_json
from ticketgate.codecs.files.kept import write_whole
from ticketgate.codecs.files.watched import Files, FilesWatch
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.console.door.tokens import is_hash

log = logging.getLogger(__name__)

# What cannot be taken for another name: no two letters of these look alike to a program.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
FIELDS = ("role", "token", "key")
SETTING = "TICKETGATE_CONSOLE_USERS"
REMEDY = "write it by `ticketgate console user`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """One who may come in. token: its hash, None for who comes by a proxy alone. key: what signs for them."""

    name: str
    role: ConsoleRole
    token: str | None = field(repr=False)
    key: ConsoleKey = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A person as the file has them. key: the name of one, None for the console's own."""

    role: ConsoleRole
    token: str | None = field(repr=False)
    key: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """As it is written."""
        return {
            "role": str(self.role),
            "token": self.token,
            **({} if self.key is None else {"key": self.key}),
        }


def read_entries(path: Path, *, files: Files | None = None) -> dict[str, Entry]:
    """The file's entries by name. Raises `SettingsError`.

    files: filled with what was read, for who wants to see whether it changes.
    """
    files = Files() if files is None else files
    try:
        content = files.read(
            path, "users' file", remedy="make one by `ticketgate console user add NAME --role settle`"
        )
        document = read_json(content, source=str(path), remedy=REMEDY)
    except FileFault as err:
        where = path if err.line is None else f"{path}:{err.line}"
        raise SettingsError(SETTING, f"{where}: {err.what}", err.remedy) from err
    if not isinstance(document, dict):
        raise SettingsError(SETTING, f"{path}: is no object from names to users", REMEDY)
    return {name: _entry(path, name, given) for name, given in document.items()}


def write_entries(path: Path, entries: Mapping[str, Entry]) -> None:
    """Write the file, for its owner alone, whole or not at all. Raises OSError."""
    document = {name: entry.to_json() for name, entry in sorted(entries.items())}
    write_whole(path, json.dumps(document, indent=1) + "\n")


def require_name(name: str) -> str:
    """The name. Raises ValueError for one that nobody can have."""
    if NAME.fullmatch(name) is None:
        raise ValueError(
            "a name has letters, digits and . _ @ + - alone, at most 128, a letter or digit first"
        )
    return name


class People:
    """Those who may come in, as the files say now. only: the one person of a console without a users' file."""

    def __init__(self, settings: Settings, *, only: tuple[str, str] | None = None) -> None:
        """Reads the files. only: name and hash of the token. Raises `SettingsError` and `ConsoleKeysError`."""
        self._settings, self._only = settings, only
        self._people = self._read(Files())
        self.fault: str | None = None
        """Why the files as they are now are not used; None if they are."""
        self._watch = FilesWatch(
            self._read_again, fault=SettingsError, take_over=self._take_over, keep_old=self._keep_old
        )

    def get(self, name: str) -> Person | None:
        """The person of that name."""
        return self._people.get(name)

    def __len__(self) -> int:
        return len(self._people)

    async def look(self) -> None:
        """Read the files again if they changed, those that the keys name too."""
        await self._watch.look()

    async def _take_over(self, people: dict[str, Person]) -> None:
        was, self._people = self._people, people
        was_broken, self.fault = self.fault is not None, None
        if was_broken or was != people:
            log.info("users and keys were read again: %d people", len(people))

    def _keep_old(self, err: SettingsError) -> None:
        self.fault = str(err)
        log.error("users and keys stay as they were: %s", err)

    def _read_again(self, files: Files) -> dict[str, Person]:
        try:
            return self._read(files)
        except ConsoleKeysError as err:
            raise SettingsError(f"TICKETGATE_CONSOLE_KEYS: {err.where}", err.what, err.remedy) from err

    def _read(self, files: Files) -> dict[str, Person]:
        settings = self._settings
        if settings.console_keys is None:
            raise SettingsError("TICKETGATE_CONSOLE_KEYS", "not set", "name the file of the consoles' keys")
        keys = load_console_keys(settings.console_keys, files=files)
        own = settings.console_key
        if self._only is not None:
            name, token = self._only
            key = _key(keys, own, "TICKETGATE_CONSOLE_KEY")
            role = next((each for each in reversed(ConsoleRole) if _bears(key, each)), None)
            if role is None:
                raise SettingsError(
                    "TICKETGATE_CONSOLE_KEY", f"the key {key.id!r} may not read", "give it the role read"
                )
            return {name: Person(name=name, role=role, token=token, key=key)}
        if settings.console_users is None:
            raise SettingsError(SETTING, "not set", "name the file of who may come in")
        found: dict[str, Person] = {}
        for name, entry in read_entries(settings.console_users, files=files).items():
            where = f"{SETTING}: {settings.console_users}: {name}"
            key = _key(keys, entry.key or own, "TICKETGATE_CONSOLE_KEY" if entry.key is None else where)
            if not _bears(key, entry.role):
                raise SettingsError(
                    where,
                    f"has the role {entry.role}, for which the key {key.id!r} has no role or no private key",
                    "give it a key that may, or another role",
                )
            found[name] = Person(name=name, role=entry.role, token=entry.token, key=key)
        return found


def _bears(key: ConsoleKey, role: ConsoleRole) -> bool:
    """Whether what a person of that role does can be done by a key."""
    if role is ConsoleRole.READ:
        return ConsoleRole.READ in key.roles
    return key.signing is not None and {role, ConsoleRole.SETTLE} <= key.roles


def _key(keys: Mapping[str, ConsoleKey], name: str | None, where: str) -> ConsoleKey:
    if name is None:
        raise SettingsError(where, "not set", "name your key in TICKETGATE_CONSOLE_KEYS")
    if name not in keys:
        raise SettingsError(where, f"no key {name!r}", "name one that TICKETGATE_CONSOLE_KEYS has")
    return keys[name]


def _entry(path: Path, name: str, given: Any) -> Entry:
    where = f"{SETTING}: {path}: {name[:128]}"
    try:
        require_name(name)
    except ValueError as err:
        raise SettingsError(where, "is no name", str(err)) from err
    if not isinstance(given, dict):
        raise SettingsError(where, "is no object", "give role and token")
    if unknown := sorted(set(given) - set(FIELDS)):
        raise SettingsError(where, f"unknown field {unknown[0]!r}", f"the fields are {', '.join(FIELDS)}")
    role, token, key = given.get("role"), given.get("token"), given.get("key")
    if role not in [str(each) for each in ConsoleRole]:
        raise SettingsError(
            where, "role is missing or unknown", f"it is one of {', '.join(map(str, ConsoleRole))}"
        )
    if token is not None and not is_hash(token):
        raise SettingsError(
            where, "token is no hash that is known here", "make one by `ticketgate console user`"
        )
    if key is not None and not isinstance(key, str):
        raise SettingsError(where, "key is no text", "name a key of TICKETGATE_CONSOLE_KEYS")
    return Entry(role=ConsoleRole(role), token=token, key=key)
