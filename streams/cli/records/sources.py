"""Where `produce` takes its lines from: a file, something that comes as it likes, or a table."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ticketgate.streams.cli.files import named
from ticketgate.streams.cli.lines import BadLine, Line, is_stream, read_lines, stream_lines
from ticketgate.streams.cli.output import say
from ticketgate.streams.cli.packed import InputFault, unpacked
from ticketgate.streams.cli.records.csv_rows import Table, open_table, read_rows
from ticketgate.streams.config.usage import CommandError

TABLE_SUFFIXES = (".csv", ".tsv")
# How soon a signal is seen while nothing comes.
LOOK_S = 0.2
_CHUNK_BYTES = 2**16


class Source:
    """The lines of a file or of standard input from `from_line` on, each with its number from 1."""

    def __init__(self, file: Path, from_line: int) -> None:
        self._file, self._from = file, from_line

    @property
    def is_stream(self) -> bool:
        """Whether the lines come but once."""
        return is_stream(self._file)

    def lines(self) -> Iterator[Line]:
        """The lines of what can be read again. Raises OSError."""
        return (line for line in self._all() if line[0] >= self._from)

    async def coming(self, stop: asyncio.Event) -> AsyncIterator[Line]:
        """The lines, however they come, none any more once `stop` is set. Raises OSError."""
        if self.is_stream:
            async for line in stream_lines(self._file, stop):
                if line[0] >= self._from:
                    yield line
            return
        for line in self.lines():
            if stop.is_set():
                return
            yield line

    def _all(self) -> Iterator[Line]:
        return read_lines(self._file)


class TableSource(Source):
    """The rows of a table, by the line on which each begins."""

    def __init__(self, table: Table, from_line: int) -> None:
        super().__init__(table.path, from_line)
        self._table = table

    @property
    def is_stream(self) -> bool:
        """Never: what came from a stream was kept."""
        return False

    def _all(self) -> Iterator[Line]:
        return read_rows(self._table)


@contextmanager
def table_source(
    file: Path,
    from_line: int,
    *,
    id_column: str | None,
    state_columns: Sequence[str],
    encoding: str | None,
    delimiter: str | None,
) -> Iterator[TableSource]:
    """The rows of a table; one from a stream is kept in a file first, for it is read through before anything is sent,
    and so is what a gzip unpacks to.

    Says on stderr how a table is read whose encoding was guessed. Raises `CommandError`, `BadLine` and OSError.
    """
    with tempfile.TemporaryDirectory(prefix="ticketgate-") as folder:
        path = file
        if is_stream(file):
            path = Path(folder) / "table"
            _keep(file, path)
        path = _unpacked(path, Path(folder) / "unpacked")
        table = open_table(
            path,
            name=named(file),
            id_column=id_column,
            state_columns=state_columns,
            encoding=encoding,
            delimiter=delimiter,
        )
        if table.is_guessed:
            say(f"{named(file)}: not UTF-8; read as {table}; --encoding says otherwise")
        yield TableSource(table, from_line)


def _keep(stream: Path, path: Path) -> None:
    """Write what comes from a stream into a file."""
    source = sys.stdin.fileno() if str(stream) == "-" else os.open(stream, os.O_RDONLY)
    try:
        with path.open("wb") as kept:
            while True:
                # A signal that comes just before a read that waits would be seen when it returns, which may be never.
                if not select.select([source], [], [], LOOK_S)[0]:
                    continue
                if not (chunk := os.read(source, _CHUNK_BYTES)):
                    return
                kept.write(chunk)
    finally:
        if str(stream) != "-":
            os.close(source)


def _unpacked(path: Path, to: Path) -> Path:
    """The file that holds the table: `to`, if `path` is a gzip. Raises `BadLine` and OSError."""
    with path.open("rb") as file:
        if (packed := unpacked(file)) is None:
            return path
        with to.open("wb") as kept:
            try:
                while part := packed.some(_CHUNK_BYTES):
                    kept.write(part)
            except InputFault as err:
                raise BadLine(f"1: {err}") from err
    return to


def is_table(file: Path, *, id_column: str | None, state_columns: Sequence[str], raw: bool) -> bool:
    """Whether the options, or the file's name, say that it is a table. Raises `CommandError`."""
    name = file.name.lower().removesuffix(".gz")
    found = id_column is not None or bool(state_columns) or name.endswith(TABLE_SUFFIXES)
    if found and raw:
        raise CommandError("--raw sends lines as they are, and a table has rows; leave --raw out")
    return found
