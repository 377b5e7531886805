import gzip
import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calculators.traces import AZURE, MOONCAKE, Columns, TraceError, read_trace

HEADER = "timestamp,input_length,output_length\n"
MINE = Columns("start", "prompt", "answer")


def read(text, **options):
    return read_trace(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **options)


@pytest.fixture
def azure(tmp_path):
    path = tmp_path / "azure.csv"
    path.write_bytes(
        b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        b"2023-11-16 18:15:46.6805900,374,44\r\n"
        b"2023-11-16 18:15:50.9951690,396,109\r\n"
        b"2023-11-16 18:15:51.2224670,879,55"
    )
    return path


@pytest.fixture
def mooncake(tmp_path):
    path = tmp_path / "mooncake.jsonl"
    rows = [(0, 6755, 500, [0, 1]), (27482, 7319, 490, [0]), (30535, 7234, 794, [])]
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    return path


def test_azure_format(azure):
    trace = read_trace(azure)
    assert trace.columns is AZURE
    np.testing.assert_allclose(trace.arrivals, [0.0, 4.314579, 4.541877], atol=1e-7)
    assert trace.input_tokens.tolist() == [374, 396, 879]
    assert trace.output_tokens.tolist() == [44, 109, 55]
    assert trace.start == "2023-11-16T18:15:46.680590"
    assert (trace.rows, trace.broken, trace.first_broken, trace.notes) == (3, {}, (), ())


def test_azure_format_with_zones():
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:01+00:00,9,6\n"
    trace = read(text)
    np.testing.assert_allclose(trace.arrivals, [0.0, 0.99007], atol=1e-8)
    assert trace.start == "2024-05-10T00:00:00.009930"


def test_mooncake_format(mooncake):
    trace = read_trace(str(mooncake))
    assert trace.columns is MOONCAKE
    np.testing.assert_allclose(trace.arrivals, [0.0, 27.482, 30.535])
    assert trace.input_tokens.tolist() == [6755, 7319, 7234]
    assert trace.output_tokens.dtype == np.int64
    assert trace.start is None


@pytest.mark.parametrize("name", ["azure", "mooncake"])
def test_compressed_is_the_same(name, request, tmp_path):
    path = request.getfixturevalue(name)
    packed = tmp_path / "packed.dat"  # its content says what it is, not its name
    packed.write_bytes(gzip.compress(path.read_bytes()))
    plain, unpacked = read_trace(path), read_trace(packed)
    np.testing.assert_array_equal(plain.arrivals, unpacked.arrivals)
    np.testing.assert_array_equal(plain.input_tokens, unpacked.input_tokens)


@pytest.mark.parametrize(("text", "columns"), [
    ("start,prompt,answer\n1.5,10,3\n2.0,20,4\n", MINE),
    ("id;start;prompt;answer;model\na;1.5;10;3;x\nb;2.0;20;4;y\n", MINE),
    ("answer\tprompt\tstart\n3\t10\t1.5\n4\t20\t2\n", MINE),
    ('{"start": 1.5, "prompt": 10, "answer": 3}\n{"answer": 4, "start": 2, "prompt": 20}\n', MINE),
    ("start,prompt,answer\n1500,10,3\n2000,20,4\n", Columns("start", "prompt", "answer", "ms")),
    ("start,prompt,answer\n1500000,10,3\n2000000,20,4\n", Columns("start", "prompt", "answer", "us")),
    ("start,prompt,answer\n2026-01-01T00:00:01.5,10,3\n2026-01-01T00:00:02,20,4\n", MINE),
    ('\ufeffstart,prompt,answer\n"1.5","10","3"\n2.0, 20 ,4\n', MINE),
])  # fmt: skip
def test_columns_that_the_caller_names(text, columns):
    trace = read(text, columns=columns)
    np.testing.assert_allclose(trace.arrivals, [0.0, 0.5])
    assert trace.input_tokens.tolist() == [10, 20]
    assert trace.output_tokens.tolist() == [3, 4]
    assert trace.broken == {}


