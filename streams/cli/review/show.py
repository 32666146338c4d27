"""`ticketgate review show`: the whole case of a ticket."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from ticketgate.streams.cli.options import TEXT, json_flag, settings_flags
from ticketgate.streams.cli.output import print_field, print_json, print_table, quiet_libraries, say
from ticketgate.streams.cli.review.sharing import as_flag, fed_view, log_texts, one_case, person_of
from ticketgate.streams.cli.steps import steps
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.operations.review.moments import moment

if TYPE_CHECKING:
    from ticketgate.agents.policy import Policy
    from ticketgate.streams.operations.policies import KeptPolicy
    from ticketgate.streams.operations.review.desk import Lying
    from ticketgate.streams.operations.review.timeline import Event


@click.command("show")
@click.argument("key", type=TEXT)
@as_flag
@json_flag
@settings_flags("kafka", "namespace", "policy", "console_keys", "console_key", "review_view")
def show(key: str, person: str | None, as_json: bool, settings: Settings) -> None:
    """Show the whole case of a ticket, by its KEY or its id: its text, each answer against its threshold, what the
    policy objects to, the nearest assignments that it would accept, and one timeline over all topics.

    The assignments are suggestions: they say what the policy accepts, and not what is true. It is logged who was shown
    the text.
    """
    from ticketgate.agents.policy import load_policy
    from ticketgate.agents.settling.console_keys import ConsoleRole
    from ticketgate.streams.operations.policies import kept_policy
    from ticketgate.streams.operations.review.desk import look, require_key
    from ticketgate.streams.operations.review.feeding import now_ms
    from ticketgate.streams.operations.review.rows import Kind
    from ticketgate.streams.operations.review.timeline import timeline, what_of

    quiet_libraries()
    require_key(settings, ConsoleRole.READ)
    by = person_of(settings, person)
    with fed_view(settings) as view:
        case = one_case(view, key, now_ms())
        settlements = view.settlements(key=case.key)
    log_texts(settings, by, "show", [case.key])
    lying = asyncio.run(look(settings, case)) if case.kind is Kind.DECISION else None
    policy = None if settings.policy is None else load_policy(settings.policy)
    with steps() as progress:
        events = asyncio.run(timeline(settings, case, progress=progress))
    told: dict[str, Any] = {}
    if lying is not None:
        kept = asyncio.run(kept_policy(settings, lying.record.policy.hash))
        told = _told(lying, policy, kept, namespace=settings.namespace)
    if as_json:
        print_json(
            asdict(case) | told | {"settlements": settlements, "timeline": [_event(each) for each in events]}
        )
        return
    for name in ("ticket_id", "tenant", "key", "state", "place", "reasons", "labels"):
        print_field(name, getattr(case, name))
    if case.state == "waiting":
        print_field("can be settled until", f"{moment(case.expires_ms)} UTC")
    if lying is not None:
        _print_told(told)
    print_table(
        ("when (UTC)", "topic", "at", "what"),
        [(moment(each.at_ms), each.topic, str(each.coordinate.offset), what_of(each)) for each in events],
    )


def _told(lying: Lying, policy: Policy | None, kept: KeptPolicy | None, *, namespace: str) -> dict[str, Any]:
    """What is shown of a decision. policy: today's, by which it would be settled. kept: the one that it was made by."""
    from ticketgate.streams.operations.review.desk import suggestions

    record = lying.record
    since = None if kept is None else kept.last_before(record.decided_at, namespace=namespace)
    found: dict[str, Any] = {
        "policy": record.policy.to_json() | {"in_force": None if since is None else since.to_json()},
        "text": None if lying.ticket is None else lying.ticket.state,
        "attributes": None if lying.ticket is None else lying.ticket.attributes,
        "probabilities": dict(record.probabilities),
        "violations": [{"rule": each.rule, "message": each.message} for each in record.violations],
    }
    if (judged_by := policy if kept is None else kept.load()) is not None:
        found |= {
            "thresholds": dict(judged_by.thresholds),
            "rules_in_words": {rule.id: rule.sentence for rule in judged_by.rules},
        }
    if policy is None:
        return found
    near = suggestions(lying, policy)
    return found | {
        "suggestions": [{"labels": each.labels, "changed": each.changed} for each in near.suggestions],
        "suggestions_are_whole": near.is_whole,
    }


def _print_told(told: dict[str, Any]) -> None:
    policy = told["policy"]
    since = policy["in_force"]
    known = (
        f", put in force {since['at']} by {since['by'] or 'nobody named'} from {since['file']}"
        if since
        else ""
    )
    print_field("policy", f"{policy['name']} {policy['version']} ({policy['hash'][:12]}){known}")
    print_field("text", told["text"] if told["text"] is not None else "nowhere any more")
    if told["attributes"]:
        print_field("attributes", told["attributes"])
    thresholds = told.get("thresholds", {})
    for question, chance in told["probabilities"].items():
        # repr of a float: the shortest text that reads back as the same, so that none is shown across its threshold.
        bound = f", selected from {thresholds[question]!r} on" if question in thresholds else ""
        print_field(f"answer {question}", f"{chance!r}{bound}" if isinstance(chance, int | float) else chance)
    for each in told["violations"]:
        print_field(f"rule {each['rule']}", each["message"])
    for each in told.get("suggestions", []):
        changed = ", ".join(each["changed"]) or "nothing"
        print_field("would be accepted", f"{', '.join(each['labels']) or 'no label'} (changes {changed})")
    if told.get("suggestions"):
        say("these are the nearest that the policy accepts; they say nothing of what is true")
    elif "suggestions" in told:
        say("no assignment near the model's would be accepted; it can be rejected or returned")


def _event(event: Event) -> dict[str, Any]:
    return {
        "at_ms": event.at_ms,
        "topic": event.topic,
        "coordinate": str(event.coordinate),
        "value": event.value,
    }
