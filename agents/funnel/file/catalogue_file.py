"""From a catalogue's TOML to a catalogue, or to everything that is wrong with it by line.

Promise: what comes out can be judged by. A field without type, role, source or setter is refused, and so is a control
or a fact that a model could set, a name that nothing bears, and a bound that is no value.
"""

from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from ticketgate.agents.effects.states import States
from ticketgate.agents.funnel.catalogue import Catalogue, FieldSpec, Precondition, Tool
from ticketgate.agents.funnel.values import read_money
from ticketgate.agents.policy.errors import PolicyError, Problem, ProblemCode
from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.meant import meant
from ticketgate.codecs.files.positions import Path as Place
from ticketgate.codecs.files.positions import line_of, locate
from ticketgate.codecs.files.reading import read_text
from ticketgate.codecs.files.toml_text import read_toml
from ticketgate.codecs.values.strict import encode

# The catalogues that come along, by name.
BUILT_IN = ("payments", "support")

# What a funnel file has beside tools, and a catalogue never.
_OF_FUNNEL_FILES = frozenset({"catalogue", "lookup", "providers"})

MAX_CATALOGUE_BYTES = 2**20

PAGE = "write it as `ticketgate manual funnel` shows"


class CatalogueError(PolicyError):
    """The catalogue cannot be used. Not retried: a person edits the file. Worded as a policy's errors are."""


def load_catalogue(name: str) -> Catalogue:
    """The built-in catalogue of that name, else the one in the file of that name. Raises CatalogueError."""
    try:
        if name in BUILT_IN:
            return parse_catalogue(example(f"{name}.toml"), source=f"{name}.toml")
        remedy = f"name a readable file, or one of {', '.join(BUILT_IN)}"
        return parse_catalogue(read_text(Path(name), kind="catalogue", remedy=remedy), source=name)
    except FileFault as err:
        code: ProblemCode = "unreadable" if err.is_unreadable else "invalid"
        raise CatalogueError(name, [Problem(err.line, err.what, err.remedy, code)]) from err


def example(name: str) -> str:
    """The text of a file in agents/funnel/examples/."""
    return (resources.files("ticketgate.agents.funnel") / "examples" / name).read_text(encoding="utf-8")


def parse_catalogue(text: str, *, source: str = "catalogue") -> Catalogue:
    """The catalogue that a TOML text writes. Raises CatalogueError with every problem of grammar or shape."""
    try:
        written = read_toml(text, source=source)
    except FileFault as err:
        raise CatalogueError(source, [Problem(err.line, err.what, err.remedy)]) from err
    if written.keys() & _OF_FUNNEL_FILES and "name" not in written:
        # Else each of its fields would be named as a fault of its own.
        named = f": {written['catalogue']}" if isinstance(written.get("catalogue"), str) else ""
        remedy = (
            f"`release` and `worker --funnel` take it; give --catalogue the catalogue that it names{named}"
        )
        raise CatalogueError(source, [Problem(None, "a funnel file, and no catalogue", remedy)])
    lines = locate(text)
    try:
        catalogue = _check().validate_json(encode(written), strict=True)
    except ValidationError as err:
        raise CatalogueError(
            source,
            [
                Problem(
                    line_of(lines, tuple(each["loc"])) or 1,
                    *(
                        meant(each["type"], tuple(each["loc"]), written, top=("name", "version"))
                        or (_worded(tuple(each["loc"]), each), _remedy(each["type"]))
                    ),
                )
                for each in err.errors(include_url=False, include_input=False, include_context=False)
            ],
        ) from None
    problems = [
        Problem(line_of(lines, place), f"{_dotted(place)}: {what}", remedy)
        for place, what, remedy in _contradictions(catalogue)
    ]
    if problems:
        raise CatalogueError(source, problems)
    return catalogue


@cache
def _check() -> TypeAdapter[Catalogue]:
    return TypeAdapter(Catalogue)


def _contradictions(catalogue: Catalogue) -> Iterator[tuple[Place, str, str]]:
    for name, tool in catalogue.tools.items():
        place: Place = ("tools", name)
        for field_name, spec in tool.fields.items():
            yield from _field_contradictions((*place, "fields", field_name), spec)
        yield from _unknown_names(place, tool)


