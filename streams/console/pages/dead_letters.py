"""Dead letters: `GET /dead-letters`, and sending them again, by the functions of the commands.

Promise: what is sent again was looked at before by the same function; what these settings cannot read is held back.
"""

from __future__ import annotations

from collections import deque
from contextlib import aclosing

from aiohttp import web
from aiokafka import ConsumerRecord
from ticketgate.codecs.values.times import from_epoch_ms, rfc3339
from ticketgate.streams.console.caller import User
from ticketgate.streams.console.desk.console_desk import ConsoleDesk
from ticketgate.streams.console.desk.jobs import Job
from ticketgate.streams.console.pages.telling import about_desk, is_fragment, page
from ticketgate.streams.console.refusals import PageRefusal
from ticketgate.streams.console.rendering import render
from ticketgate.streams.console.shown.case_page import LetterLine, Letters
from ticketgate.streams.console.shown.foreign import foreign
from ticketgate.streams.console.words import say
from ticketgate.streams.kafka.reading.salvage import UnreadableBatch
from ticketgate.streams.lane.taking.dead_letters import Place, Wanted, read_dead_letter
from ticketgate.streams.operations.dead_letters.letters import letters
from ticketgate.streams.operations.dead_letters.sending_again import SentAgain, send_again
from ticketgate.streams.operations.dead_letters.sent_again import outcomes_since

# The last ones are of interest; the command lists all.
MOST_LISTED = 200
PATIENCE_S = 0.05


@page
async def show_letters(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """The last ones, read anew unless a page waits for them already."""
    waits = is_fragment(request)
    job = desk.jobs.begin("dead letters", user.subject, work=lambda job: _read(desk), anew=not waits)
    await desk.jobs.wait(job, PATIENCE_S)
    template = "letters_list.html" if waits else "letters.html"
    return render(
        request, template, job=job, letters=job.result, most=MOST_LISTED, desk=about_desk(request, desk)
    )


@page
async def send_letters(request: web.Request, desk: ConsoleDesk, user: User) -> web.StreamResponse:
    """Look what would become of those selected, or with `yes` send them again."""
    form = await request.post()
    texts = [str(each) for each in form.getall("place", [])][:MOST_LISTED]
    try:
        places = tuple(Place.parse(each) for each in texts)
    except ValueError as err:
        raise PageRefusal(400, say("refused.form"), next_step=say("refused.form_next")) from err
    if not places:
        raise PageRefusal(400, say("letters.none_selected"), next_step=say("letters.none_selected_next"))
    is_sent = form.get("yes") == "1"

    async def work(_: Job) -> SentAgain:
        gaps: list[UnreadableBatch] = []
        return await send_again(
            None,
            Wanted(places=places),
            desk.settings,
            by_key=False,
            unmended=False,
            is_sent=is_sent,
            pass_over=gaps.append,
        )

    name = ("sending again", user.subject, *texts, str(is_sent))
    job = desk.jobs.begin(*name, work=work, anew=True)
    # Sending is one step for the person, who must know what became of it.
    await desk.jobs.wait(job, desk.settings.web_timeout.total_seconds() / 2)
    return render(
        request, "letters_sent.html", job=job, texts=texts, is_sent=is_sent, desk=about_desk(request, desk)
    )


async def _read(desk: ConsoleDesk) -> Letters:
    gaps: list[UnreadableBatch] = []
    kept: deque[ConsumerRecord] = deque(maxlen=MOST_LISTED)
    count = 0
    async with aclosing(letters(desk.settings, Wanted(), pass_over=gaps.append)) as found:
        async for record in found:
            count += 1
            kept.append(record)
    told = [(record.key, read_dead_letter(record).coordinate, record.timestamp) for record in kept]
    since = await outcomes_since(desk.settings, told, pass_over=gaps.append) if told else {}
    lines = [_line(record, since.get(place, "")) for place, record in enumerate(kept)]
    return Letters(tuple(reversed(lines)), count, len(gaps))


def _line(record: ConsumerRecord, sent_to: str) -> LetterLine:
    letter = read_dead_letter(record)
    time_ms = letter.time_ms(record.timestamp)
    key = b"" if record.key is None else record.key
    return LetterLine(
        place="" if letter.coordinate is None else str(letter.coordinate),
        at="" if time_ms < 0 else rfc3339(from_epoch_ms(time_ms)),
        key=foreign(key.decode(errors="replace"), most=60),
        stage=letter.stage,
        code=letter.code,
        reason=foreign(letter.reason, most=300),
        sent_to=sent_to,
    )