def test_broken_rows_are_counted_and_shown():
    trace = read(HEADER + "0,1,2\n\n5,0,1\n3,-1,2\n1,2\n4,1.5,3\nx,3,3\n7,,3\n7,1e30,3\n2,9,9\n")
    assert trace.input_tokens.tolist() == [1, 9]
    assert (len(trace), trace.broken_rows, trace.rows) == (2, 7, 9)
    assert trace.broken == {
        "input_length is less than one token": 2, "a line that is no row": 1, "timestamp is not a number": 1,
        "input_length is not a whole number of tokens": 1, "input_length is not a number": 1,
        "input_length is more than a thousand million tokens": 1,
    }  # fmt: skip
    assert [(row.line, row.reason) for row in trace.first_broken] == [
        (4, "input_length is 0: less than one token"),
        (5, "input_length is -1: less than one token"),
        (6, "2 fields instead of 3"),
        (7, "input_length is 1.5: not a whole number of tokens"),
        (8, "timestamp is x: not a number"),
        (9, "there is no input_length"),
        (10, "input_length is 1e30: more than a thousand million tokens"),
    ]


def test_broken_lines_of_json_are_counted_and_shown():
    good = '{"timestamp": %s, "input_length": %s, "output_length": 7}\n'
    text = (
        good % (0, 5) + '{"timestamp": 1, "input_length": 5}\n' + "nope\n" + "[1]\n" + "\n" + good % ('"2"', '"7"')
        + good % (4, "true") + good % (5, "[3]") + good % ("null", 3) + good % (6, 8)
    )  # fmt: skip
    trace = read(text)
    assert trace.input_tokens.tolist() == [5, 7, 8]
    np.testing.assert_allclose(trace.arrivals, [0.0, 0.002, 0.006])
    assert [(row.line, row.reason) for row in trace.first_broken] == [
        (2, "there is no output_length"),
        (3, "not JSON: nope"),
        (4, "no object with names and values"),
        (7, "input_length is True: not a number"),
        (8, "input_length is [3]: not a number"),
        (9, "there is no timestamp"),
    ]


def test_only_the_first_broken_rows_are_shown():
    trace = read(HEADER + "0,1,1\n" + "x,1,1\n" * 1000, shown=3)
    assert trace.broken == {"timestamp is not a number": 1000}
    assert [row.line for row in trace.first_broken] == [3, 4, 5]


def test_times_out_of_order_are_sorted_and_said():
    trace = read(HEADER + "3000,3,30\n1000,1,10\n2000,2,20\n1000,4,40\n")
    np.testing.assert_allclose(trace.arrivals, [0.0, 0.0, 1.0, 2.0])
    assert trace.input_tokens.tolist() == [1, 4, 2, 3]
    assert trace.output_tokens.tolist() == [10, 40, 20, 30]
    assert trace.notes == ("Rows that came earlier than the row above them: 2. All are sorted by time.",)


def test_line_ends_inside_quotes():
    text = 'start,prompt,answer,text\n0,1,2,"hello\nworld, again"\n1,2,3,"x ""y"" z"\n2,0,3,""\n'
    trace = read(text, columns=MINE)
    assert trace.input_tokens.tolist() == [1, 2]
    assert [row.reason for row in trace.first_broken] == ["prompt is 0: less than one token"]
    assert trace.notes == ("Line ends inside quotes, taken for part of their field: 1.",)


@pytest.mark.parametrize(("content", "sentence"), [
    (b"", "The file is empty"),
    (b"\n \n", "The file is empty"),
    (HEADER.encode(), "no rows"),
    (b"a,b,c\n1,2,3\n", "no format known here.*The file has: a, b, c"),
    (b"timestamp,input_length\n1,2\n", "no format known here"),
    (b"1,2,3\n4,5,6\n", "holds numbers"),
    (b"timestamp,timestamp,input_length,output_length\n1,2,3,4\n", "same name"),
    (HEADER.encode() + b"x,1,1\n1,0,1\n", "Not one of the 2 rows could be used. line 2: timestamp is x"),
    (b'[\n{"timestamp": 1}\n]', "one JSON list"),
    (b"{broken\n{also\n", "Not one line of the file is a JSON object"),
    (b"PK\x03\x04zip", "ZIP archive or an Excel workbook"),
    (b"PAR1\x00\x00", "Parquet"),
    (b"%PDF-1.7", "PDF"),
    (b"\x89PNG\r\n\x1a\n", "picture"),
    (b"\xff\xfet\x00i\x00", "UTF-16"),
    (b"MZ\x00\x90\x00", "not a text file"),
    (gzip.compress(b"PAR1 inside", mtime=0), "Parquet"),
    (gzip.compress(b"t,i,o\n" * 1000, mtime=0)[:40], "ends in the middle"),
    (b"\x1f\x8b" + b"x" * 40, "damaged"),
])  # fmt: skip
def test_what_is_no_trace_gets_a_sentence(content, sentence, tmp_path):
    path = tmp_path / "upload"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=sentence):
        read_trace(path)


