"""`ticketgate manual`: the pages, as they came with the installed version."""

from __future__ import annotations

from importlib import metadata
from importlib.resources import files

import click
from ticketgate.streams.config.usage import CommandError

# By name: the package and the file in it; the first page is the distribution's own description.
README = "readme"
PAGES = {
    "policy": ("ticketgate.agents.policy", "README.md"),
    "funnel": ("ticketgate.agents.funnel", "README.md"),
    "effects": ("ticketgate.agents.effects", "README.md"),
    "systemone": ("ticketgate.codecs.systemone", "README.md"),
    "runbook": ("ticketgate.streams", "RUNBOOK.md"),
}


@click.command("manual")
@click.argument("page", type=click.Choice([README, *PAGES]), default=README)
def command(page: str) -> None:
    """Print a page of the manual, Markdown, as it came with this version.

    \b
    readme      what it does, the first hour, what it promises
    policy      the language of policies        funnel     gates, catalogues, evidence, cases
    effects     states of an effect, providers  systemone  questions and answers over HTTP
    runbook     for operators: what a lane refuses, what to type, metrics, upgrades
    """
    click.echo_via_pager(text_of(page))


def text_of(page: str) -> str:
    """A page's text. Raises `CommandError` where the package was built without it."""
    if page == README:
        text = metadata.metadata("ticketgate").json.get("description")
    else:
        package, name = PAGES[page]
        path = files(package).joinpath(name)
        text = path.read_text(encoding="utf-8") if path.is_file() else None
    if not isinstance(text, str) or not text.strip():
        raise CommandError(
            f"this build of ticketgate has no page {page!r}; install a wheel, or see the repository"
        )
    return text
