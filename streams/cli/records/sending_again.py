"""What `ticketgate dead-letter replay` reads and says: mended lines, and what became of what was sent again."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_BAD_INPUT, EXIT_FINDINGS, EXIT_UNREACHABLE
from ticketgate.streams.cli.files import named
from ticketgate.streams.cli.lines import BadLine
from ticketgate.streams.cli.output import print_json, print_table, say
from ticketgate.streams.cli.packed import unreadable
from ticketgate.streams.cli.records.sources import Source
from ticketgate.streams.cli.unreadable import Gaps
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.envelope import LineError, Record, read_line
from ticketgate.streams.operations.dead_letters.sending_again import SentAgain


async def read_mended(file: Path) -> list[Record]:
    """All of it, before anything is sent: a file with a wrong line sends nothing. Raises `CommandError`."""
    records: list[Record] = []
    try:
        lines = [line async for line in Source(file, 1).coming(asyncio.Event())]
    except BadLine as err:
        raise CommandError(f"{named(file)}:{err}; nothing was sent") from err
    except OSError as err:
        raise CommandError(
            f"cannot read {file}: {err.strerror or err}; name a readable file, or - for stdin"
        ) from err
    for number, line in lines:
        if number == 1 and (what := unreadable(line)):
            raise CommandError(f"{named(file)}:1: this is {what}; nothing was sent")
        if not line.strip():
            continue
        try:
            records.append(read_line(line))
        except LineError as err:
            raise CommandError(f"{named(file)}:{number}: {err}; nothing was sent") from err
    return records


def report(done: SentAgain, gaps: Gaps, *, is_sent: bool, as_json: bool) -> int:
    """Say what became of them; the exit code."""
    refused, ready = done.sending.refused, done.ready_for.total()
    if as_json:
        print_json(
            {
                "topics": done.ready_for,
                "ready": ready,
                "held": done.held,
                "unreadable_batches": len(gaps.found),
                "sent": done.sending.sent,
                "refused": len(refused),
                "done": is_sent,
                "records": [{"lay_at": at, "outcome": what, "because": why} for at, what, why in done.rows],
            }
        )
    elif done.rows:
        print_table(("lay at", "outcome", "because"), done.rows)
    for each in refused:
        say(f"{done.rows[each.line - 1][0]}: refused: {each.reason}")
    where = f" to {' and '.join(sorted(done.ready_for))}" if ready else ""
    if is_sent:
        say(
            f"sent {counted(done.sending.sent, 'record')}{where}; {done.held} held back, {len(refused)} refused"
        )
    else:
        say(f"{ready} would be sent{where}, {done.held} held back; nothing was sent: add --yes to do it")
    if done.sending.lost is not None:
        say(f"ticketgate: {done.sending.lost}")
        return EXIT_UNREACHABLE
    if refused:
        return EXIT_BAD_INPUT
    return EXIT_FINDINGS if done.held or gaps.found else 0
