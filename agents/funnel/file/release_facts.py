"""What of a requirement can be seen in the funnel file, its catalogue and its provider, without believing a claim."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ticketgate.agents.funnel.case import KEY_FIELD
from ticketgate.agents.funnel.catalogue import Tool
from ticketgate.agents.funnel.file.catalogue_lint import lint_catalogue
from ticketgate.agents.funnel.file.funnel_checks import can_read_back
from ticketgate.agents.funnel.file.funnel_specs import (
    Contribution,
    FunnelFile,
    HttpProvider,
    RedisProvider,
    SignedLookup,
    ToolEffect,
)
from ticketgate.agents.funnel.file.mutation_report import read_report, shipped_report
from ticketgate.agents.funnel.values import Kind


@dataclass(frozen=True, slots=True)
class Stands:
    """It can be seen to stand."""


@dataclass(frozen=True, slots=True)
class Fails:
    """It can be seen not to stand, and no claim outweighs that: why, and the remedy."""

    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class CannotTell:
    """Nothing here shows it: the file has to name what does."""


Seen = Stands | Fails | CannotTell


@dataclass(frozen=True, slots=True)
class Subject:
    """One tool of a funnel file. tool: as the catalogue describes it, None for a policy's effect."""

    name: str
    effect: ToolEffect
    file: FunnelFile

    @property
    def tool(self) -> Tool | None:
        """The catalogue's tool of that name."""
        return None if self.file.catalogue is None else self.file.catalogue.tools.get(self.name)

    @property
    def provider(self) -> HttpProvider | RedisProvider:
        """Who carries it out."""
        return self.file.providers[self.effect.provider]


# By kind of field, the least that a model contributes that reads one.
READING: Final[Mapping[Kind, Contribution]] = {
    "boolean": "choice",
    "choice": "choice",
    "date": "arguments",
    "identifier": "arguments",
    "integer": "arguments",
    "money": "arguments",
    "text": "wording",
}


def see(requirement: str, subject: Subject) -> Seen:
    """Whether a requirement can be seen to stand for a tool."""
    check = _CHECKS.get(requirement)
    return CannotTell() if check is None else check(subject)


def readings(tool: Tool) -> Mapping[str, Contribution]:
    """The fields that are the model's reading, with what of the effect is the model's by them."""
    return {name: READING[spec.type] for name, spec in tool.fields.items() if spec.role == "interpretation"}


def _judged(subject: Subject) -> Seen:
    if subject.tool is not None or subject.effect.contribution in ("none", "choice"):
        return Stands()
    return Fails("no catalogue has the tool, so no gate judges its call", "add it to the catalogue")


def _meaning_linted(subject: Subject) -> Seen:
    if subject.tool is None or subject.file.catalogue is None:
        return CannotTell()
    for found in lint_catalogue(subject.file.catalogue):
        place = found.place
        if place == subject.name or place.startswith(f"{subject.name}.") or subject.name in place.split(", "):
            return Fails(f"{place}: {found.what}", found.remedy)
    return Stands()


def _choices_listed(subject: Subject) -> Seen:
    return _no_reading_of(subject, ("wording", "arguments"), "make it a choice with one_of, or a fact")


def _facts_compared(subject: Subject) -> Seen:
    return _no_reading_of(subject, ("arguments",), 'write role = "fact" and bind it in the request')


def _no_reading_of(subject: Subject, refused: tuple[Contribution, ...], remedy: str) -> Seen:
    if subject.tool is None:
        return CannotTell()
    for name, contribution in readings(subject.tool).items():
        if contribution in refused:
            kind = subject.tool.fields[name].type
            return Fails(f"{name} ({kind}) is the model's reading, which nothing compares", remedy)
    return Stands()


def _world_checked(subject: Subject) -> Seen:
    if subject.tool is None:
        return CannotTell()
    if subject.tool.preconditions:
        return Stands()
    return Fails("the tool has no preconditions", "add what must hold in the world to the catalogue")


