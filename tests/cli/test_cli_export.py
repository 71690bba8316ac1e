"""``claudescope export`` and ``claudescope import``: what goes out comes in again, with a server and without."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from contextlib import closing

import pytest
from cli_harness import command, plain_environment
from data_kit import START_MS, Serving, contents, event_of, fill_store, run_of

from claudescope.cli.demo_script import DemoScript
from claudescope.cli.documents import kind_of, read_documents
from claudescope.cli.launch import armed_environment
from claudescope.live.store.exporting import Export, Selection
from claudescope.testing.standin import StandIn

SAID = "claudescope: exported {spans} spans and {events} log records{where}.\n"


@pytest.fixture
def stored(tmp_path):
    fill_store(tmp_path / "from", 12)
    return tmp_path / "from"


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def spans_of(documents):
    return [
        span
        for document in documents
        for resource in document.get("resourceSpans", ())
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def events_of(documents):
    return [
        record
        for document in documents
        for resource in document.get("resourceLogs", ())
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]


def test_an_export_imported_gives_the_same_store(claudescope, stored, tmp_path):
    out = tmp_path / "all.jsonl"
    done = claudescope("export", "--data", str(stored), "-o", str(out))
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == SAID.format(spans=48, events=12, where=f" to {out}")
    assert out.stat().st_mode & 0o777 == 0o600
    assert sorted(os.listdir(tmp_path)) == ["all.jsonl", "from"]
    done = claudescope("import", "--data", str(tmp_path / "to"), str(out))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "48 spans new, 0 known already, 12 log records.\n"
    assert contents(tmp_path / "to") == contents(stored)
    again = claudescope("import", "--data", str(tmp_path / "to"), str(out))
    assert again.stdout == "0 spans new, 48 known already, 12 log records.\n"
    assert contents(tmp_path / "to") == contents(stored)


def test_a_pipe_takes_it_from_a_server_to_a_server(claudescope, stored, tmp_path):
    token = {"CLAUDESCOPE_TOKEN": "secret"}
    with Serving(stored), Serving(tmp_path / "to", token="secret"):
        out = claudescope("export", "--data", str(stored))
        assert out.stderr == SAID.format(spans=48, events=12, where="")
        done = claudescope("import", "--data", str(tmp_path / "to"), "-", input=out.stdout, environment=token)
        assert (done.returncode, done.stdout) == (0, "48 spans new, 0 known already, 12 log records.\n"), done.stderr
        refused = claudescope("import", "--data", str(tmp_path / "to"), "-", input=out.stdout)
        assert refused.returncode == 2
        assert "needs its token. Set CLAUDESCOPE_TOKEN." in refused.stderr
        assert contents(tmp_path / "to") == contents(stored)


def test_the_lines_are_otlp_of_a_size_that_the_collector_takes(claudescope, stored):
    documents = lines(claudescope("export", "--data", str(stored)).stdout)
    assert [kind_of(document) for document in documents] == ["spans", "logs"]
    first = documents[0]["resourceSpans"][0]
    assert first["resource"] == {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    assert first["scopeSpans"][0]["scope"] == {"name": "claudescope"}
    span = first["scopeSpans"][0]["spans"][0]
    assert (span["traceId"], span["spanId"], span["parentSpanId"]) == (f"{1:032x}", f"{11:016x}", f"{13:016x}")
    assert span["endTimeUnixNano"] == str((START_MS + 1100) * 1_000_000 + 5)
    assert documents[1]["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0]["traceId"] == f"{1:032x}"
    ids = [span["spanId"] for span in spans_of(documents)]
    assert len(ids) == len(set(ids)) == 48
    assert len(events_of(documents)) == 12


def test_long_exports_are_several_lines(tmp_path):
    fill_store(tmp_path, 300)
    with closing(Export(tmp_path, Selection())) as export:
        written = list(export.otlp())
    assert (export.spans, export.events, export.share) == (1200, 300, 1.0)
    assert 2 < len(written) < 20
    assert max(map(len, written)) < 2**18 + 2**10
    assert len({span["spanId"] for span in spans_of(map(json.loads, written))}) == 1200


def test_a_range_is_by_the_end_and_ranges_add_up(claudescope, stored):
    cut = START_MS + 5200  # the end of a step and of the call of run 5: it is in the later range
    early = lines(claudescope("export", "--data", str(stored), "--to", str(cut)).stdout)
    written = time.strftime("%Y-%m-%dT%H:%M:05.200Z", time.gmtime(START_MS / 1000))
    late = lines(claudescope("export", "--data", str(stored), "--from", written).stdout)
    assert len(spans_of(early)) == 4 * 4 + 1
    assert len(events_of(early)) == 4
    assert len(spans_of(late)) == 3 + 7 * 4
    assert len(events_of(late)) == 8
    everything = {span["spanId"] for span in spans_of([*early, *late])}
    assert len(everything) == 48


def test_one_run_is_its_traces(claudescope, stored):
    documents = lines(claudescope("export", "--data", str(stored), "--run", f"{7:032x}").stdout)
    assert {span["traceId"] for span in spans_of(documents)} == {f"{7:032x}"}
    assert (len(spans_of(documents)), len(events_of(documents))) == (4, 1)
    some = lines(
        claudescope("export", "--data", str(stored), "--run", f"{7:032X}", "--to", str(START_MS + 7200)).stdout
    )
    assert [span["spanId"] for span in spans_of(some)] == [f"{71:016x}"]
    gone = claudescope("export", "--data", str(stored), "--run", "f" * 32)
    assert gone.returncode == 2
    assert f"There is no run {'f' * 32} in {stored}." in gone.stderr


def test_records_are_those_of_the_api(claudescope, stored):
    done = claudescope("export", "--data", str(stored), "--format", "jsonl")
    assert done.stderr == "claudescope: exported 24 steps.\n"
    records = lines(done.stdout)
    with Serving(stored) as url, urllib.request.urlopen(f"{url}/api/steps?order=asc", timeout=30) as answer:
        assert json.load(answer)["items"] == records
    assert records[1]["reasons"] == [{"check": "tool_json", "code": "syntax", "start": 3, "end": 7}]
    one = claudescope(
        "export", "--data", str(stored), "--format", "jsonl", "--run", f"{3:032x}", "--from", str(START_MS + 3200)
    )
    assert [record["span_id"] for record in lines(one.stdout)] == [f"{32:016x}"]


def test_records_cannot_be_imported(claudescope, stored, tmp_path):
    out = tmp_path / "steps.jsonl"
    claudescope("export", "--data", str(stored), "--format", "jsonl", "-o", str(out))
    done = claudescope("import", "--data", str(tmp_path / "to"), str(out))
    assert done.returncode == 2
    assert f"Nothing of {out} can be taken: it has records of steps, which lack the spans" in done.stderr
    assert "--format otlp" in done.stderr


def test_one_document_of_many_lines_is_taken(claudescope, stored, tmp_path):
    documents = lines(claudescope("export", "--data", str(stored)).stdout)
    pretty = tmp_path / "pretty.json"
    pretty.write_text("\n" + json.dumps({"resourceSpans": documents[0]["resourceSpans"]}, indent=2))
    done = claudescope("import", "--data", str(tmp_path / "to"), str(pretty))
    assert (done.returncode, done.stdout) == (0, "48 spans new, 0 known already, 0 log records.\n"), done.stderr


def test_a_large_document_goes_in_parts(claudescope, stored, tmp_path):
    documents = lines(claudescope("export", "--data", str(stored)).stdout)
    many = []
    for copy in range(40):  # some 20 KB each
        for span in spans_of(documents[:1]):
            many.append({**span, "spanId": f"{int(span['spanId'], 16) + 1000 * copy:016x}"})
    source = documents[0]["resourceSpans"][0]
    whole = {"resource_spans": [{**source, "scopeSpans": [{"scope": {"name": "x"}, "spans": many}]}]}
    file = tmp_path / "large.json"
    file.write_text(json.dumps(whole))
    assert file.stat().st_size > 2**20 // 2
    done = claudescope("import", "--data", str(tmp_path / "to"), str(file))
    assert done.stdout == f"{48 * 40:,} spans new, 0 known already, 0 log records.\n"
    assert len(many) == 48 * 40


def test_bad_lines_are_left_out_and_named(claudescope, stored, tmp_path):
    good = claudescope("export", "--data", str(stored)).stdout.splitlines()
    bad = [
        good[0],
        "",
        '{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": 3}]}]}]}',
        "[1, 2]",
        '{"resourceMetrics": []}',
        good[1],
        good[0][:1000],
    ]
    file = tmp_path / "mixed.jsonl"
    file.write_text("\n".join(bad))
    done = claudescope("import", "--data", str(tmp_path / "to"), str(file))
    assert done.returncode == 2
    assert done.stdout == "48 spans new, 0 known already, 12 log records.\n"
    said = done.stderr.splitlines()
    assert said[0] == (
        f"claudescope: left out {file}, line 3: it is not OTLP/JSON: resourceSpans.scopeSpans.spans.traceId"
        " must be a string of hex digits."
    )
    assert said[1] == f"claudescope: left out {file}, line 4: it is JSON, but not OTLP's."
    assert said[2] == f"claudescope: left out {file}, line 5: it has metrics, and the store counts the spans itself."
    assert said[3].startswith(f"claudescope: left out {file}, line 7: it is not JSON: ")
    assert len(said) == 4
    assert contents(tmp_path / "to") == contents(stored)


def test_many_bad_lines_are_counted(claudescope, tmp_path):
    file = tmp_path / "many.jsonl"
    file.write_text('{"resourceSpans": []}\n' + "{}\n" * 25)
    done = claudescope("import", "--data", str(tmp_path / "to"), str(file))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 11
    assert done.stderr.endswith("claudescope: left out 15 lines more.\n")


@pytest.mark.parametrize("content", ["hello", "{}", '{"sessionId": "x", "type": "user"}\n{}', "[]", "\0\1"])
def test_other_content_is_refused_and_told_what_is_taken(claudescope, tmp_path, content):
    file = tmp_path / "other"
    file.write_text(content)
    done = claudescope("import", "--data", str(tmp_path / "to"), str(file))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"claudescope: Nothing of {file} can be taken: it is ")
    assert done.stderr.endswith(
        "Give lines of `claudescope export`, or one OTLP/JSON document with resourceSpans or resourceLogs.\n"
    )


def test_an_empty_file_brings_nothing(claudescope, tmp_path):
    done = claudescope("import", "--data", str(tmp_path / "to"), "-", input="\n\n")
    assert (done.returncode, done.stdout) == (0, "0 spans new, 0 known already, 0 log records.\n")


def test_spans_without_ids_and_old_spans_are_told(claudescope, tmp_path):
    line = {"resourceSpans": [{"scopeSpans": [{"spans": [
        {"traceId": "", "spanId": "01" * 8},
        {"traceId": "02" * 16, "spanId": "02" * 8, "endTimeUnixNano": "1000"},
        {"traceId": "02" * 16, "spanId": "03" * 8, "endTimeUnixNano": str(time.time_ns())},
    ]}]}]}  # fmt: skip
    done = claudescope("import", "--data", str(tmp_path / "to"), "-", input=json.dumps(line))
    assert (done.returncode, done.stdout) == (2, "2 spans new, 0 known already, 0 log records.\n")
    assert done.stderr == (
        "claudescope: left out 1 spans without a trace id and a span id.\n"
        "claudescope: 1 spans ended over 7 days ago: a server deletes them soon, unless it has a longer --retain.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("export", "--data", "nowhere"), "There is no store in nowhere. Name its folder with --data."),
        (("export", "--from", "soon"), "--from is 'soon'. It takes a time as RFC 3339"),
        (("export", "--to", "9d9"), "--to is '9d9'."),
        (("export", "--from", "1h", "--to", "2h"), "--from is not before --to."),
        (("export", "--format", "csv"), "invalid choice: 'csv'"),
        (("import", "--data", "to", "nowhere.json"), "nowhere.json cannot be read: No such file or directory."),
        (("import",), "the following arguments are required: FILE"),
    ],
)
def test_wrong_use_is_told(claudescope, arguments, told):
    done = claudescope(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_that_cannot_be_written_is_told_and_leaves_nothing(claudescope, stored, tmp_path):
    done = claudescope("export", "--data", str(stored), "-o", str(tmp_path / "no" / "such.jsonl"))
    assert done.returncode == 2
    assert "cannot be written: No such file or directory. Choose another file with -o." in done.stderr
    full = claudescope("export", "--data", str(stored), "-o", "/dev/full")
    assert full.returncode == 2
    assert "/dev/full cannot be written: No space left on device." in full.stderr
    assert sorted(os.listdir(tmp_path)) == ["from"]


def test_who_reads_may_stop_early(stored):
    with subprocess.Popen(
        command("export", "--data", str(stored)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=plain_environment(),
    ) as process:
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 141


def test_an_export_of_a_store_that_grows_is_of_what_was_there(tmp_path):
    from claudescope.live.receiver.offline import OfflineStore

    fill_store(tmp_path, 100)
    with closing(OfflineStore(tmp_path, None)) as store, closing(Export(tmp_path, Selection())) as export:
        found = export.otlp()
        first = next(found)
        store.take(run_of(101))
        store.take(event_of(101))
        documents = [json.loads(line) for line in (first, *found)]
    assert export.spans == 400
    assert len(events_of(documents)) in (100, 101)  # they are ordered by time, not by when they came


def test_documents_come_line_by_line(tmp_path, monkeypatch):
    from claudescope.cli import documents

    monkeypatch.setattr(documents, "MAX_DOCUMENT", 32)
    file = tmp_path / "f"
    file.write_bytes(b'{"a": 1}\n\n' + b"x" * 100 + b'\n{"b": 2}\n{"c":')
    with file.open("rb") as opened:
        found = list(read_documents(opened))
    assert [(found.line, found.data) for found in found] == [(1, {"a": 1}), (3, None), (4, {"b": 2}), (5, None)]
    assert found[1].problem.startswith("is longer than")
    assert found[3].problem.startswith("is not JSON")


def ask(url, path):
    with urllib.request.urlopen(url + path, timeout=60) as answer:
        return json.load(answer)


def everything(url):
    """What the API says of a store, without when it came in."""
    runs = ask(url, "/api/runs?limit=1000&order=asc")["items"]
    period = f"from={START_MS}&to={START_MS + 7_200_000 * 2}"
    found = {
        "runs": [{key: value for key, value in run.items() if key != "seen_ms"} for run in runs],
        "steps": ask(url, "/api/steps?limit=1000&order=asc")["items"],
        "heatmap": ask(url, f"/api/heatmap?{period}&bucket=60"),
        "distribution": ask(url, f"/api/distribution?{period}"),
        "facets": ask(url, f"/api/facets?{period}"),
    }
    for run in runs:
        detail = ask(url, f"/api/runs/{run['run_id']}")
        detail["run"].pop("seen_ms")
        found[run["run_id"]] = detail
        for trace in detail["traces"]:
            found[trace] = ask(url, f"/api/traces/{trace}")
    return found


def ordered(found):
    """Lists whose order is that of arrival, or of equal times, in an order of their own."""
    if isinstance(found, dict):
        return {key: ordered(value) for key, value in found.items()}
    if isinstance(found, list):
        return sorted(map(ordered, found), key=lambda value: json.dumps(value, sort_keys=True))
    return found


def test_the_demo_exported_and_imported_is_the_same_to_the_api(claudescope, tmp_path):
    extra = {"OTEL_SERVICE_NAME": "demo", "ANTHROPIC_API_KEY": "demo"}
    with Serving(tmp_path / "from") as url:
        with StandIn(DemoScript(), seed=1) as standin:
            environment = armed_environment(
                plain_environment(), url, extra={**extra, "ANTHROPIC_BASE_URL": standin.url}
            )
            with subprocess.Popen(
                [sys.executable, "-m", "claudescope.cli.demo_apps"],
                env=environment,
                stdin=subprocess.PIPE,  # they end when it closes
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as apps:
                until = time.monotonic() + 60
                while len(ask(url, "/api/runs")["items"]) < 8 and time.monotonic() < until:
                    time.sleep(0.1)
                apps.stdin.close()
        exported = claudescope("export", "--data", str(tmp_path / "from"))
    with Serving(tmp_path / "from") as url:
        before = everything(url)
    assert len(before["runs"]) > 5
    assert len(before["heatmap"]["items"]) > 5
    assert any(run["cost_usd"] for run in before["runs"])
    without = claudescope("import", "--data", str(tmp_path / "without"), "-", input=exported.stdout)
    assert without.returncode == 0, without.stderr
    with Serving(tmp_path / "without") as url:
        until = time.monotonic() + 60
        while sum(ask(url, "/api/counters")["stored"].values()) < len(before["steps"]):
            assert time.monotonic() < until  # steps are counted after the start
            time.sleep(0.05)
        assert ordered(everything(url)) == ordered(before)
    with Serving(tmp_path / "with") as url:
        done = claudescope("import", "--data", str(tmp_path / "with"), "-", input=exported.stdout)
        assert done.stdout == without.stdout
        assert ordered(everything(url)) == ordered(before)
    assert {**contents(tmp_path / "with"), "spans": []} == {**contents(tmp_path / "from"), "spans": []}
