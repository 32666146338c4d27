"""From what a source answered to authority or world state, strictly.

Promise: a field that is unknown, missing or of another type makes the whole answer unreadable. A limit under a
misspelt name, taken as no limit, would be a permission.
"""

from dataclasses import fields
from functools import cache
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from ticketgate.agents.funnel.evidence import Authority, Confirmation, EvidenceUnreadable, World
from ticketgate.agents.funnel.values import plain
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.codecs.values.shape import few_unknown
from ticketgate.codecs.values.strict import JsonValue, Malformed, decode, encode

# What one answer may have, unless the funnel file says otherwise.
DEFAULT_MAX_ANSWER_BYTES = 256 * 1024

_FIELDS = frozenset(field.name for part in (Authority, Confirmation, World) for field in fields(part))

T = TypeVar("T")


def read_authority(data: bytes, proposal: Proposal, *, max_bytes: int) -> Authority:
    """The authority that an answer is, of the request's actor. Raises EvidenceUnreadable."""
    return authority_of(_decoded(data, max_bytes), proposal)


def read_world(data: bytes, *, max_bytes: int) -> World:
    """The world state that an answer is. Raises EvidenceUnreadable."""
    return world_of(_decoded(data, max_bytes))


def authority_of(value: JsonValue, proposal: Proposal) -> Authority:
    """The authority that a decoded value is, of the request's actor. Raises EvidenceUnreadable."""
    authority = _checked(_authority_check(), value)
    if authority.actor_id != proposal.request.actor_id:
        raise EvidenceUnreadable(f"it is of another actor, {plain(authority.actor_id)}")
    return authority


def world_of(value: JsonValue) -> World:
    """The world state that a decoded value is. Raises EvidenceUnreadable."""
    return _checked(_world_check(), value)


def _decoded(data: bytes, max_bytes: int) -> JsonValue:
    value = decode(data, max_bytes=max_bytes)
    if isinstance(value, Malformed):
        raise EvidenceUnreadable(value.reason)
    return value


def _checked(check: TypeAdapter[T], value: JsonValue) -> T:
    try:
        # As JSON: only there does strict take a list for a set, and text for a moment.
        return check.validate_json(encode(_few_faults(value)), strict=True)
    except ValidationError as err:
        first = err.errors(include_url=False, include_context=False, include_input=False)[0]
        place = plain(".".join(str(part) for part in first["loc"])) or "the answer"
        is_unknown = first["type"] == "unexpected_keyword_argument"
        what = "unknown field" if is_unknown else f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        raise EvidenceUnreadable(f"{place}: {what}") from None


def _few_faults(value: JsonValue) -> JsonValue:
    """`value` with no more faults than it takes to refuse it: what is said of each takes far more than the fault."""
    if not isinstance(value, dict):
        return value
    kept: dict[str, JsonValue] = {**few_unknown(value, _FIELDS)}
    if isinstance(confirmations := kept.get("confirmations"), list):
        kept["confirmations"] = [
            {**few_unknown(each, _FIELDS)} if isinstance(each, dict) else each for each in confirmations
        ]
    if isinstance(tools := kept.get("tools"), list) and not all(isinstance(each, str) for each in tools):
        kept["tools"] = [next(each for each in tools if not isinstance(each, str))]
    if isinstance(facts := kept.get("facts"), dict):
        wrong = next((name for name, each in facts.items() if not isinstance(each, str | int | bool)), None)
        kept["facts"] = facts if wrong is None else {wrong: facts[wrong]}
    return kept


@cache
def _authority_check() -> TypeAdapter[Authority]:
    return TypeAdapter(Authority)


@cache
def _world_check() -> TypeAdapter[World]:
    return TypeAdapter(World)