def test_missing_columns_and_files(tmp_path):
    with pytest.raises(TraceError, match=r"no column prompt and no column answer\. The file has: start, x"):
        read("start,x\n1,2\n", columns=MINE)
    with pytest.raises(TraceError, match="cannot be read: No such file"):
        read_trace(tmp_path / "absent.csv")


def test_text_in_another_encoding_is_a_broken_row():
    trace = read(HEADER.encode() + b"0,1,1\n1,caf\xe9,2\n2,5\xff\n3,4,4\n")
    assert trace.input_tokens.tolist() == [1, 4]
    assert [row.line for row in trace.first_broken] == [3, 4]


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(-1, 5000), st.integers(0, 300)), min_size=1, max_size=60),
    st.integers(20, 400), st.booleans(), st.booleans(),
)  # fmt: skip
@settings(max_examples=80)
def test_blocks_of_any_size_give_the_same(rows, size, as_json, compressed):
    """No row is lost between two blocks, and every broken one keeps its line."""
    names = HEADER.strip().split(",")
    if as_json:
        text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    else:
        text = HEADER + "".join(f"{t},{i},{o}\n" for t, i, o in rows)
    content = gzip.compress(text.encode()) if compressed else text.encode()
    good = [row for row in rows if row[1] >= 1 and row[2] >= 1]
    bad = [n + (1 if as_json else 2) for n, row in enumerate(rows) if row not in good]
    if not good:
        with pytest.raises(TraceError, match="Not one"):
            read(content, block_bytes=size)
        return
    trace = read(content, block_bytes=size, shown=100)
    expected = sorted(good, key=lambda row: row[0])
    np.testing.assert_allclose(trace.arrivals, [(row[0] - expected[0][0]) / 1e3 for row in expected], atol=1e-9)
    assert trace.input_tokens.tolist() == [row[1] for row in expected]
    assert [row.line for row in trace.first_broken] == bad
    assert trace.rows == len(rows)


def test_progress_grows_to_one_and_can_stop_the_reading():
    text = HEADER + "".join(f"{n},1,1\n" for n in range(5000))
    seen = []
    read(text, progress=seen.append, block_bytes=4096)
    assert len(seen) > 10
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert seen[0] < 0.2

    def stop(share):
        if share > 0.3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(text, progress=stop, block_bytes=4096)


def test_memory_is_bounded_by_the_blocks(tmp_path):
    """A file with a long field that is not read: what is held is far less than the file."""
    import tracemalloc

    path = tmp_path / "wide.csv"
    row = "%d,7,3," + "x" * 4000 + "\n"
    with path.open("w") as file:
        file.write("timestamp,input_length,output_length,text\n")
        file.writelines(row % n for n in range(5000))
    tracemalloc.start()
    trace = read_trace(path, block_bytes=2**18)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(trace) == 5000
    assert path.stat().st_size > 20e6
    assert peak < 5e6


def test_as_a_workload(mooncake):
    workload = read_trace(mooncake).workload
    assert len(workload) == 3
    assert workload.output_tokens.tolist() == [500, 490, 794]


def test_three_columns_are_three():
    with pytest.raises(TraceError, match="three columns"):
        read_trace(io.BytesIO(b"a,b,c\n1,2,3\n"), Columns("a", "a", "c"))


def test_a_first_line_that_is_no_head_is_a_sentence():
    with pytest.raises(TraceError, match="first line"):
        read_trace(io.BytesIO(b"a" * 200_000 + b",b,c\n1,2,3\n"))
