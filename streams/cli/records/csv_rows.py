"""A table as help desks export it (CSV), as lines that `produce` reads: a ticket of JSON a row.

The cells are read by Python's csv, strictly; the encoding is told by a mark of order, else it is UTF-8, else
charset-normalizer guesses, and the command says what. The delimiter is the one by which the header has the columns
that were asked for. Promise: a row is sent whole or refused by the line on which it begins; no cell is dropped but
empty ones.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ticketgate.agents.plural import counted
from ticketgate.codecs.values.strict import JsonValue, encode
from ticketgate.streams.cli.lines import BadLine, Line
from ticketgate.streams.config.usage import CommandError

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}
# Enough text for a guess at its encoding; a guess at all of a large file takes minutes.
_SAMPLE_BYTES = 2**18
_CHUNK_CHARS = 2**20
# What Excel writes before the header, for itself.
_SEPARATOR_LINE = "sep="
_CERTAIN = ("utf-8", "utf-8-sig", "utf-16")
# A cell as large as a ticket may be; csv's own limit is 128 KiB.
_MOST_CELL_CHARS = 64 * 2**20
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """How a file is to be read. id, state: columns; several of state make an object of them. encoding, delimiter: as
    found, or as given. header_lines: how many lines stand before the first row."""

    path: Path
    columns: tuple[str, ...]
    id: str
    state: tuple[str, ...]
    encoding: str
    delimiter: str
    header_lines: int
    is_guessed: bool

    def __str__(self) -> str:
        """`UTF-8, separated by semicolons`, for people."""
        names = {value: name for name, value in DELIMITERS.items()}
        return f"{self.encoding}, separated by {names.get(self.delimiter, self.delimiter)}"


def open_table(
    path: Path,
    *,
    name: str,
    id_column: str | None,
    state_columns: Sequence[str],
    encoding: str | None,
    delimiter: str | None,
) -> Table:
    """Look at the file's encoding and header. name: how messages call it. Raises `CommandError` and OSError."""
    known = encoding or _encoding_of(path, name)
    wanted = (*((id_column,) if id_column else ()), *state_columns)
    header_lines, columns, found = _header(path, name, known, delimiter, wanted=wanted)
    listed = ", ".join(repr(each) for each in columns if each) or "none"
    if id_column is None or not state_columns:
        raise CommandError(
            f"{name}: a table, and nothing says which columns are what; give --id COLUMN and --state COLUMN;"
            f" its columns are {listed}"
        )
    for each in wanted:
        if each not in columns:
            near = difflib.get_close_matches(each, columns, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"its columns are {listed}"
            raise CommandError(f"{name}:{header_lines}: no column {each!r}; {hint}")
    # An unnamed last column is what a trailing delimiter leaves.
    columns_named = [each for each in columns if each]
    if twice := next((each for each in columns_named if columns_named.count(each) > 1), None):
        raise CommandError(f"{name}:{header_lines}: two columns are named {twice!r}; rename one of them")
    return Table(
        path=path,
        columns=columns,
        id=id_column,
        state=tuple(state_columns),
        encoding=known,
        delimiter=found,
        header_lines=header_lines,
        is_guessed=encoding is None and known not in _CERTAIN,
    )


def read_rows(table: Table) -> Iterator[Line]:
    """Each row as the line on which it begins and a ticket of JSON; empty rows are left out.

    Raises `BadLine` and OSError.
    """
    csv.field_size_limit(_MOST_CELL_CHARS)
    with table.path.open(encoding=table.encoding, errors="strict", newline="") as file:
        rows = csv.reader(file, delimiter=table.delimiter, strict=True)
        _skip(rows, table.header_lines)
        while True:
            begins = rows.line_num + 1
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error as err:
                raise BadLine(f"{begins}: no row of a table ({err}); mend its quotation marks") from err
            except UnicodeError as err:
                raise BadLine(f"{begins}: not {table.encoding}; name the file's --encoding") from err
            if any(cell.strip() for cell in row):
                yield begins, encode(_ticket(table, begins, row))


def _ticket(table: Table, line: int, row: Sequence[str]) -> dict[str, JsonValue]:
    wide = len(table.columns)
    if len(row) < wide or any(row[wide:]):
        raise BadLine(f"{line}: has {counted(len(row), 'cell')}, and the header {wide}; mend the row")
    cells = dict(zip(table.columns, row, strict=False))
    if cells.get(""):
        raise BadLine(f"{line}: has text in a column without a name; name it in the header")
    if len(table.state) == 1:
        state: JsonValue = cells[table.state[0]]
    else:
        state = {name: cells[name] for name in table.state if cells[name]}
    others: dict[str, JsonValue] = {
        name: cell
        for name, cell in cells.items()
        if cell and name and name != table.id and name not in table.state
    }
    ticket: dict[str, JsonValue] = {"id": cells[table.id], "state": state}
    return {**ticket, "attributes": others} if others else ticket


def _header(
    path: Path, name: str, encoding: str, delimiter: str | None, *, wanted: Sequence[str]
) -> tuple[int, tuple[str, ...], str]:
    """How many lines the header takes, its columns, and the delimiter by which it has most of what is wanted."""
    found: list[tuple[int, int, int, tuple[str, ...], str]] = []
    for each in [delimiter] if delimiter else DELIMITERS.values():
        try:
            with path.open(encoding=encoding, errors="strict", newline="") as file:
                rows = csv.reader(file, delimiter=each, strict=True)
                columns = next(rows, [])
                if len(columns) <= 2 and columns and columns[0].startswith(_SEPARATOR_LINE):
                    columns = next(rows, [])
                names = tuple(each.strip() for each in columns)
                found.append((sum(each in names for each in wanted), len(names), rows.line_num, names, each))
        except csv.Error:
            continue
        except UnicodeError as err:
            raise CommandError(f"{name}:1: not {encoding}; name the file's --encoding") from err
    if not found:
        raise CommandError(f"{name}:1: no header of a table; name its --delimiter")
    _, _, lines, columns_found, chosen = max(found, key=lambda each: each[:2])
    return lines, columns_found, chosen


def _skip(rows: Iterator[list[str]], lines: int) -> None:
    while rows.line_num < lines:  # type: ignore[attr-defined]  # csv's reader has it
        next(rows)


def _encoding_of(path: Path, name: str) -> str:
    with path.open("rb") as file:
        begins = file.read(4)
    for mark, encoding in _MARKS:
        if begins.startswith(mark):
            return encoding
    try:
        with path.open(encoding="utf-8", errors="strict", newline="") as text:
            while text.read(_CHUNK_CHARS):
                pass
    except UnicodeDecodeError:
        with path.open("rb") as file:
            return _guess(name, file.read(_SAMPLE_BYTES))
    return "utf-8"


def _guess(name: str, sample: bytes) -> str:
    # Loaded only for a file that is not UTF-8: it takes a tenth of a second.
    from charset_normalizer import from_bytes

    best = from_bytes(sample).best()
    if best is None:
        raise CommandError(f"{name}: not UTF-8, and no other encoding fits; name it with --encoding")
    return best.encoding
