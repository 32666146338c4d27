"""`ticketgate run`: a System One request answered by the local model; no broker, no Redis."""

from __future__ import annotations

from pathlib import Path

import click
from ticketgate.streams.cli import EXIT_FINDINGS, EXIT_UNREACHABLE
from ticketgate.streams.cli.files import named, read_json
from ticketgate.streams.cli.options import json_flag, settings_flags
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError


@click.command("run")
@click.option(
    "--request",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    help='The request, {"state": …, "questions": {…}}, as POST /v1/systemone takes it (- for standard input).',
)
@json_flag
@settings_flags("scorer", "model", "model_aliases")
def command(request: Path, as_json: bool, settings: Settings) -> int:
    """Answer a System One request with the local model, without a broker.

    A person sees a bar for each answer, and percentages that are cut to a tenth, not rounded, so that none is shown
    on the other side of a threshold. --json gives the response, its numbers as they are. Exit code 2 for a bad
    request, 3 for answers that do not hold together.

    The scorer fixed:PATH gives the answers that its file has under "request".
    """
    # What scores is loaded when it is needed, so that --help is quick.
    from ticketgate.agents.scoring import ScorerUnavailable
    from ticketgate.agents.scoring.systemone import AnswersUnusable, RequestError, answer, read_request
    from ticketgate.streams.cli.deciding.show_answers import show
    from ticketgate.streams.cli.output import print_json, say_error
    from ticketgate.streams.roles.decide.scorers import require_models

    try:
        # Before the model is loaded: who mistyped need not wait for it.
        asked = read_request(read_json(request))
    except RequestError as err:
        raise CommandError("\n".join(f"{named(request)}: {fault}" for fault in err.faults)) from err
    models = require_models(settings, only=asked.model)
    try:
        response = answer(asked, models.named(asked.model))
    except AnswersUnusable as err:
        return say_error(str(err), EXIT_FINDINGS, as_json=as_json)
    except ScorerUnavailable as err:
        return say_error(f"{settings.scorer}: {err}", EXIT_UNREACHABLE, as_json=as_json)
    finally:
        models.close()
    if as_json:
        print_json(response.to_json())
    else:
        show(response)
    return 0
