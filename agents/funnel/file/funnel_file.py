"""From a funnel file's TOML to what a worker needs, or to one line that says why not.

Promise: what comes out contradicts nothing that can be seen without asking anyone: every name names something, every
template can be filled, and no effect is automatic that could not be read back though it cannot be undone.
"""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.file.catalogue_file import (
    BUILT_IN,
    PAGE,
    CatalogueError,
    load_catalogue,
)
from ticketgate.agents.funnel.file.funnel_checks import Fault, contradictions, dotted, nearest
from ticketgate.agents.funnel.file.funnel_specs import (
    Document,
    FunnelFile,
    FunnelFileError,
    HttpLookup,
    HttpProvider,
    LookupSpecs,
    RedisLookup,
    RedisProvider,
    SignedLookup,
    ToolEffect,
)
from ticketgate.agents.funnel.file.opening import OpenProviders, open_lookup, open_providers
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.meant import meant
from ticketgate.codecs.files.positions import Path as Place
from ticketgate.codecs.files.positions import line_of, locate
from ticketgate.codecs.files.reading import read_text
from ticketgate.codecs.files.toml_text import read_toml
from ticketgate.codecs.values.strict import encode

__all__ = [
    "FunnelFile",
    "FunnelFileError",
    "OpenProviders",
    "load_funnel_file",
    "open_lookup",
    "open_providers",
]

_ADAPTERS = ("http", "redis", "signed")
_KINDS: dict[tuple[str, str], type] = {
    ("lookup", "http"): HttpLookup,
    ("lookup", "redis"): RedisLookup,
    ("lookup", "signed"): SignedLookup,
    ("providers", "http"): HttpProvider,
    ("providers", "redis"): RedisProvider,
}


def load_funnel_file(path: Path) -> FunnelFile:
    """The funnel file at `path`, with its catalogue. Raises FunnelFileError."""
    try:
        text = read_text(path, kind="funnel file", remedy="name a readable file")
    except FileFault as err:
        where = str(path) if err.line is None else f"{path}:{err.line}"
        raise FunnelFileError(where, err.what, err.remedy) from err

    def refused_at(line: int | None, what: str, remedy: str) -> FunnelFileError:
        return FunnelFileError(str(path) if line is None else f"{path}:{line}", what, remedy)

    try:
        written = read_toml(text, source=str(path))
    except FileFault as err:
        raise refused_at(err.line, err.what, err.remedy) from err
    lines = locate(text)

    def refused(fault: Fault) -> FunnelFileError:
        place, what, remedy = fault
        return refused_at(line_of(lines, place), what, remedy)

    try:
        document = _check().validate_json(encode(written), strict=True)
    except ValidationError as err:
        faults = err.errors(include_url=False, include_input=False)
        # A field under another name is unknown and missing: the first of these says what was meant.
        unknown = [each for each in faults if each["type"] == "unexpected_keyword_argument"]
        first = (unknown or faults)[0]
        place = tuple(first["loc"])
        found = meant(first["type"], place, written, top=("catalogue",))
        raise refused(_worded(first) if found is None else (place, *found)) from None
    catalogue = _catalogue(document, path, refused)
    for fault in contradictions(document, catalogue):
        raise refused(fault)
    return FunnelFile(
        path=path,
        catalogue=catalogue,
        lookup=document.lookup,
        providers=document.providers,
        tools=document.tools,
    )


@cache
def _check() -> TypeAdapter[Document]:
    return TypeAdapter(Document)


def _catalogue(
    document: Document, path: Path, refused: Callable[[Fault], FunnelFileError]
) -> Catalogue | None:
    name = document.catalogue
    if name is None:
        return None
    try:
        return load_catalogue(name if name in BUILT_IN else str(path.parent / name))
    except CatalogueError as err:
        raise refused((("catalogue",), err.summary, "mend or name the catalogue")) from err


def _worded(error: ErrorDetails) -> Fault:
    """pydantic's finding in a funnel file's words."""
    place, kind, message = tuple(error["loc"]), error["type"], error["msg"]
    if len(place) > 2 and place[0] in ("lookup", "providers") and place[2] in _ADAPTERS:
        # The union's tag, which stands in no file.
        spec = _KINDS[str(place[0]), str(place[2])]
        place = (*place[:2], *place[3:])
    else:
        spec = _spec_at(place)
    table, name = dotted(place[:-1]) or "the file", str(place[-1]) if place else ""
    if kind == "missing":
        return place[:-1], f'{table} has no "{name}"', "add it"
    if kind == "unexpected_keyword_argument":
        known = [each.name for each in fields(spec)]
        return place, f'unknown field "{name}" in {table}', nearest(name, known)
    if kind == "union_tag_not_found":
        return (
            place,
            f'{dotted(place)} has no "adapter"',
            f'add adapter = "http", or one of {_offered(place)}',
        )
    if kind == "union_tag_invalid":
        return place, f"{dotted(place)}: no such adapter", f"there are {_offered(place)}"
    return place, f"{dotted(place) or 'the file'}: {message[:1].lower()}{message[1:]}", PAGE


def _spec_at(place: Place) -> type:
    if place[:1] == ("tools",) and len(place) > 2:
        return ToolEffect
    return LookupSpecs if place[:1] == ("lookup",) and len(place) == 2 else Document


def _offered(place: Place) -> str:
    return ", ".join(adapter for where, adapter in _KINDS if where == place[0])
