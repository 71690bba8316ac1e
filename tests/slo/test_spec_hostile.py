"""Whatever a file holds, it is read or refused: no traceback, and every refusal has a line of the file and a fix."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.slo.spec.document import DocumentError, Mapping, read_documents
from claudescope.slo.spec.load import Reading, read

HERE = Path(__file__).parent
GOOD = [path.read_bytes() for path in sorted((HERE / "good").iterdir())]
BAD = [path.read_bytes() for path in sorted((HERE / "malformed").iterdir())]
PIECES = [b"{", b"}", b"[", b"]", b": ", b"- ", b"\n", b"  ", b"\t", b'"', b"'", b"&a ", b"*a", b"<<: ", b"|", b"!!x "]
PIECES += [
    b"0",
    b"-1",
    b".7",
    b"800ms",
    b"yes",
    b"~",
    b"null",
    b"1e999",
    b"9" * 400,
    "²٣é".encode(),
    b"\xff",
    b"{{.window}}",
]
KEYS = ["slos", "sli", "events", "raw", "indicator", "windows", "for", "load", "canary", "group_by", "alerting", "spec"]


def check(reading: Reading, data: bytes, path: Path) -> None:
    lines = data.count(b"\n") + data.count(b"\r") + data.count("\u2028".encode()) + data.count("\x85".encode()) + 1
    for problem in reading.problems:
        assert problem.path == str(path)
        assert 1 <= problem.line <= lines
        assert problem.what
        assert problem.fix
    assert reading.problems or reading.objectives


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "slo.yml"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_file_with_a_piece_exchanged(file, data):
    text = data.draw(st.sampled_from(GOOD))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        upto = min(len(text), at + data.draw(st.integers(0, 12)))
        text = text[:at] + data.draw(st.sampled_from(PIECES) | st.binary(max_size=3)) + text[upto:]
    file.write_bytes(text)
    check(read([file]), text, file)


words = st.text(max_size=8) | st.sampled_from(["5m", "1h", "*", ".7"])
names = st.sampled_from(KEYS) | st.text(max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def places(node: object, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [at, *(place for key, value in inner for place in places(value, (*at, key)))]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_file_with_a_value_exchanged(file, data):
    documents = list(yaml.safe_load_all(data.draw(st.sampled_from(GOOD))))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from([place for place in places(documents) if len(place) > 1]))
        node = documents
        for key in place[:-1]:
            node = node[key]
        if data.draw(st.booleans()) or isinstance(node, list):
            node[place[-1]] = data.draw(values)
        else:
            node[data.draw(st.text(min_size=1, max_size=6))] = node.pop(place[-1])
    text = yaml.safe_dump_all(documents, allow_unicode=True).encode("utf-8", "surrogatepass")
    file.write_bytes(text)
    check(read([file]), text, file)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(file, data):
    file.write_bytes(data)
    check(read([file]), data, file)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(BAD), st.integers(0, 2000))
def test_a_bad_file_that_is_cut(file, text, length):
    file.write_bytes(text[:length])
    check(read([file]), text, file)


@pytest.mark.parametrize("key", ["name", "objective", "sli", "indicator", "anything"])
def test_an_objective_that_is_the_bare_name_of_a_key(file, key):
    file.write_text(f"version: prometheus/v1\nservice: a\nslos:\n  - {key}\n")
    (problem,) = read([file]).problems
    assert (problem.line, problem.what) == (4, f"slos[0] is '{key}' and not a mapping.")


def test_a_deep_document_is_refused_at_once():
    with pytest.raises(DocumentError, match="over 40 levels") as raised:
        list(read_documents(b"a: " + b"[" * 500_000))
    assert raised.value.line == 1


def test_aliases_are_counted_and_not_spelled_out():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    with pytest.raises(DocumentError, match="over 200,000 values") as raised:
        list(read_documents("\n".join(lines).encode()))
    # 11 in the first line, 111 in the second: 111,111 in the fifth, so it is the sixth
    assert raised.value.line == 6


def test_a_huge_file_is_not_parsed():
    with pytest.raises(DocumentError, match=r"over 4,000,000 bytes"):
        list(read_documents(b"#" * 4_000_001))
    (problem,) = read([Path("/dev/zero")]).problems
    assert problem.what == "The file has over 4,000,000 bytes."


def test_a_byte_order_mark_is_no_text():
    (document,) = read_documents("\ufeffa: b\r\nc: d\r\n".encode())
    assert isinstance(document.root, Mapping)
    assert {key: entry.line for key, entry in document.root.entries.items()} == {"a": 1, "c": 2}


def test_a_hundred_errors_are_said_and_the_others_counted(file):
    rows = "".join(f"  - {{name: n{n}, objective: 101, indicator: {{errors: }}}}\n" for n in range(300))
    data = f"version: prometheus/v1\nservice: a\nslos:\n{rows}".encode()
    file.write_bytes(data)
    problems = read([file]).problems
    assert [problem.line for problem in problems] == [*range(4, 104), 103]
    assert problems[-1].what == "Further errors: 200."


def test_repeated_keys_are_said_up_to_a_hundred(file):
    file.write_text("version: prometheus/v1\n" + "service: a\n" * 300)
    assert len(read([file]).problems) == 101


def test_more_objectives_than_anybody_has(file):
    file.write_text("version: prometheus/v1\nservice: a\nslos:\n" + "  - x\n" * 2001)
    (problem,) = read([file]).problems
    assert problem.what == "slos has 2001 objectives."


@pytest.mark.parametrize("query", ["(" * 9000 + "a[{{.window}}]" + ")" * 9000, "a" + "+a" * 9000 + "[{{.window}}]"])
def test_a_deep_query_does_not_end_the_process(file, query):
    """The parser of the extra recurses without a limit, so it is not asked about these."""
    file.write_text(
        "version: prometheus/v1\nservice: a\nslos:\n  - {name: b, objective: 99, "
        f"sli: {{raw: {{error_ratio_query: '{query}'}}}}}}\n"
    )
    reading = read([file])
    assert len(reading.problems) + len(reading.objectives) == 1
