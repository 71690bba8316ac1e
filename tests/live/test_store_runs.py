"""The table of runs, one run with all of it, and search."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from live_kit import Sender
from store_kit import Store, job, open_store

from claudescope import semconv
from claudescope.live.filters import StepFilter
from claudescope.live.store import run_detail, texts, traces
from claudescope.live.store.jobs import Job, LogEvent
from claudescope.live.store.run_detail import find_run
from claudescope.live.store.run_list import RUNNING_MS, SORTS, RunQuery, find_runs
from claudescope.live.store.select import read_cursor
from claudescope.live.store.traces import find_trace
from claudescope.prices import Prices

NOW = 1_700_000_000_000


class Table:
    """Ten dollars a million tokens of the model ``priced``."""

    def cost(
        self,
        model: str | None,
        input_tokens: int,
        cache_read: int,
        cache_write: int,
        output_tokens: int,
        cache_write_1h: int = 0,
    ) -> float | None:
        if model != "priced":
            return None
        return (input_tokens - cache_read - cache_write + output_tokens + 2 * cache_write_1h) / 100_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "data", Table()) as made:
        yield made


def call(**more: Any) -> dict[str, Any]:
    return {semconv.OPERATION_NAME: "chat", **more}


def ids(store: Store, **query: Any) -> list[str]:
    return [run["run_id"] for run in find_runs(store.reader, RunQuery(**query))["items"]]


def a_run(run: str, trace: int, **step: Any) -> Sender:
    sender = Sender()
    sender.step(0, {semconv.CHAIN_ID: run}, trace=bytes([trace] * 16), **step)
    return sender


def test_a_run_adds_up_what_its_calls_cost(store: Store) -> None:
    sender = Sender()
    for model, tokens in (("priced", 1000), ("priced", 500), ("unknown", 70), ("unknown", 0), (None, 5)):
        attributes = {semconv.CHAIN_ID: "r", semconv.USAGE_INPUT: tokens, semconv.USAGE_OUTPUT: 0}
        if model:
            attributes[semconv.REQUEST_MODEL] = model
        sender.span(call(**attributes), end_ms=NOW)
    store.write(sender)
    (run,) = find_runs(store.reader, RunQuery())["items"]
    assert run["cost_usd"] == pytest.approx(0.015)  # 1500 tokens at 1/100,000 each
    assert run["unpriced_calls"] == 2  # the call without tokens cost nothing
    assert run["calls"] == 5
    later = Sender()
    usage = {semconv.USAGE_INPUT: 300, semconv.USAGE_CACHE_READ: 100, semconv.USAGE_CACHE_CREATION: 50}
    later.span(call(**{semconv.CHAIN_ID: "r", semconv.RESPONSE_MODEL: "priced", **usage}), end_ms=NOW)
    store.write(later)
    (run,) = find_runs(store.reader, RunQuery())["items"]
    assert run["cost_usd"] == pytest.approx(
        0.0165
    )  # + 150; asked for by no name, it is priced by the one that answered
    assert (run["unpriced_calls"], run["input_tokens"]) == (2, 1875)


def test_tokens_that_the_cache_keeps_for_an_hour_cost_more(tmp_path: Path) -> None:
    """By the price table that ships: of 1,000 written none, 400 and all are for an hour, the rest for five minutes."""
    used = {
        semconv.CHAIN_ID: "r",
        semconv.REQUEST_MODEL: "claude-sonnet-4-5",
        semconv.USAGE_INPUT: 10_000,
        semconv.USAGE_CACHE_READ: 6_000,
        semconv.USAGE_CACHE_CREATION: 1_000,
        semconv.USAGE_OUTPUT: 500,
    }
    costs = []
    for number, more in enumerate(({}, {semconv.USAGE_CACHE_WRITE_1H: 400}, {semconv.USAGE_CACHE_WRITE_1H: 5_000})):
        with open_store(tmp_path / str(number), Prices.load()) as store:
            sender = Sender()
            sender.span(call(**used, **more), end_ms=NOW)
            store.write(sender)
            (run,) = find_runs(store.reader, RunQuery())["items"]
            costs.append(run["cost_usd"])
    # 3,000 at 3 $ + 6,000 at .30 $ + 1,000 at 3.75 $ (an hour: 6 $) + 500 at 15 $ a million
    assert costs == pytest.approx([0.02205, 0.02295, 0.0243])


def test_a_run_without_a_known_cost_has_none(store: Store) -> None:
    sender = Sender()
    sender.span(call(**{semconv.REQUEST_MODEL: "unknown", semconv.USAGE_OUTPUT: 5}))
    store.write(sender)
    (run,) = find_runs(store.reader, RunQuery())["items"]
    assert (run["cost_usd"], run["unpriced_calls"]) == (None, 1)


def test_a_call_is_stored_as_it_says(store: Store) -> None:
    sender = Sender("agent")
    attributes = {
        semconv.CHAIN_ID: "r",
        semconv.REQUEST_MODEL: "priced",
        semconv.USAGE_INPUT: 300,
        semconv.USAGE_CACHE_READ: 100,
        semconv.USAGE_CACHE_CREATION: 50,
        semconv.USAGE_OUTPUT: 7,
        semconv.ERROR_TYPE: "overloaded_error",
        semconv.HTTP_STATUS: 529,
        semconv.RETRY_COUNT: 2,
        semconv.TIME_TO_FIRST_CHUNK: 0.1234,
        semconv.FINISH_REASONS: ["tool_use", "x"],
    }
    parent = b"\x0f" * 8
    span = sender.span(call(**attributes), parent=parent, end_ms=NOW, latency_ms=40)
    store.write(sender)
    found = find_run(store.reader, "r")
    assert found is not None
    assert found["calls"] == [
        {
            "trace_id": "01" * 16,
            "span_id": span.hex(),
            "parent_span_id": parent.hex(),
            "service": "agent",
            "model": "priced",
            "started_ms": NOW - 40,
            "ended_ms": NOW,
            "input_tokens": 300,
            "cache_read_tokens": 100,
            "cache_write_tokens": 50,
            "output_tokens": 7,
            "cost_usd": pytest.approx(0.00157),
            "error_type": "overloaded_error",
            "status_code": 529,
            "retries": 2,
            "first_chunk_ms": 123,
            "finish": "tool_use,x",
        }
    ]


@pytest.mark.parametrize("value", ["1", True, float("nan"), -1.0, 1e300])
def test_a_first_chunk_that_is_none_is_unknown(store: Store, value: Any) -> None:
    sender = Sender()
    sender.span(call(**{semconv.CHAIN_ID: "r", semconv.TIME_TO_FIRST_CHUNK: value, semconv.HTTP_STATUS: "200"}))
    store.write(sender)
    found = find_run(store.reader, "r")
    assert found is not None
    assert (found["calls"][0]["first_chunk_ms"], found["calls"][0]["status_code"]) == (None, None)


def test_a_run_has_its_labels_name_and_slowest_step(store: Store) -> None:
    for attributes, latency in (
        ({semconv.LABEL_PREFIX + "a": "1"}, 10),
        ({}, 900),
        ({semconv.LABEL_PREFIX + "a": "2", semconv.LABEL_PREFIX + "b": "3"}, 20),
    ):
        sender = Sender()
        sender.step(4, {semconv.CHAIN_ID: "r", **attributes}, latency_ms=latency)
        store.write(sender)
    root = Sender()
    root.span({semconv.OPERATION_NAME: "invoke_workflow", semconv.CHAIN_ID: "r", semconv.CHAIN_NAME: "Refund"})
    store.write(root)
    (run,) = find_runs(store.reader, RunQuery())["items"]
    assert (run["labels"], run["name"], run["max_latency_us"]) == ({"a": "1", "b": "3"}, "Refund", 900_000)
    assert run["calls"] == 0


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("order", sorted(itertools.permutations("csr")))
@pytest.mark.parametrize("lead", [0, 30])
def test_a_root_says_how_its_run_ended_in_any_order(
    store: Store, order: tuple[str, ...], split: bool, lead: int
) -> None:
    """Call, step and root come in any order, in one request or in three; the root ends with its call or later."""
    run = {semconv.CHAIN_ID: "r"}
    root, chat = b"\x0a" * 8, b"\x0b" * 8
    senders = [Sender()]
    for part in order:
        sender = senders[-1]
        if part == "c":
            sender.span(call(**run, **{semconv.FINISH_REASONS: ["end_turn"]}), span=chat, parent=root, end_ms=NOW)
        elif part == "s":
            sender.step(0, run, parent=chat, end_ms=NOW)
        else:
            named = {semconv.OPERATION_NAME: "invoke_workflow", semconv.CHAIN_NAME: "Refund", semconv.ERROR_TYPE: "x"}
            sender.span({**run, **named}, span=root, end_ms=NOW + lead, latency_ms=100 + lead)
        if split:
            senders.append(Sender())
    for sender in senders:
        store.write(sender)
    (found,) = find_runs(store.reader, RunQuery())["items"]
    assert (found["name"], found["status"], found["duration_ms"]) == ("Refund", "failed", 100 + lead)
    assert (found["calls"], found["steps"]) == (1, 1)


def test_the_sdks_own_span_counts_like_ours(store: Store) -> None:
    """It has other names for what was written to the cache, and for why the answer stopped."""
    sender = Sender()
    usage = {semconv.USAGE_INPUT: 6100, semconv.USAGE_CACHE_READ: 5000, "gen_ai.usage.cache_write.input_tokens": 1000}
    native = {semconv.CHAIN_ID: "r", semconv.REQUEST_MODEL: "priced", "anthropic.message.stop_reason": "end_turn"}
    sender.span(call(**usage, **native), end_ms=NOW)
    store.write(sender)
    found = find_run(store.reader, "r")
    assert found is not None
    assert (found["calls"][0]["cache_write_tokens"], found["calls"][0]["finish"]) == (1000, "end_turn")
    assert found["run"]["cost_usd"] == 100 / 100_000  # the table's price is for what no cache read or wrote
    assert found["run"]["status"] == "ok"  # not running: it has stopped


@pytest.mark.parametrize("end", ["closed", "dropped", "cancelled", "failed"])
def test_a_call_says_that_its_stream_was_cut(store: Store, end: str) -> None:
    sender = Sender()
    sender.span(call(**{semconv.CHAIN_ID: "r", semconv.STREAM_END: end}), end_ms=NOW)
    store.write(sender)
    found = find_run(store.reader, "r")
    assert found is not None
    assert (found["calls"][0]["finish"], found["run"]["status"]) == (end, "ok")


def test_a_refused_call_is_found_by_its_service_and_model(store: Store) -> None:
    """It has no step; an outage would be invisible to who looks at one service."""
    for service, model in (("a", "m"), ("b", "n")):
        sender = Sender(service)
        refused = {semconv.CHAIN_ID: service, semconv.REQUEST_MODEL: model, semconv.ERROR_TYPE: "overloaded_error"}
        sender.span(call(**refused), trace=service.encode() * 16, end_ms=NOW)
        store.write(sender)
    store.write(a_run("with a step", 9))
    for sort in SORTS:
        assert ids(store, where=StepFilter(service=frozenset({"a"})), sort=sort) == ["a"]
        assert ids(store, where=StepFilter(model=frozenset({"n"})), status="failed", sort=sort) == ["b"]
        both = StepFilter(service=frozenset({"a"}), model=frozenset({"n"}))
        assert ids(store, where=both, sort=sort) == []
        assert ids(store, where=StepFilter(service=frozenset({"a"}), kind=frozenset({"text"})), sort=sort) == []


def test_every_sort_pages_without_gaps(store: Store) -> None:
    for number in range(23):
        sender = Sender()
        run = {semconv.CHAIN_ID: f"run-{number}"}
        for index in range(1 + number % 3):
            confidence = {semconv.STEP_CONFIDENCE: (number % 4) / 4} if number % 5 else {}
            sender.step(index, {**run, **confidence}, trace=bytes([number + 1] * 16), end_ms=NOW + number // 4)
        if number % 2:
            usage = {semconv.REQUEST_MODEL: "priced" if number % 3 else "x", semconv.USAGE_OUTPUT: number % 7}
            sender.span(call(**run, **usage), trace=bytes([number + 1] * 16), end_ms=NOW + 50, latency_ms=number)
        store.write(sender)
    keys = {
        "started": lambda run: run["started_ms"],
        "steps": lambda run: run["steps"],
        "duration": lambda run: run["duration_ms"],
        "tokens": lambda run: (run["input_tokens"] or 0) + (run["output_tokens"] or 0),
        "cost": lambda run: -1.0 if run["cost_usd"] is None else run["cost_usd"],
        "worst": lambda run: store.one("SELECT worst_rank FROM runs WHERE run_id = ?", run["run_id"])[0],
    }
    assert keys.keys() == SORTS.keys()
    for sort, key in keys.items():
        for descending in (True, False):
            seen: list[dict[str, Any]] = []
            cursor = None
            while True:
                query = RunQuery(sort=sort, descending=descending, limit=4, cursor=cursor)
                page = find_runs(store.reader, query)
                seen += page["items"]
                if page["next"] is None:
                    break
                cursor = read_cursor(page["next"])
            assert len({run["run_id"] for run in seen}) == len(seen) == 23
            assert [key(run) for run in seen] == sorted((key(run) for run in seen), reverse=descending)


def test_status_and_time(store: Store) -> None:
    now = int(time.time() * 1000)
    ends: dict[str, dict[str, Any]] = {
        "ok": {semconv.FINISH_REASONS: ["end_turn"]},
        "failed": {semconv.ERROR_TYPE: "timeout"},
        "running": {semconv.FINISH_REASONS: ["tool_use"]},
        "stale": {semconv.FINISH_REASONS: ["tool_use"]},
    }
    for number, (run, end) in enumerate(ends.items(), 1):
        sender = Sender()
        sender.span(call(**{semconv.CHAIN_ID: run}, **end), trace=bytes([number] * 16), end_ms=now + number)
        store.write(sender)
    store.db.execute("UPDATE runs SET seen_ms = ? WHERE run_id = 'stale'", (now - RUNNING_MS - 1,))
    assert ids(store, status="running") == ["running"]
    assert ids(store, status="failed") == ["failed"]
    assert ids(store, status="ok") == ["stale", "ok"]
    assert [run["status"] for run in find_runs(store.reader, RunQuery())["items"]] == ["ok", "running", "failed", "ok"]
    started = now + 2 - 100
    assert ids(store, from_ms=started, to_ms=started + 1) == ["failed"]
    assert ids(store, run="failed") == ["failed"]


def test_search_by_ids_and_labels(store: Store) -> None:
    one = "0123456789abcdef0123456789abcdef"
    store.write(a_run(one, 0xAB))
    store.write(a_run("plain name", 0xCD))
    labelled = Sender()
    labelled.step(0, {semconv.CHAIN_ID: "labelled", semconv.LABEL_PREFIX + "team": "blue:1"}, trace=b"\xef" * 16)
    store.write(labelled)
    split = Sender()  # the same run in a second trace
    split.step(1, {semconv.CHAIN_ID: one}, trace=b"\x77" * 16)
    store.write(split)
    for q, expected in (
        (one, [one]),
        (one[:4], [one]),
        (one[:5].upper(), [one]),
        ("012", []),  # three digits are text, and no text was captured
        ("cd" * 16, ["plain name"]),
        ("cdcd", ["plain name"]),
        ("77777", [one]),
        ("plain name", ["plain name"]),
        ("team:blue:1", ["labelled"]),
        ("team:red", []),
        ("ffff", []),
        ("  ", ["labelled", "plain name", one]),
    ):
        assert sorted(ids(store, q=q)) == sorted(expected), q


@pytest.mark.parametrize("indexed", [True, False])
def test_search_by_text(store: Store, indexed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not indexed:
        monkeypatch.setattr(texts, "is_indexed", lambda db: False)
    for number, text in enumerate(
        ("The total is 42 %.", 'He said "total" twice', "Bericht über Äpfel", None, "A\0b"), 1
    ):
        sender = Sender()
        attributes = {semconv.CHAIN_ID: f"run-{number}", **({semconv.STEP_TEXT: text} if text else {})}
        sender.step(0, attributes, trace=bytes([number] * 16))
        store.write(sender)
    assert store.one("SELECT count(*) FROM texts") == (4,)
    for q, expected in (
        ("total", ["run-2", "run-1"]),
        ("TOTAL IS", ["run-1"]),
        ('"total"', ["run-2"]),
        ("42 %", ["run-1"]),
        ("%", ["run-1"]),
        ("_", []),
        ("über", ["run-3"]),
        ("total AND twice", []),
        ("*", []),
        ("error: none", []),
        ("42\0", []),
        ("\0\0\0", []),
        ("a\0B", ["run-5"]),
        ("\0", ["run-5"]),
    ):
        assert sorted(ids(store, q=q)) == sorted(expected), q


def test_a_run_that_never_called_has_its_root(store: Store) -> None:
    sender = Sender()
    root = {semconv.CHAIN_ID: "early", semconv.OPERATION_NAME: "invoke_workflow"}
    sender.span(root, trace=b"\x05" * 16, end_ms=NOW, name="invoke_workflow")
    store.write(sender)
    found = find_run(store.reader, "early")
    assert found is not None
    assert found["traces"] == ["05" * 16]
    assert [span["name"] for span in found["spans"]] == ["invoke_workflow"]


def test_one_run_with_all_of_it(store: Store) -> None:
    first, second = b"\x01" * 16, b"\x02" * 16
    sender = Sender("app")
    root = sender.span({"http.route": "/pay"}, trace=first, end_ms=NOW, name="POST /pay")
    parent = b"\x0c" * 8
    steps = [
        sender.step(index, {semconv.CHAIN_ID: "r"}, trace=trace, parent=parent, end_ms=NOW + index)
        for index, trace in ((1, second), (0, first))
    ]
    sender.span(call(**{semconv.CHAIN_ID: "r"}), trace=first, span=parent, parent=root, end_ms=NOW)
    sender.step(0, {semconv.CHAIN_ID: "other"}, trace=b"\x03" * 16)
    log = LogEvent(b"d" * 16, second, b"\5" * 8, NOW, "event", "app", b"")
    store.db.execute("BEGIN")
    store.tables.write([job(sender), Job(events=[log])])
    store.db.execute("COMMIT")
    found = find_run(store.reader, "r")
    assert found is not None
    assert found["run"] == find_runs(store.reader, RunQuery(run="r"))["items"][0]
    assert [step["span_id"] for step in found["steps"]] == [steps[1].hex(), steps[0].hex()]
    assert found["traces"] == [first.hex(), second.hex()]
    assert {(span["trace_id"], span["name"]) for span in found["spans"]} == {
        (first.hex(), "POST /pay"),
        (first.hex(), "span"),
        (second.hex(), "span"),
    }
    assert len(found["spans"]) == 4
    assert [(event["trace_id"], event["name"]) for event in found["events"]] == [(second.hex(), "event")]
    assert found["truncated"] is False
    assert find_run(store.reader, "no such run") is None
    trace = find_trace(store.reader, second)
    assert trace is not None
    assert (trace["trace_id"], len(trace["spans"]), len(trace["events"])) == (second.hex(), 1, 1)
    assert "trace_id" not in trace["spans"][0]


@pytest.mark.parametrize(
    ("module", "name"),
    [(run_detail, "MAX_STEPS"), (run_detail, "MAX_TRACES"), (run_detail, "MAX_CALLS"), (traces, "MAX_SPANS")],
)
def test_a_large_run_is_cut_and_says_so(store: Store, module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sender = Sender()
    for number in range(3):
        sender.step(number, {semconv.CHAIN_ID: "r"}, trace=bytes([number + 1] * 16))
        sender.span(call(**{semconv.CHAIN_ID: "r"}), trace=bytes([number + 1] * 16))
    store.write(sender)
    found = find_run(store.reader, "r")
    assert found is not None
    assert not found["truncated"]
    monkeypatch.setattr(module, name, 2)
    found = find_run(store.reader, "r")
    assert found is not None
    assert found["truncated"]
    key = {"MAX_STEPS": "steps", "MAX_TRACES": "traces", "MAX_CALLS": "calls", "MAX_SPANS": "spans"}[name]
    assert len(found[key]) == 2


def test_a_trace_may_have_several_runs(store: Store) -> None:
    sender = Sender()
    trace = os.urandom(16)
    for run in ("a", "b"):
        sender.step(0, {semconv.CHAIN_ID: run}, trace=trace)
    store.write(sender)
    assert sorted(ids(store, q=trace.hex())) == ["a", "b"]
