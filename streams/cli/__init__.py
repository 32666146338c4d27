"""The command `ticketgate`: each subcommand in a file of its own, loaded only when it is asked for.

Here: parsing, calling, printing. Not here: what a command does, which is in `operations`, `process` and `demo`, and can
be called without a terminal. Sub-folders are by subject; what all share lies beside them.

Exit codes are in exit_codes.py.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click
from click.shell_completion import CompletionItem
from ticketgate.streams.cli.exit_codes import (
    EXIT_BAD_INPUT,
    EXIT_DONE,
    EXIT_FINDINGS,
    EXIT_INTERRUPTED,
    EXIT_NO_OUTPUT,
    EXIT_UNREACHABLE,
)

__all__ = ["COMMANDS", "EXIT_BAD_INPUT", "EXIT_FINDINGS", "EXIT_UNREACHABLE", "cli", "main"]

# Name to module and help line: `ticketgate --help` lists them without loading any.
COMMANDS = {
    "demo": ("running.demo", "Stream sample tickets through a gate on this machine."),
    "examples": ("running.examples", "Write the files that the manual works with into a folder."),
    "worker": ("running.worker", "Run one worker process."),
    "topics": ("running.topics", "Create the topics that the settings name."),
    "doctor": ("running.doctor", "Look at all that a worker needs, and say what mends it."),
    "settings": ("running.settings", "Show every setting, its value, source and meaning."),
    "produce": ("records.produce", "Send records from a JSON lines file."),
    "consume": ("records.consume", "Print a topic's committed records as JSON lines."),
    "serve": ("running.serve", "Answer System One requests on the web port, without a broker."),
    "run": ("deciding.run", "Answer a System One request with the local model."),
    "check": ("deciding.check", "Give the verdict on answers under a policy."),
    "policy": ("policy.group", "Check, try, show and compare policies."),
    "funnel": ("funnel.cases", "Put cases of proposed calls through the funnel's gates."),
    "release": ("funnel.release", "Say which effects may be automatic, and what must stand for it."),
    "case": ("funnel.case", "Write the record of an incident as a case that shows it."),
    "audit": ("operations.audit", "Account for every input: duplicate, missing, pending."),
    "review": ("review.group", "List what waits for a person, show it, settle it."),
    "console": ("running.console", "Open the web page on which people settle what lies in review."),
    "claims": ("operations.claims", "Show a claim, or rebuild lost claims from the outputs."),
    "reconcile": (
        "operations.reconcile",
        "List effects whose outcome is open; read them back or settle one.",
    ),
    "ledger": ("operations.ledger", "Show an effect, or rebuild the ledger from the receipts."),
    "replay": ("operations.replay", "Set a group's offsets back on purpose."),
    "dead-letter": ("records.dead_letter", "List what could not be read, and send it again."),
    "manual": ("running.manual", "Print a page of the manual, as it came with this version."),
    "completion": ("running.completion", "Print what makes a shell complete commands and options."),
}

# With these a device says that it takes no more, or is no longer there.
_NOT_WRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}


class _ReaderGone(Exception):
    """What reads our output has seen enough."""


class LazyGroup(click.Group):
    """A group whose commands are imported by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, loaded."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"ticketgate.streams.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names and help lines of commands, without loading one; and the group's own options."""
        found = [
            CompletionItem(name, help=line)
            for name, (_, line) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; click would end with code 1 for a reader of stdout that went away."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as err:
            raise _ReaderGone from err

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List names and help lines without loading a command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ticketgate")
def cli() -> None:
    """Let a local model's decision about a ticket through once, and only if it is valid."""


def main(arguments: Sequence[str] | None = None, *, command: click.Command = cli) -> NoReturn:
    """Run the command line; whatever a person can mend is one line on stderr, without a traceback, and with --json an
    object on stdout too."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        # Here, for the constants of this module are read without running a command.
        from ticketgate.streams.cli.safe_stream import guard_standard_streams

        guard_standard_streams()
        code = command.main(arguments, prog_name="ticketgate", standalone_mode=False)
        # Here, and not when the interpreter ends: a reader that went away is known only by then.
        sys.stdout.flush()
    except click.ClickException as err:
        err.show()
        _end(err.exit_code, err.format_message(), given)
    except (click.Abort, KeyboardInterrupt):
        _end(EXIT_INTERRUPTED)
    except (BrokenPipeError, _ReaderGone):
        # The reader of our output went away, as `head` does.
        _drop_output()
        sys.exit(EXIT_DONE)
    except Exception as err:
        if isinstance(err, OSError) and err.errno in _NOT_WRITTEN:
            _drop_output()
            _say_last(
                f"ticketgate: the output cannot be written ({err.strerror}); give it a place that takes it"
            )
            sys.exit(EXIT_NO_OUTPUT)
        if (known := _exit_code(err)) is None:
            raise
        click.echo(f"ticketgate: {err}", err=True)
        _end(known, str(err), given)
    sys.exit(code if isinstance(code, int) else EXIT_DONE)


def _end(code: int, message: str | None = None, given: Sequence[str] = ()) -> NoReturn:
    """End with `code`; who asked for data is told of the error as data, in the line behind what was printed so far."""
    try:
        if message is not None and "--json" in given:
            from ticketgate.streams.cli.output import print_json

            print_json({"error": message, "exit_code": code})
        sys.stdout.flush()
    except OSError:
        _drop_output()
    sys.exit(code)


def _say_last(line: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(line, err=True)


def _drop_output() -> None:
    """What is still in the buffer goes nowhere, or the interpreter would complain of it at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _exit_code(err: Exception) -> int | None:
    """The exit code of an error made for people; None for a fault of ours, which keeps its traceback.

    By name of the class, so that no command's start loads what only another command needs.
    """
    names = {kind.__name__ for kind in type(err).__mro__}
    if names & {"Unreachable", "PartFailed"}:
        return EXIT_UNREACHABLE
    if names & {
        "CommandError",
        "SettingsError",
        "PolicyError",
        "ConsoleKeysError",
        "FunnelFileError",
        "ScorerError",
        "PartMissing",
        "ConditionFailed",
    }:
        return EXIT_BAD_INPUT
    return None
