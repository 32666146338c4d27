"""What a proposer is told: the catalogue as it is compiled for a request, and published with its hash.

Promise: for the same request and facts it bears the hash that the records of a worker name, so that whoever reads one
can see what the model was shown.
"""

from collections.abc import Mapping

from ticketgate.agents.funnel.catalogue import Catalogue, compile_catalogue
from ticketgate.agents.funnel.evidence import EvidenceUnreadable, World
from ticketgate.agents.funnel.lookups.reading import world_of
from ticketgate.agents.funnel.tool_formats import Format, NotOffered, written_as
from ticketgate.agents.workbench.funnel.cases import FunnelCaseError, written_lines
from ticketgate.codecs.records.proposal import read_request
from ticketgate.codecs.values.strict import JsonValue, Malformed


def offers(
    text: str, *, source: str, catalogue: Catalogue, form: Format | None = None
) -> tuple[Mapping[str, JsonValue], ...]:
    """What is offered for each line's `request`, under the facts of its `world` if it has one, in order. Cases and
    proposals are such lines; what else they hold is not looked at. Raises FunnelCaseError."""
    lines = [*written_lines(text, source)]
    if not lines:
        raise FunnelCaseError(f"{source}: no requests; write one JSON object a line, with a request")
    return tuple(_offer(value, where, catalogue, form) for value, where in lines)


def _offer(
    value: JsonValue, where: str, catalogue: Catalogue, form: Format | None
) -> Mapping[str, JsonValue]:
    if not isinstance(value, dict) or "request" not in value:
        raise FunnelCaseError(f'{where}: no request; write {{"request": …}}, and the facts as "world"')
    request = read_request(value["request"])
    if isinstance(request, Malformed):
        raise FunnelCaseError(f"{where}: request: {request.reason}")
    try:
        world = world_of(value["world"]) if "world" in value else World()
    except EvidenceUnreadable as err:
        raise FunnelCaseError(f"{where}: world: {err}") from None
    compiled = compile_catalogue(catalogue, request, world.facts)
    if form is None:
        return compiled.published
    try:
        return written_as(compiled, form)
    except NotOffered as err:
        raise FunnelCaseError(f"{where}: {err}") from None
