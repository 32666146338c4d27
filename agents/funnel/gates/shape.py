"""The gates on a call's form: parse, envelope, abstention, tool_catalogue, schema.

Promise: what passes them is a call of an offered tool whose every argument is a value of its field. That says nothing
about whether it is what was asked for.
"""

import json

from ticketgate.agents.funnel.case import Abstention, BrokenEnvelope, FunnelCase, shape_reasons
from ticketgate.agents.funnel.gates.evidence import unreadable_evidence
from ticketgate.agents.funnel.values import is_of_type
from ticketgate.codecs.values.strict import Malformed
from ticketgate.codecs.verdict import Stage, Status, Verdict

PARSE_NEXT_STEP = "the proposer mends the serialisation and nothing else"
ENVELOPE_NEXT_STEP = "the proposer writes the envelope anew; tool and arguments stay"
CATALOGUE_NEXT_STEP = "the proposer selects from the offered catalogue, or abstains"
SCHEMA_NEXT_STEP = "the proposer mends the named fields alone"
ABSTAINED_RIGHTLY_NEXT_STEP = "the requester is told that this is not supported; nothing was done"
ABSTAINED_NEXT_STEP = "a person decides, or asks the requester; nothing was done"


def check_parse(case: FunnelCase) -> Verdict | None:
    """Text that is no JSON object, read as strictly as a record."""
    document = case.document
    if isinstance(document, Malformed):
        reason = _invalid_at(case.proposal.call) or f"{document.code}:{document.reason}"
    elif not isinstance(document, dict):
        reason = "top_level_must_be_object"
    else:
        return None
    return Verdict(Status.REPAIR, Stage.PARSE, (reason,), PARSE_NEXT_STEP)


def check_envelope(case: FunnelCase) -> Verdict | None:
    """An object that is neither a call nor an abstention."""
    if not isinstance(case.envelope, BrokenEnvelope):
        return None
    reasons = ("invalid_call_envelope", *case.envelope.reasons)
    return Verdict(Status.REPAIR, Stage.ENVELOPE, reasons, ENVELOPE_NEXT_STEP)


def check_abstention(case: FunnelCase) -> Verdict | None:
    """A proposer that makes no call. Right, and accepted, where no offered tool serves the requested operation."""
    if not isinstance(case.envelope, Abstention):
        return None
    serving = tuple(
        name for name, tool in case.compiled.tools.items() if tool.serves == case.request.operation
    )
    abstained = f"abstained:{case.envelope.reason}"
    if not serving and case.is_world_unreadable and _would_serve(case):
        return unreadable_evidence(case)
    if case.envelope.reason == "unsupported_operation" and not serving:
        return Verdict(Status.ACCEPT, Stage.ABSTENTION, (abstained,), ABSTAINED_RIGHTLY_NEXT_STEP)
    reasons = (abstained, *(f"admissible:{name}" for name in serving))
    return Verdict(Status.REVIEW, Stage.ABSTENTION, reasons, ABSTAINED_NEXT_STEP)


def check_tool_catalogue(case: FunnelCase) -> Verdict | None:
    """A tool that is not offered. Whether it exists elsewhere is not told."""
    if case.call.tool in case.compiled.tools:
        return None
    if case.is_world_unreadable and case.call.tool in case.catalogue.tools:
        # The facts that would offer it could not be read: no proposer can mend that, so no repair is spent on it.
        return unreadable_evidence(case)
    return Verdict(Status.REPAIR, Stage.TOOL_CATALOGUE, ("unknown_tool",), CATALOGUE_NEXT_STEP)


def check_schema(case: FunnelCase) -> Verdict | None:
    """Fields that are missing, extra or of a wrong type; and, once there are none, values that are not their kind's."""
    specs, given = case.tool.fields, case.given
    reasons = shape_reasons(
        sorted(name for name, spec in specs.items() if spec.is_asked_for and name not in given),
        sorted(given.keys() - specs.keys()),
        sorted(n for n, spec in specs.items() if n in given and not is_of_type(spec.type, given[n])),
    )
    if not reasons:
        reasons = tuple(_lexical(case))
    return Verdict(Status.REPAIR, Stage.SCHEMA, reasons, SCHEMA_NEXT_STEP) if reasons else None


def _would_serve(case: FunnelCase) -> bool:
    """Whether some tool of the whole catalogue serves the request, offered or not."""
    return any(tool.serves == case.request.operation for tool in case.catalogue.tools.values())


def _lexical(case: FunnelCase) -> list[str]:
    found: list[str] = []
    for name in sorted(case.given):
        try:
            case.tool.fields[name].read(case.given[name])
        except ValueError as err:
            found.append(f"invalid:{name}:{err}")
    return found


def _invalid_at(text: str) -> str | None:
    """Where JSON's grammar ends, in characters from 0; None if the text keeps to it and is refused for more."""
    try:
        json.loads(text)
    except json.JSONDecodeError as err:
        return f"invalid_json_at_{err.pos}"
    except (ValueError, RecursionError):
        # A number or a nesting that Python will not read: the strict reader has said so already.
        return None
    return None
