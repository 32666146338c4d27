"""The catalogues that are compared: the funnel's `payments`, and what the ablation makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ticketgate.agents.funnel.catalogue import Catalogue, Offered
from ticketgate.agents.funnel.evidence import Authority
from ticketgate.agents.funnel.file.catalogue_file import load_catalogue

from .request_set import FLOOR

QUOTE, SCHEDULE = "quote_transfer", "schedule_transfer"


@dataclass(frozen=True, slots=True)
class Variant:
    """A catalogue, and the names that its tools bear instead of `payments`' own, for whoever delegates by name."""

    name: str
    catalogue: Catalogue
    renamed: Mapping[str, str] = field(default_factory=dict)

    def authority(self, authority: Authority) -> Authority:
        """The same rights under this catalogue's names."""
        return replace(authority, tools=frozenset(self.renamed.get(name, name) for name in authority.tools))


def payments() -> Variant:
    """As it comes along: contrastive names, the condition a field, both tools offered to every request."""
    return Variant("payments", load_catalogue("payments"))


def without_condition() -> Variant:
    """The floor is no field of the schedule: nobody can say it, nor check it."""
    catalogue = load_catalogue("payments")
    tool = catalogue.tools[SCHEDULE]
    confirmation = tool.confirmation
    changed = replace(
        tool,
        fields={name: spec for name, spec in tool.fields.items() if name != FLOOR},
        preconditions=(),
        confirmation=None
        if confirmation is None
        else replace(confirmation, binds=tuple(each for each in confirmation.binds if each != FLOOR)),
    )
    return Variant("no condition", replace(catalogue, tools={**catalogue.tools, SCHEDULE: changed}))


def coarse() -> Variant:
    """Names and purposes that say nothing of what is done."""
    catalogue = load_catalogue("payments")
    renamed = {QUOTE: "handle_transfer", SCHEDULE: "process_transfer"}
    tools = {
        renamed[name]: replace(tool, purpose="Works on transfers", does_not="do anything else")
        for name, tool in catalogue.tools.items()
    }
    return Variant("coarse names", replace(catalogue, tools=tools), renamed)


def narrowed() -> Variant:
    """The schedule is shown only where something was confirmed."""
    catalogue = load_catalogue("payments")
    changed = replace(catalogue.tools[SCHEDULE], offered=Offered(phases=("confirming",)))
    return Variant("per request", replace(catalogue, tools={**catalogue.tools, SCHEDULE: changed}))
