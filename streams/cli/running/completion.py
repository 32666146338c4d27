"""`ticketgate completion`: what a shell needs to complete our commands and options, as click makes it."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print what makes SHELL complete commands and options.

    \b
    bash   ticketgate completion bash > ~/.local/share/bash-completion/completions/ticketgate
    zsh    ticketgate completion zsh > a folder of $fpath, as _ticketgate
    fish   ticketgate completion fish > ~/.config/fish/completions/ticketgate.fish
    """
    made = get_completion_class(shell)
    if made is None:
        raise click.BadParameter(f"click completes no {shell}")
    click.echo(made(context.find_root().command, {}, "ticketgate", "_TICKETGATE_COMPLETE").source())
