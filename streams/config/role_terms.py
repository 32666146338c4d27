"""Each role by the settings: what it reads and writes, the group that it reads in, and all in which its lanes differ.

    role      reads       writes                                   group
    decide    tickets     dispatch, review                         GROUP
    propose   proposals   dispatch, review, repairs, receipts      GROUP.propose
    effects   dispatch    receipts, review                         GROUP.effects
    settle    settlements dispatch, settled                        GROUP.settle

All write to dead-letter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from ticketgate.streams.config.setting_kinds import Role
from ticketgate.streams.config.settings import Settings, ledger_ttl

# Effects of one case follow one another, each with its provider's time-out: a batch of them is small, and takes as long
# as it takes.
EFFECTS_BATCH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What Redis keeps so that no record takes effect twice: `what` it is, and for how long each of them `lives`, by
    the setting `lives_by`. sent_again: how late after its record a copy of it may still be sent."""

    what: str
    lives: timedelta
    lives_by: str
    sent_again: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTerms:
    """One role.

    source, outputs: topics. vouching: those of the outputs out of which a rebuild restores what Redis lost.
    retention: for how long the source shall keep its records.
    batch_size: most records that one transaction takes.
    hang_s: after so long a batch is taken for a hang; None where none is, and batches may take as long as they take.
    rebuild, replay: the commands that restore what Redis lost, and that set the group's offsets.
    commits_before_acting: the role commits its position before it has got past any record (opening.py).
    """

    role: Role
    source: str
    outputs: tuple[str, ...]
    vouching: tuple[str, ...]
    group: str
    retention: timedelta
    batch_size: int
    hang_s: float | None
    kept: Kept
    rebuild: str = "claims rebuild"
    replay: str = "replay"
    commits_before_acting: bool = False


def role_terms(role: Role, settings: Settings) -> RoleTerms:
    """A role, by the settings."""
    dispatch, review, dead = settings.topic_dispatch, settings.topic_review, settings.topic_dead_letter
    decide = RoleTerms(
        role="decide",
        source=settings.topic_tickets,
        outputs=(dispatch, review, dead),
        vouching=(dispatch, review),
        group=settings.group,
        retention=settings.tickets_retention,
        batch_size=settings.batch_size,
        hang_s=settings.scorer_timeout.total_seconds(),
        kept=Kept(
            what="claims",
            lives=settings.claim_ttl,
            lives_by="TICKETGATE_CLAIM_TTL",
            sent_again=settings.duplicate_horizon,
        ),
    )
    match role:
        case "decide":
            return decide
        case "propose":
            return replace(
                decide,
                role=role,
                source=settings.topic_proposals,
                outputs=(dispatch, review, settings.topic_repairs, settings.topic_receipts, dead),
                vouching=(dispatch, review, settings.topic_repairs),
                group=f"{settings.group}.propose",
                replay="replay --of proposals",
            )
        case "effects":
            return RoleTerms(
                role=role,
                source=dispatch,
                outputs=(settings.topic_receipts, review, dead),
                vouching=(settings.topic_receipts,),
                group=f"{settings.group}.effects",
                retention=settings.outputs_retention,
                batch_size=min(settings.batch_size, EFFECTS_BATCH),
                hang_s=None,
                kept=Kept(
                    what="ledger entries",
                    lives=ledger_ttl(settings),
                    lives_by="TICKETGATE_OUTPUTS_RETENTION",
                    # Workers alone write dispatch.
                    sent_again=timedelta(0),
                ),
                rebuild="ledger rebuild",
                replay="replay --of dispatch",
                commits_before_acting=True,
            )
        case "settle":
            return replace(
                decide,
                role=role,
                source=settings.topic_settlements,
                outputs=(dispatch, settings.topic_settled, dead),
                vouching=(dispatch, settings.topic_settled),
                group=f"{settings.group}.settle",
                hang_s=None,
                replay="replay --of settlements",
            )
