"""What a page says instead: a refusal with its status, and the way out in words."""

from __future__ import annotations


class PageRefusal(Exception):
    """Answer with an error page. what: a sentence of what is so. next_step: what the person can do. Neither quotes a
    secret. retry_after_s: for who may try again."""

    def __init__(
        self, status: int, what: str, *, next_step: str = "", retry_after_s: int | None = None
    ) -> None:
        super().__init__(f"{status}: {what}")
        self.status, self.what, self.next_step, self.retry_after_s = status, what, next_step, retry_after_s
