"""What each role reads and writes, and the group that it reads in.

    role      reads       writes                                   group
    decide    tickets     dispatch, review                         GROUP
    propose   proposals   dispatch, review, repairs, receipts      GROUP.propose
    effects   dispatch    receipts, review                         GROUP.effects

All write to dead-letter. Source: DESIGN section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

from ticketgate.streams.settings import Role, Settings


@dataclass(frozen=True, slots=True)
class RoleTopics:
    """The topics and the consumer group of one role."""

    role: Role
    source: str
    outputs: tuple[str, ...]
    group: str


def role_topics(role: Role, settings: Settings) -> RoleTopics:
    """A role's topics and group, by the settings."""
    dispatch, review, dead = settings.topic_dispatch, settings.topic_review, settings.topic_dead_letter
    match role:
        case "decide":
            return RoleTopics(role, settings.topic_tickets, (dispatch, review, dead), settings.group)
        case "propose":
            told = (dispatch, review, settings.topic_repairs, settings.topic_receipts, dead)
            return RoleTopics(role, settings.topic_proposals, told, f"{settings.group}.propose")
        case "effects":
            return RoleTopics(
                role, dispatch, (settings.topic_receipts, review, dead), f"{settings.group}.effects"
            )
