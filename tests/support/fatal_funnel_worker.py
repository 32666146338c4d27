"""`ticketgate worker` with the funnel's roles that ends without a word: FATAL_CASE names a case on which judging ends
it, FATAL_KEY an effect on which sending does and so does reading back, each once the provider was asked.

Pauses that are there for real providers are shortened.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from ticketgate.agents.effects.adapters.http import HttpPort
from ticketgate.agents.effects.port import Prepared
from ticketgate.codecs.records.proposal import Proposal
from ticketgate.streams.cli import main
from ticketgate.streams.roles.propose import proposal_work


def end() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def arm() -> None:
    """Put the deaths into what the worker uses."""
    judge: Any = proposal_work.__dict__["judge"]
    execute, read_back = HttpPort.execute, HttpPort.read_back

    def fatal_judge(proposal: Proposal, **given: Any) -> Any:
        if proposal.case_id == os.environ.get("FATAL_CASE"):
            end()
        return judge(proposal, **given)

    async def fatal_execute(self: HttpPort, prepared: Prepared) -> Any:
        found = await execute(self, prepared)
        if prepared.command.key == os.environ.get("FATAL_KEY"):
            end()
        return found

    async def fatal_read_back(self: HttpPort, key: str) -> Any:
        found = await read_back(self, key)
        if key == os.environ.get("FATAL_KEY"):
            end()
        return found

    proposal_work.__dict__["judge"] = fatal_judge
    HttpPort.execute = fatal_execute  # type: ignore[method-assign]
    HttpPort.read_back = fatal_read_back  # type: ignore[method-assign]


if __name__ == "__main__":
    # Beside this program, which is where it looks first.
    from stepping_worker import shorten_pauses

    arm()
    shorten_pauses()
    main()
