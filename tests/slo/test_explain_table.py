"""CSV files, good and bad, and the command that explains them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from explain_kit import labelled_incidents
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.cli.main import main
from claudescope.errors import UsageError
from claudescope.slo.burn import Counts
from claudescope.slo.explain.cells import Cell
from claudescope.slo.explain.table import Columns, read_table

COLUMNS = Columns("t", "bad", "total")
HEAD = "t,tool,bad,total\n"


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "counts.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_each_other_column_is_a_dimension(tmp_path: Path) -> None:
    text = '\ufefft,tool,bad,step,total\r\n1,a,1,7,10\r\n1,a,2,7,10\r\n\r\n2,"x,""y""",0.5,,3\r\n'
    table = read_table(write(tmp_path, text), COLUMNS)
    assert table.dimensions == ("tool", "step")
    assert table.cells("2").rows == (
        Cell(("a", "7"), Counts(0, 0), (Counts(3, 20),)),
        Cell(('x,"y"', ""), Counts(0.5, 3), (Counts(0, 0),)),
    )


def test_points_are_in_order_of_numbers_where_all_are_numbers(tmp_path: Path) -> None:
    rows = "".join(f"{time},a,{bad},10\n" for time, bad in (("10", 1), ("9", 2), ("9.0", 3), ("100", 4)))
    table = read_table(write(tmp_path, HEAD + rows), COLUMNS)
    assert list(table.points) == ["9", "10", "100"]
    (row,) = table.cells("1e2").rows  # the number that is written 100
    assert row == Cell(("a",), Counts(4, 10), (Counts(5, 20), Counts(1, 10)))
    assert table.cells("100", 1).rows[0].before == (Counts(1, 10),)
    assert table.cells("100", 9).windows == 2
    assert table.cells("9").windows == 0


