"""Run one part in the foreground until Ctrl-C: `python -m ticketgate.streams.parts.foreground kafka --data FOLDER`.

What `make kafka` and `make redis` call. The part is stopped in order and its data stay.
"""

import signal
import sys
import threading
from pathlib import Path

import click
from ticketgate.streams.parts.failures import PartFailed, PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

BAD_INPUT, DEPENDENCY_UNREACHABLE = 2, 4
# How often the part is looked at, so that this command ends soon after a part that ends by itself.
WATCH_S = 1.0


@click.command()
@click.argument("part", type=click.Choice(["kafka", "valkey"]))
@click.option("--port", type=click.IntRange(1, 65535), required=True, help="Port on 127.0.0.1.")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder to keep."
)
def main(part: str, port: int, data: Path) -> None:
    """Run PART on 127.0.0.1 until Ctrl-C; its data stay in the folder."""
    ended = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: ended.set())
    try:
        with Kafka(data=data, port=port) if part == "kafka" else Valkey(data=data, port=port) as running:
            click.echo(
                f"{part} on 127.0.0.1:{port}, process {running.pid}, data in {data}; Ctrl-C stops it",
                err=True,
            )
            while running.is_running and not ended.wait(WATCH_S):
                pass
            if not ended.is_set():
                raise PartFailed(part, "ended by itself", log_file=running.log_file)
    except (PartMissing, PartFailed) as err:
        click.echo(err, err=True)
        sys.exit(DEPENDENCY_UNREACHABLE)
    except OSError as err:
        click.echo(
            f"--data {data}: {err.strerror}: {err.filename}; choose a folder that can be written", err=True
        )
        sys.exit(BAD_INPUT)


if __name__ == "__main__":
    main()