def _field_contradictions(place: Place, spec: FieldSpec) -> Iterator[tuple[Place, str, str]]:
    if spec.role != "interpretation" and "model" in (spec.source, spec.set_by):
        yield place, f"a {spec.role} must not come from the model", "name its authority in source and set_by"
    if spec.role == "control" and spec.set_by != "application":
        yield place, "a control is bound by the application alone", 'write set_by = "application"'
    if spec.type == "money" and not spec.unit:
        yield place, "money without a unit", 'add unit = "GBP", or whichever it is'
    if (spec.type == "choice") != bool(spec.one_of):
        yield place, "one_of belongs to a choice, and a choice has one", "add it, or change the type"
    for key in ("above", "at_least", "at_most"):
        bound = getattr(spec, key)
        if bound is None:
            continue
        if isinstance(bound, str) and spec.type == "money":
            try:
                read_money(bound, spec.unit)
            except ValueError as err:
                yield (*place, key), str(err), "write it as its currency has it"
        elif isinstance(bound, str) or spec.type != "integer":
            yield (
                (*place, key),
                f"not a bound of the type {spec.type}",
                "bounds are money's, as text, and integers'",
            )


def state_faults(place: Place, states: States | None) -> Iterator[tuple[Place, str, str]]:
    """What a tool's states cannot mean."""
    for value in () if states is None else states.twice():
        yield (
            (*place, "states"),
            f'state "{value}" is declared twice',
            "name it once: done, pending or undone",
        )


def _unknown_names(place: Place, tool: Tool) -> Iterator[tuple[Place, str, str]]:
    known = f"the fields are {', '.join(tool.fields)}"
    money = {name for name, spec in tool.fields.items() if spec.type == "money"}
    for index, each in enumerate(tool.preconditions):
        yield from _precondition_faults((*place, "preconditions", index), each, tool)
    yield from _result_faults(place, tool, money)
    for index, limit in enumerate(tool.limits):
        if limit.field not in money:
            yield (*place, "limits", index), f'no money field "{limit.field}"', known
    yield from state_faults(place, tool.states)
    if tool.states is not None and not tool.is_effect:
        yield (*place, "states"), "an observation has no states", "remove them"
    if tool.confirmation is not None:
        for bound in tool.confirmation.binds:
            if bound not in tool.fields:
                yield (*place, "confirmation"), f'binds no field "{bound}"', known


def _result_faults(place: Place, tool: Tool, money: set[str]) -> Iterator[tuple[Place, str, str]]:
    if tool.results and tool.is_effect:
        yield (*place, "results"), "an effect's results are its receipt", "remove them"
    for name, spec in tool.results.items():
        at: Place = (*place, "results", name)
        if (spec.fact is None) == (spec.of is None):
            yield at, "a result has fact, or of with times and plus", "write one of the two forms"
        elif spec.of is not None and (spec.of not in money or spec.type != "money"):
            yield at, f'"{spec.of}" gives no amount', "work out money from a money field of the tool"
        if spec.type == "money" and not spec.unit:
            yield at, "money without a unit", 'add unit = "GBP", or whichever it is'
        for key in ("at_least", "at_most"):
            if (bound := getattr(spec, key)) is not None:
                try:
                    read_money(bound, spec.unit)
                except ValueError as err:
                    yield (*at, key), str(err), "write it as its currency has it"


def _precondition_faults(at: Place, each: Precondition, tool: Tool) -> Iterator[tuple[Place, str, str]]:
    money = {name: spec.unit or "" for name, spec in tool.fields.items() if spec.type == "money"}
    if bool(each.is_one_of) == bool(each.less or each.floor) or bool(each.less) != bool(each.floor):
        yield at, "a precondition has is_one_of, or less and floor", "write one of the two forms"
    elif each.less and each.floor and not {each.less, each.floor} <= money.keys():
        yield at, "less and floor name money fields of the tool", f"the fields are {', '.join(tool.fields)}"
    elif each.less and each.floor and money[each.less] != money[each.floor]:
        what = f"less and floor are of two units, {money[each.less]} and {money[each.floor]}"
        yield at, what, "give both one unit"


def _worded(place: Place, error: ErrorDetails) -> str:
    """pydantic's finding in a catalogue's words."""
    kind, message = error["type"], error["msg"]
    if kind == "missing":
        return f'{_dotted(place[:-1]) or "the catalogue"} has no "{place[-1]}"'
    if kind in ("unexpected_keyword_argument", "extra_forbidden"):
        return f'unknown field "{place[-1]}" in {_dotted(place[:-1]) or "the catalogue"}'
    return f"{_dotted(place)}: {message[:1].lower()}{message[1:]}"


def _remedy(kind: str) -> str:
    return {
        "missing": "add it",
        "unexpected_keyword_argument": "remove it",
        "extra_forbidden": "remove it",
    }.get(kind, PAGE)


def _dotted(place: Place) -> str:
    return ".".join(str(part + 1) if isinstance(part, int) else part for part in place)
