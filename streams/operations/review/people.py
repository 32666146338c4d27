"""Who reads and settles here: pseudonyms, the file that says whom they stand for, and the log of what was read.

Promise: a record on a topic bears the pseudonym alone. Erasing a person's line erases whom it stands for: nothing in
the pseudonym tells, and no other process that writes at that moment brings it back. Both files are their owner's alone,
and a half-written one is never left behind.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from ticketgate.codecs.files.kept import alone, write_whole
from ticketgate.codecs.values.times import rfc3339
from ticketgate.streams.config.usage import CommandError


def pseudonym_of(path: Path, name: str) -> str:
    """The person's pseudonym, made at the first time. Raises `CommandError` for a file that cannot be used."""
    people = _read(path)
    if name in people:
        return people[name]
    with _changing(path) as people:
        return people.setdefault(name, f"p-{secrets.token_hex(8)}")


def names(path: Path) -> dict[str, str]:
    """From pseudonyms to names. Raises `CommandError`."""
    return {pseudonym: name for name, pseudonym in _read(path).items()}


def forget(path: Path, name: str) -> bool:
    """Erase whom a pseudonym stands for; False if nobody of that name is there. Raises `CommandError`."""
    with _changing(path) as people:
        return people.pop(name, None) is not None


def log_reading(path: Path, *, at: datetime, by: str, command: str, tickets: list[str]) -> None:
    """Write down who was shown the text of which tickets, before it is shown. Raises `CommandError`: what cannot be
    logged is not shown."""
    line = json.dumps({"at": rfc3339(at), "by": by, "command": command, "tickets": tickets}) + "\n"
    try:
        with os.fdopen(
            os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8"
        ) as log:
            log.write(line)
    except OSError as err:
        raise CommandError(
            f"{path}: cannot be written ({err.strerror}), and no text is shown without it"
        ) from err


@contextmanager
def _changing(path: Path) -> Iterator[dict[str, str]]:
    """The people, written at the end if they were changed; nobody else changes them meanwhile."""
    try:
        with alone(path):
            people = _read(path)
            before = dict(people)
            yield people
            if people != before:
                write_whole(path, json.dumps(people, indent=1, sort_keys=True) + "\n")
    except OSError as err:
        raise CommandError(
            f"{path}: cannot be written ({err.strerror}); name another TICKETGATE_REVIEW_VIEW"
        ) from err


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as err:
        raise CommandError(f"{path}: cannot be read ({err}); mend it, or take it away") from err
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise CommandError(f"{path}: is no object from names to pseudonyms; mend it, or take it away")
    return found