def _limits_set(subject: Subject) -> Seen:
    if subject.tool is None:
        return CannotTell()
    held = {limit.field for limit in subject.tool.limits}
    for name, spec in subject.tool.fields.items():
        if (
            spec.type == "money"
            and spec.role == "fact"
            and name not in held
            and not _is_floor(name, subject.tool)
        ):
            return Fails(f"{name} has no limit", "add one to the tool's limits")
    return Stands()


def _is_floor(name: str, tool: Tool) -> bool:
    """A floor is kept, not paid: the more, the safer."""
    return any(each.floor == name for each in tool.preconditions)


def _confirmation_bound(subject: Subject) -> Seen:
    if subject.tool is None:
        return CannotTell()
    rule = subject.tool.confirmation
    if rule is None:
        return Fails("the tool asks for no confirmation", "add confirmation to the catalogue")
    for name, spec in subject.tool.fields.items():
        if spec.role != "control" and name not in rule.binds:
            return Fails(f"the confirmation does not bind {name}", "add it to binds")
    if subject.effect.consequence == "irreversible" and KEY_FIELD not in rule.binds:
        why = f"the confirmation does not bind {KEY_FIELD}, so it is a yes to any effect of this content"
        return Fails(why, f"add {KEY_FIELD} to the fields as a control, and to binds")
    return Stands()


def _revocable(subject: Subject) -> Seen:
    lookup = subject.file.lookup
    if lookup is None or subject.tool is None:
        return CannotTell()
    if isinstance(lookup.authority, SignedLookup):
        why = f"a signed authority cannot be withdrawn for up to {lookup.authority.max_lifetime_s:g} s"
        return Fails(why, "look the authority up by http or redis")
    return Stands()


def _idempotent_by_key(subject: Subject) -> Seen:
    provider = subject.provider
    if isinstance(provider, RedisProvider) or provider.idempotent_by_key:
        return Stands()
    why = f'provider "{subject.effect.provider}" does not declare itself idempotent by key'
    return Fails(why, "write idempotent_by_key = true if it is, or automatic = false")


def _read_back(subject: Subject) -> Seen:
    if can_read_back(subject.provider):
        return Stands()
    why = f'provider "{subject.effect.provider}" cannot be read back'
    return Fails(why, "add its read_back_url, or write automatic = false")


def _mutations_refused(subject: Subject) -> Seen:
    """The report that the file names, or the one that comes with a built-in catalogue; a word for it is not enough."""
    catalogue = subject.file.catalogue
    if subject.tool is None or catalogue is None:
        return CannotTell()
    named = subject.effect.stands.get("mutations_refused", "")
    report = read_report(subject.file.path.parent / named) if named.startswith(("./", "../")) else None
    report = report or shipped_report(catalogue.name)
    run_it = "run `ticketgate funnel CASES --mutate --catalogue FILE --out mutations.json`"
    if report is None:
        return Fails(
            "no report of mutations is named",
            f'{run_it} and write stands.mutations_refused = "./mutations.json"',
        )
    fault = report.fault(catalogue, subject.name)
    return Stands() if fault is None else Fails(fault, f"{run_it} anew")


def _by_our_own_ledger(subject: Subject) -> Seen:
    """The ledger in Redis keeps a key and shows an effect in one step: there is nothing to measure."""
    return Stands() if isinstance(subject.provider, RedisProvider) else CannotTell()


_CHECKS: Final[Mapping[str, Callable[[Subject], Seen]]] = {
    "judged": _judged,
    "meaning_linted": _meaning_linted,
    "choices_listed": _choices_listed,
    "facts_compared": _facts_compared,
    "world_checked": _world_checked,
    "limits_set": _limits_set,
    "confirmation_bound": _confirmation_bound,
    "revocable": _revocable,
    "idempotent_by_key": _idempotent_by_key,
    "read_back": _read_back,
    "mutations_refused": _mutations_refused,
    "provider_key_tested": _by_our_own_ledger,
    "settle_time_measured": _by_our_own_ledger,
}