def test_points_are_text_where_one_is_none(tmp_path: Path) -> None:
    rows = "".join(f"{time},a,1,10\n" for time in ("2026-01-02T00:00Z", "2026-01-01T00:00Z"))
    table = read_table(write(tmp_path, HEAD + rows), COLUMNS)
    assert list(table.points) == ["2026-01-01T00:00Z", "2026-01-02T00:00Z"]
    assert table.cells(" 2026-01-02T00:00Z ").windows == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "counts.csv: it is empty"),
        (HEAD, "counts.csv: there is no row under the header"),
        ("t,tool,tool,bad,total\n1,a,a,1,1\n", "counts.csv:1: the column 'tool' is there twice"),
        ("t,tool,bad\n", "counts.csv:1: there is no column 'total'"),
        ("t;tool;bad;total\n", "Fields are separated by commas"),
        ("t,bad,total\n1,1,1\n", "counts.csv:1: there is no column besides those three"),
        (HEAD + "1,a,1,2\n1,a,1\n", "counts.csv:3: 3 fields, and the header has 4"),
        (HEAD + "1,a,1,2,3\n", "counts.csv:2: 5 fields, and the header has 4"),
        (HEAD + " ,a,1,2\n", "counts.csv:2: no time in column 't'"),
        (HEAD + "1,a,-1,2\n", "counts.csv:2: column 'bad' is '-1'"),
        (HEAD + "1,a,1,many\n", "counts.csv:2: column 'total' is 'many'"),
        (HEAD + "1,a,1,\n", "counts.csv:2: column 'total' is ''"),
        (HEAD + "1,a,1,1_000\n", "counts.csv:2: column 'total' is '1_000'"),
        (HEAD + "1,a,nan,2\n", "counts.csv:2: column 'bad' is 'nan'"),
        (HEAD + "1,a,1,inf\n", "counts.csv:2: column 'total' is 'inf'"),
        (HEAD + f"1,a,1,{'9' * 60}x\n", "'999999999999999999999999999999999999999…'"),
        (HEAD + '1,"a\nb",1,2\n1,a,x,2\n', "counts.csv:4: column 'bad' is 'x'"),
        (HEAD + '1,"a,1,2\n', "counts.csv:2: unexpected end of data"),
        (HEAD + "1,a,9,2\n", "column 'bad' adds up to 9 and column 'total' to only 2"),
        (HEAD.encode() + b"1,\xff,1,2\n", "counts.csv: not UTF-8"),
        (HEAD + f'1,"{"a" * (2 << 20)}",1,2\n', "counts.csv:2: field larger than field limit"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_table(write(tmp_path, text), COLUMNS)
    assert message in str(caught.value)
    assert caught.value.fix


def test_three_columns_are_three(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name the same column"):
        read_table(write(tmp_path, HEAD + "1,a,1,2\n"), Columns("t", "bad", "bad"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_table(tmp_path / "none.csv", COLUMNS)
    with pytest.raises(UsageError, match="Is a directory"):
        read_table(tmp_path, COLUMNS)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_file_is_more_than_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = write(tmp_path_factory.getbasetemp(), HEAD.encode() + content)
    try:
        table = read_table(path, COLUMNS)
    except UsageError:
        return
    for time in table.points:
        assert table.cells(time).dimensions == ("tool",)


def test_how_far_it_is(tmp_path: Path) -> None:
    said: list[str] = []
    read_table(write(tmp_path, HEAD + "1,a,0,1\n" * 100_000), COLUMNS, said.append)
    assert said == [f"{tmp_path}/counts.csv: 50,000 lines read", f"{tmp_path}/counts.csv: 100,000 lines read"]


def incident(folder: Path) -> Path:
    """20 of 100 runs of one of four tools fail at time 3, and 2 of 100 of all at any other."""
    rows = [
        f"{time},{tool},{step},{40 if (time, tool) == (3, 'search') else 2},100\n"
        for time in (1, 2, 3)
        for tool in ("search", "read", "write", "list")
        for step in range(4)
    ]
    return write(folder, "t,gen_ai_tool_name,claudescope_step_index,bad,total\n" + "".join(rows))


def run(path: Path, *more: str) -> int:
    flags = ("--time", "t", "--bad", "bad", "--total", "total")
    return main(["slo", "explain", "--csv", str(path), *flags, *more])


def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(incident(tmp_path), "--at", "3", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["verdict"] == "slices"
    first = printed["slices"][0]
    assert list(first) == ["labels", "bad", "total", "expected", "excess", "share", "llr", "p"]
    assert first["labels"] == {"gen_ai_tool_name": "search"}
    assert (first["bad"], first["total"], first["p"]) == (160, 400, 1e-6)
    assert first["expected"] == pytest.approx(8, abs=0.1)  # 2 of 100 in each of four cells
    assert first["excess"] == pytest.approx(160 - first["expected"], abs=0.001)
    assert first["share"] == 1


def test_the_command_says_it_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(incident(tmp_path), "--at", "3", "--noun", "steps") == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "152 of the 152 bad steps beyond what was expected are in tool search: 160 of its 400 steps are bad, 8 were"
        " expected (chance of such a slice where nothing is wrong: under 1 in a million)."
    )


def test_a_terminal_without_the_characters(tmp_path: Path) -> None:
    path = write(tmp_path, incident(tmp_path).read_text(encoding="utf-8").replace("search", "搜索"))
    flags = ["--time", "t", "--bad", "bad", "--total", "total", "--at", "3"]
    command = [sys.executable, "-m", "claudescope", "slo", "explain", "--csv", str(path), *flags]
    variables = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, check=True, env=variables, timeout=100)
    assert rb"tool \u641c\u7d22" in done.stdout


def test_fail_and_picture(tmp_path: Path) -> None:
    path = incident(tmp_path)
    assert run(path, "--at", "3", "--fail", "--svg", str(tmp_path / "a.svg")) == 1
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert run(path, "--at", "2", "--fail", "--baseline", "1") == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--at", "7"], "there is no time '7'. Its 3 times go from 1 to 3; name one of them with --at."),
        (["--at", "3", "--baseline", "0"], "--baseline is '0'. It takes a number of points of time, from 1."),
        (["--at", "3", "--baseline", "9" * 5000], "--baseline is '999"),
        (["--at", "3", "--baseline", "x"], "--baseline is 'x'."),
        (["--at", "3", "--svg", "no/such/folder.svg"], "no/such/folder.svg: No such file or directory."),
        (["--at", "3", "--cases", "no.jsonl"], "no.jsonl"),
        ([], "--at"),
    ],
)
def test_wrong_use_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], message: str
) -> None:
    assert run(incident(tmp_path), *more) == 2
    assert message in capsys.readouterr().err


def test_without_a_point_before_there_is_nothing_to_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(incident(tmp_path), "--at", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"verdict": "insufficient_data", "slices": []}


def test_a_labelled_incident_is_explained_from_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    folder = labelled_incidents(bool(os.environ.get("CI")))
    path = folder / "case70_0324_1199512718563.csv"
    flags = ("--time", "min", "--bad", "value", "--total", "cnt", "--at", "1585053720", "--json")
    assert main(["slo", "explain", "--csv", str(path), *flags]) == 0
    assert json.loads(capsys.readouterr().out)["slices"][0]["labels"] == {"bitrate": "2500"}
