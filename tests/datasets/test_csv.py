"""CSV files of cases: round trip, faults by row, files that are refused (DATA-030, DATA-031)."""

from __future__ import annotations

import csv
import io

import pytest

from apps.datasets.questions import normalized
from apps.datasets.services.csv_files import BadRow, CSVRefused, lines, parse

CASES = normalized(
    [
        {
            "main_question": {
                "query": 'Say "hi", now\r\nor\nlater; ok\t?',
                "expectedResults": "=HYPERLINK(1)",
                "expectedCapabilities": ["a", "b"],
                "expectedKnowledgeBase": ["with;semicolon", " space"],
                "expectedDelegations": [],
                "judgeGuideline": "'=quoted",
                "retrievalContext": "-1",
                "expectedRetrievalContext": ["one", "[two]"],
                "expectedTrajectory": {"tools": [], "mode": "strict"},
                "smokeTest": {"enabled": True, "count": 3},
                "splits": ["smoke"],
                "other": {"x": 1},
            },
            "follow_up_questions": [{"query": "😀?", "expectedResults": "+1"}],
            "source": {"traceId": "t", "addedAt": "2026-01-01T00:00:00.000Z"},
            "label": "kept",
        },
        {
            "main_question": {
                "query": "@cmd|' /C calc'!A0",
                "expectedRetrievalContext": '["text that looks like a list"]',
                "expectedCapabilities": ['["x"]'],
            },
            "follow_up_questions": [],
        },
        {"main_question": {"query": "שלום 👩‍👩‍👧", "expectedResults": "''=x"}, "follow_up_questions": []},
    ]
)


def exported(cases=CASES) -> str:
    return "".join(lines(cases))


def test_round_trip():
    """Commas, quotes, line breaks, formulas, emoji, lists and everything else come back equal."""
    parsed = parse(exported().encode())
    assert parsed.bad_rows == []
    assert parsed.ignored_columns == []
    assert parsed.cases == CASES


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_other_dialects(delimiter, end, encoding):
    """As spreadsheets of other countries write them."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=end)
    writer.writerows(csv.reader(io.StringIO(exported(), newline="")))
    assert parse(buffer.getvalue().encode(encoding)).cases == CASES


def test_formulas_are_inert():
    """No cell begins with what a spreadsheet runs."""
    for row in csv.reader(io.StringIO(exported(), newline="")):
        assert not [cell for cell in row if cell[:1] in ("=", "+", "-", "@", "\t", "\r")]


def test_the_published_client_reads_an_export(tmp_path):
    """Its own CSV reader finds the header and the cases."""
    from agentx.evaluations.datasets import DatasetBuilder

    path = tmp_path / "cases.csv"
    path.write_bytes(exported().encode())
    builder = DatasetBuilder.from_csv(None, str(path), "n")  # type: ignore[arg-type]
    assert len(builder._payload["questions"]) == len(CASES)


def test_bad_rows_are_listed_and_the_others_taken():
    """By their number in a spreadsheet, header included."""
    text = (
        "query,expected_results,smoke_test,follow_up_questions\r\n"
        "one,a,,\r\n"
        ",no query,,\r\n"
        "\r\n"
        "two,b,,,,extra\r\n"
        "three,c,{broken,\r\n"
        "four,d,,5\r\n"
        '"fi"ve,e,,\r\n'
        "six\r\n"
        '"never closed,\r\n'
    )
    parsed = parse(text.encode())
    assert [case["main_question"]["query"] for case in parsed.cases] == ["one", "six"]
    assert [bad.row for bad in parsed.bad_rows] == [3, 5, 6, 7, 8, 10]
    assert parsed.bad_rows[0] == BadRow(3, "empty query")
    assert parsed.warnings[0] == "Row 3: empty query"


def test_documented_columns():
    """Semicolon lists; unknown columns are named; headers in other spellings are known (DATA-031)."""
    text = "ID;Query;Expected Results;expectedCapabilities\n1;q;;a\n2;;x;\n"
    parsed = parse(text.encode())
    assert parsed.cases == [{"main_question": {"query": "q", "expectedCapabilities": ["a"]}, "follow_up_questions": []}]
    assert parsed.ignored_columns == ["ID"]
    assert parsed.bad_rows == [BadRow(3, "empty query")]
    text = 'query,expected_capabilities\nq," a ; b;;"\n'
    assert parse(text.encode()).cases[0]["main_question"]["expectedCapabilities"] == ["a", "b"]


def test_sep_line_and_windows_characters():
    """Excel's `sep=` line, and a file that is not UTF-8."""
    assert parse(b"sep=;\r\nquery;x\r\na,b;1\r\n").cases[0]["main_question"]["query"] == "a,b"
    parsed = parse("query\ncafé\n".encode("cp1252"))
    assert parsed.cases[0]["main_question"]["query"] == "café"
    assert "Windows-1252" in parsed.warnings[-1]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"question,answer\na,b\n", "no column"),
        (b"query,expected_results,query\na,b,c\n", "stands twice in the header (columns 1 and 3)"),
        (b"PK\x03\x04rest", "not a CSV"),
        (b"query\x00\n", "not a CSV"),
        (b"x" * (50 * 1024 * 1024), "50 MB; at most 10 MB"),
    ],
)
def test_files_that_are_refused(data, text):
    """With a text that says what to do."""
    with pytest.raises(CSVRefused, match=r".*") as caught:
        parse(data)
    assert text in caught.value.message


def test_large_cell():
    """A query of a megabyte."""
    assert len(parse(b"query\n" + b"x" * 1_000_000).cases[0]["main_question"]["query"]) == 1_000_000
