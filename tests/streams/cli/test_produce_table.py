"""`produce` reads tables as help desks export them."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.codecs.values.strict import decode
from ticketgate.streams.cli.lines import BadLine
from ticketgate.streams.cli.records.csv_rows import open_table, read_rows
from ticketgate.streams.config.usage import CommandError

from tests.streams.cli.conftest import Run, process

TEXT = "Grüße: mein Drucker, „der neue“, geht nicht"
ROWS = [
    ["Ticket ID", "Description", "Priority", "Group"],
    ["4711", TEXT, "high", ""],
    ["4712", 'He said "no"\nand hung up; twice', "", "Zürich"],
]
EXPECTED = [
    (2, {"id": "4711", "state": TEXT, "attributes": {"Priority": "high"}}),
    (3, {"id": "4712", "state": ROWS[2][1], "attributes": {"Group": "Zürich"}}),
]


def write(path: Path, rows: list[list[str]], *, encoding: str = "utf-8", **dialect: str) -> Path:
    kept = io.StringIO(newline="")
    csv.writer(kept, **dialect).writerows(rows)  # type: ignore[arg-type]
    path.write_bytes(kept.getvalue().encode(encoding))
    return path


def read(
    path: Path,
    *,
    id_column: str | None = "Ticket ID",
    state: tuple[str, ...] = ("Description",),
    encoding: str | None = None,
    delimiter: str | None = None,
) -> list[tuple[int, object]]:
    table = open_table(
        path,
        name="export.csv",
        id_column=id_column,
        state_columns=state,
        encoding=encoding,
        delimiter=delimiter,
    )
    return [(line, decode(row)) for line, row in read_rows(table)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("lineterminator", ["\r\n", "\n"])
def test_a_table_is_read_whoever_wrote_it(
    tmp_path: Path, delimiter: str, encoding: str, lineterminator: str
) -> None:
    path = write(
        tmp_path / "t.csv", ROWS, encoding=encoding, delimiter=delimiter, lineterminator=lineterminator
    )

    assert read(path) == EXPECTED


def test_what_excel_writes_for_itself_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("sep=;\nTicket ID;Description\n1;x\n")

    assert read(path) == [(3, {"id": "1", "state": "x"})]


def test_several_columns_of_what_a_ticket_says_make_an_object(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", [["id", "subject", "body", "n"], ["1", "s", "", "5"], ["2", "s", "b", ""]]
    )

    found = read(path, id_column="id", state=("subject", "body"))

    assert found == [
        (2, {"id": "1", "state": {"subject": "s"}, "attributes": {"n": "5"}}),
        (3, {"id": "2", "state": {"subject": "s", "body": "b"}}),
    ]


def test_a_row_is_told_by_the_line_on_which_it_begins(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", [["id", "text"], ["1", "a\nb\nc"], ["2", "d"], [], ["3", "e"]])

    assert [line for line, _ in read(path, id_column="id", state=("text",))] == [2, 5, 7]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("id,text\n1\n", "2: has 1 cell, and the header 2"),
        ("id,text\n1,x,more\n", "2: has 3 cells, and the header 2"),
        ('id,text\n1,"x\n2,y\n', "2: no row of a table"),
        ('id,text\n1,"x"y\n', "2: no row of a table"),
        ("id,text,\n1,x,more\n", "2: has text in a column without a name"),
    ],
)
def test_a_row_that_is_none_is_refused_by_its_line(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)

    with pytest.raises(BadLine) as refused:
        read(path, id_column="id", state=("text",))

    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("content", "id_column", "state", "said"),
    [
        ("Ticket,Text\n", "ticket", ("Text",), "no column 'ticket'; did you mean 'Ticket'?"),
        ("Ticket,Text\n", "number", ("Text",), "its columns are 'Ticket', 'Text'"),
        ("Ticket,Text\n", None, (), "give --id COLUMN and --state COLUMN; its columns are 'Ticket', 'Text'"),
        ("id,text,note,note\n", "id", ("text",), "two columns are named 'note'"),
        ("", "id", ("text",), "no column 'id'"),
        ('"id,text\n', "id", ("text",), "no header of a table"),
    ],
)
def test_a_header_that_lacks_what_was_asked_for_is_refused(
    tmp_path: Path, content: str, id_column: str | None, state: tuple[str, ...], said: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)

    with pytest.raises(CommandError) as refused:
        read(path, id_column=id_column, state=state)

    assert str(refused.value).startswith("export.csv")
    assert said in str(refused.value)


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)


@given(rows=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=6), delimiter=st.sampled_from(",;\t|"))
def test_whatever_was_written_into_a_table_is_read_out_of_it(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], delimiter: str
) -> None:
    path = tmp_path_factory.mktemp("table") / "t.csv"
    write(path, [["id", "text", "other"], *map(list, rows)], delimiter=delimiter, lineterminator="\r\n")

    found = [row for _, row in read(path, id_column="id", state=("text",), delimiter=delimiter)]

    assert found == [
        {"id": a, "state": b, **({"attributes": {"other": c}} if c else {})}
        for a, b, c in rows
        if any(cell.strip() for cell in (a, b, c))
    ]


@pytest.mark.kafka
def test_a_table_is_sent_as_tickets(tickets: str, ticketgate: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "export.csv", ROWS, encoding="cp1252", delimiter=";")

    ran = ticketgate("produce", path, "--id", "Ticket ID", "--state", "Description", "--json")

    assert (ran.code, ran.lines[0]["sent"], ran.lines[0]["next_line"]) == (0, 2, 4)
    assert "read as cp125" in ran.err
    found = ticketgate("consume", tickets).lines
    assert sorted((line["key"], line["value"]["id"]) for line in found) == [
        ("4711", "4711"),
        ("4712", "4712"),
    ]


@pytest.mark.kafka
def test_a_row_that_no_worker_could_read_sends_nothing(tickets: str, ticketgate: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "export.csv", [["id", "text"], ["1", "x"], ["", "y"]])

    ran = ticketgate("produce", path, "--id", "id", "--state", "text")

    assert ran.code == 2
    assert f'{path}:3: no ticket: "id"' in ran.err
    assert "nothing was sent" in ran.err
    assert ticketgate("consume", tickets).lines == []


@pytest.mark.kafka
def test_a_table_may_come_through_a_pipe_and_be_gone_on_with(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    path = write(tmp_path / "export.csv", [["id", "text"], ["1", "a\nb"], ["2", "c"], ["3", "d"]])

    ran = process(
        "produce", "-", "--id", "id", "--state", "text", "--from-line", "4", given=path.read_bytes()
    )

    assert ran.code == 0, ran.err
    assert sorted(line["id"] for line in ticketgate("consume", tickets, "--values").lines) == ["2", "3"]


def test_a_table_that_is_named_csv_asks_for_its_columns(ticketgate: Run, tmp_path: Path) -> None:
    path = write(tmp_path / "export.csv", ROWS)

    ran = ticketgate("produce", path)

    assert ran.code == 2
    assert "--id COLUMN" in ran.err
    assert "'Ticket ID'" in ran.err


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--encoding", "latin-99", "there is no encoding"),
        ("--delimiter", "semi", "is not one character"),
        ("--raw", None, "leave --raw out"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(
    ticketgate: Run, tmp_path: Path, option: str, value: str | None, said: str
) -> None:
    path = write(tmp_path / "export.csv", ROWS)

    ran = ticketgate(
        "produce", path, "--id", "Ticket ID", "--state", "Description", option, *([value] if value else [])
    )

    assert ran.code == 2
    assert said in ran.err
