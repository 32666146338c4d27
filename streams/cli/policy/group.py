"""`ticketgate policy`: lint, test, show, diff, rescore, import. Each loads only what it needs, no broker's client."""

from __future__ import annotations

import importlib

import click

# Name to module and help line, as in COMMANDS.
SUBCOMMANDS = {
    "lint": ("policy.lint", "Read a policy as logic and report what it cannot mean."),
    "test": ("policy.test", "Judge a table of cases, and show the examples to a model."),
    "show": ("policy.show", "Show a policy as sentences, or as a picture."),
    "diff": ("policy.diff", "Show what changes from one policy to another."),
    "rescore": ("policy.rescore", "Show what another model makes of recorded tickets."),
    "import": ("policy.import_", "Make a policy of a GLiNER2.5 classification schema."),
}


class PolicyGroup(click.Group):
    """The subcommands, imported by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands in their order."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name, loaded."""
        if cmd_name not in SUBCOMMANDS:
            return None
        module = importlib.import_module(f"ticketgate.streams.cli.{SUBCOMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List names and help lines without loading a subcommand."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in SUBCOMMANDS.items()])


@click.group("policy", cls=PolicyGroup)
def command() -> None:
    """Check, try and compare policies; `ticketgate manual policy` describes the language."""
