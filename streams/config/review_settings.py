"""The settings of review by people: who may settle, the topics, and where a console keeps its view.

Promise: what is made does not contradict itself. No file is read here.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator
from ticketgate.streams.config.addresses import OptionalPath
from ticketgate.streams.config.setting_kinds import Duration
from ticketgate.streams.config.web_settings import WebSettings

PSEUDONYM = r"^[A-Za-z0-9._-]{1,128}$"


class ReviewSettings(WebSettings):
    """Who settles what lies in review, and how."""

    topic_settlements: str = Field("settlements", description="topic of what people decide about review")
    topic_settled: str = Field("settled", description="topic of what became of each settlement")
    console_keys: OptionalPath = Field(
        None, description="file (TOML) of the keys that settlements may be signed by, with their roles"
    )
    console_key: str | None = Field(
        None, description="name of the key that this process signs and reads by", min_length=1
    )
    policy_author: str | None = Field(
        None, description="pseudonym of who answers for the policy in force", pattern=PSEUDONYM
    )
    settle_by_others: bool = Field(
        False,
        description="whether policy_author's own settlements are refused, so that two people are needed",
    )
    settlement_lifetime: Duration = Field(
        timedelta(hours=1),
        description="how long after it was signed a settlement is taken",
        gt=timedelta(0),
        le=timedelta(days=7),
    )

    review_view: Path = Field(
        Path("ticketgate-review.sqlite3"),
        description="file in which `review` keeps what waits, text and all; beside it the people, and what they read",
    )

    @property
    def people_file(self) -> Path:
        """From names to pseudonyms."""
        return self.review_view.with_suffix(".people.json")

    @property
    def reading_log(self) -> Path:
        """Who was shown which tickets' text."""
        return self.review_view.with_suffix(".reads.jsonl")

    @model_validator(mode="before")
    @classmethod
    def _claims_live_as_outputs(cls, values: Any) -> Any:
        # What lies in review can be settled for as long as its ticket's claim lives.
        if isinstance(values, dict) and "claim_ttl" not in values and "outputs_retention" in values:
            return {**values, "claim_ttl": values["outputs_retention"]}
        return values

    @model_validator(mode="after")
    def _two_people(self) -> Self:
        if self.settle_by_others and self.policy_author is None:
            raise ValueError(
                "settle_by_others: nobody is named who answers for the policy; set TICKETGATE_POLICY_AUTHOR"
            )
        return self
