"""The keys file: which console may read, settle or administer, and by which key its settlements are known.

    [front-desk]
    algorithm = "EdDSA"
    roles = ["read", "settle"]
    public_key_file = "front-desk.pub.pem"       # what a worker needs
    private_key_file = "front-desk.pem"          # what the console that signs needs beside it

With HS256, HS384 or HS512 both need the same `secret_file`. Paths are relative to the file.

Promise: a key that could not be used, or that fits none of what it is listed for, is refused when the file is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from jwt.api_jws import PyJWS
from ticketgate.agents.funnel.lookups.algorithms import (
    PUBLIC_KEY_ALGORITHMS,
    SHARED_SECRET_ALGORITHMS,
)
from ticketgate.agents.funnel.lookups.key_lengths import key_fits
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.reading import text_of
from ticketgate.codecs.files.toml_text import read_toml
from ticketgate.codecs.files.watched import Files

FIELDS = ("algorithm", "roles", "secret_file", "public_key_file", "private_key_file")


class ConsoleRole(StrEnum):
    """What a key's holder may do."""

    READ = "read"
    """Read what waits, with its text."""

    SETTLE = "settle"
    """Decide it."""

    ADMINISTER = "administer"
    """Erase who a pseudonym stands for."""


class ConsoleKeysError(Exception):
    """The file cannot be used. `where` is the file or a key in it, `what` is wrong, `remedy` the way out."""

    def __init__(self, where: str, what: str, remedy: str) -> None:
        super().__init__(f"{where}: {what}; {remedy}")
        self.where, self.what, self.remedy = where, what, remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleKey:
    """One key. verifying: the secret, or the public key. signing: None where this side only verifies."""

    id: str
    algorithm: str
    roles: frozenset[ConsoleRole]
    verifying: bytes = field(repr=False)
    signing: bytes | None = field(default=None, repr=False)


ConsoleKeys = Mapping[str, ConsoleKey]


def load_console_keys(path: Path, *, files: Files | None = None) -> ConsoleKeys:
    """The file's keys by id. Raises ConsoleKeysError.

    files: filled with what was read, for who wants to see whether it changes.
    """
    files = Files() if files is None else files
    try:
        text = text_of(files.read(path, "file of keys"), str(path))
        document = read_toml(text, source=str(path))
    except FileFault as err:
        where = str(path) if err.line is None else f"{path}:{err.line}"
        raise ConsoleKeysError(where, err.what, err.remedy) from err
    if not document:
        raise ConsoleKeysError(str(path), "has no key", "add a table for each, such as [front-desk]")
    return {name: _read_key(path, name, given, files) for name, given in document.items()}


def _read_key(path: Path, name: str, given: Any, files: Files) -> ConsoleKey:
    where = f"{path}: [{name}]"
    if not isinstance(given, dict):
        raise ConsoleKeysError(where, "is no table", "give algorithm, roles and a key file")
    if unknown := sorted(set(given) - set(FIELDS)):
        raise ConsoleKeysError(where, f"unknown field {unknown[0]}", f"the fields are {', '.join(FIELDS)}")
    algorithm = given.get("algorithm")
    is_shared = algorithm in SHARED_SECRET_ALGORITHMS
    if not is_shared and algorithm not in PUBLIC_KEY_ALGORITHMS:
        known = ", ".join((*SHARED_SECRET_ALGORITHMS, *PUBLIC_KEY_ALGORITHMS))
        raise ConsoleKeysError(where, "algorithm is missing or unknown", f"it is one of {known}")
    if algorithm not in PyJWS().get_algorithms():
        raise ConsoleKeysError(where, f"{algorithm} needs cryptography", "pip install 'ticketgate[signed]'")
    verifying_file, signing_file = (
        ("secret_file", "secret_file") if is_shared else ("public_key_file", "private_key_file")
    )
    if misplaced := [
        each for each in FIELDS[2:] if each in given and each not in (verifying_file, signing_file)
    ]:
        raise ConsoleKeysError(where, f"{misplaced[0]} is not for {algorithm}", f"give {verifying_file}")
    verifying = _read_file(path, where, given, verifying_file, algorithm, files)
    if verifying is None:
        raise ConsoleKeysError(where, f"{verifying_file} is missing", "name the file with the key")
    signing = verifying if is_shared else _read_file(path, where, given, signing_file, algorithm, files)
    return ConsoleKey(
        id=name, algorithm=algorithm, roles=_roles(where, given), verifying=verifying, signing=signing
    )


def _roles(where: str, given: Mapping[str, Any]) -> frozenset[ConsoleRole]:
    roles, known = given.get("roles"), [str(role) for role in ConsoleRole]
    if not isinstance(roles, list) or not roles or any(each not in known for each in roles):
        raise ConsoleKeysError(where, "roles is missing or unknown", f"give some of {', '.join(known)}")
    return frozenset(ConsoleRole(each) for each in roles)


def _read_file(
    path: Path, where: str, given: Mapping[str, Any], name: str, algorithm: str, files: Files
) -> bytes | None:
    if name not in given:
        return None
    if not isinstance(given[name], str):
        raise ConsoleKeysError(where, f"{name} is no text", "name a file")
    try:
        key = files.read(path.parent / given[name], name).strip()
    except FileFault as err:
        raise ConsoleKeysError(where, err.what, err.remedy) from err
    if not key_fits(key, algorithm):
        raise ConsoleKeysError(
            where, f"{name} is too short or no key for {algorithm}", "make one of its kind and length"
        )
    return key
