"""The view of a run in a real browser: its arithmetic, its waterfall, its detail, by pointer and by keyboard."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parent))

from e2e_kit import Server, free_port
from sent_runs import SentRun, long_run, rich_run

import claudescope.live
from claudescope import semconv

pytestmark = [pytest.mark.stack]
PLANTED = "<img src=x onerror='window.planted=1'><script>window.planted=1</script>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("run") / "data", free_port())
    yield running
    running.stop()


@pytest.fixture(scope="module")
def rich(server: Server) -> SentRun:
    run = rich_run("rich", int(time.time() * 1000) - 60_000)
    run.send(server.url)
    return run


@pytest.fixture(scope="module")
def long(server: Server) -> SentRun:
    run = long_run("long", int(time.time() * 1000) - 300_000, 2_000)
    run.send(server.url)
    return run


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1400, "height": 900})
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    opened.faults = faults
    yield opened
    planted = opened.evaluate("window.planted")
    opened.close()
    assert faults == []
    assert planted is None


def visit(page: Any, server: Server, run: SentRun, more: str = "") -> Any:
    """Opens a run; returns the locator of its rows."""
    page.goto(f"{server.url}/?run={run.run_id}{more}")
    rows = page.locator("cs-run [role=row][data-id]")
    rows.first.wait_for()
    return rows


def row(page: Any, node: str) -> Any:
    return page.locator(f'cs-run [role=row][data-id="{node}"]')


def names(page: Any) -> list[str]:
    """The rows in view from top to bottom: level and name."""
    return page.evaluate(
        """() => [...document.querySelectorAll("cs-run [role=row][data-id]")]
             .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
             .map((row) => row.ariaLevel + " " + row.querySelector(".w-name").innerText.replace(/\\s+/g, " "))"""
    )


def focused(page: Any) -> str | None:
    return page.evaluate("document.activeElement?.getAttribute('data-id')")


# ------------------------------------------------------------------------------------------------ arithmetic


def module(page: Any, server: Server, name: str, expression: str, argument: Any = None) -> Any:
    """The value of an expression over a module ``m`` of the page and an argument ``x``."""
    if not page.url.startswith(server.url):
        page.goto(server.url)
    return page.evaluate(f"async (x) => {{ const m = await import('/{name}.js'); return {expression}; }}", argument)


def test_money_is_never_rounded_up(page: Any, server: Server) -> None:
    given = [(None, 0), (0, 0), (0.000054, 0), (0.000054, 1), (0.0039, 0), (0.0039, 2), (0.015, 0), (2, 0)]
    assert [module(page, server, "format", "m.cost(x[0], x[1])", list(pair)) for pair in given] == [
        "unknown", "$0.00", "< $0.0001", "unknown", "$0.0039", "≥ $0.0039", "$0.015", "$2.00",
    ]  # fmt: skip


def test_the_axis(page: Any, server: Server) -> None:
    def value(expression: str) -> Any:
        return module(page, server, "timeline", expression)

    # 13.5 s in at most 7 ticks: at least 1.93 s apart, so 2 s
    ticks = "m.ticks({from: 1000000, to: 14500000}, 1000000, 7)"
    assert value(f"{ticks}.map((tick) => tick.offset / 1e6)") == [0, 2, 4, 6, 8, 10, 12]
    assert value(f"{ticks}.map(m.tickText)") == ["0 s", "2 s", "4 s", "6 s", "8 s", "10 s", "12 s"]
    # a window inside: from 3.2 s to 3.9 s after zero, 100 ms apart
    assert value("m.ticks({from: 3200000, to: 3900000}, 0, 8).map(m.tickText)") == [
        "3.2 s", "3.3 s", "3.4 s", "3.5 s", "3.6 s", "3.7 s", "3.8 s", "3.9 s",
    ]  # fmt: skip
    texts = [(500, 100), (20_000, 5_000), (1_250_000, 50_000), (90_000_000, 30_000_000), (5_400_000_000, 1_800_000_000)]
    assert [value(f"m.tickText({{offset: {offset}, step: {step}}})") for offset, step in texts] == [
        "500 µs", "20 ms", "1.25 s", "1:30", "1:30:00",
    ]  # fmt: skip
    assert value("m.ticks({from: 0, to: 86400e6 * 40}, 0, 8).length") <= 9
    assert value("m.place({from: 0, to: 100}, 25, 75)") == {"left": 0.25, "width": 0.5}
    assert value("m.place({from: 0, to: 100}, -50, 50)") == {"left": 0, "width": 0.5}
    assert value("m.place({from: 0, to: 100}, 150, 200)") is None
    # half as wide around 25: it keeps its place at a quarter of the width
    assert value("m.zoomed({from: 0, to: 100}, {from: 0, to: 100}, 25, 0.5)") == {"from": 12.5, "to": 62.5}
    assert value("m.zoomed({from: 80, to: 100}, {from: 0, to: 100}, 100, 2)") == {"from": 60, "to": 100}
    assert value("m.zoomed({from: 20, to: 60}, {from: 0, to: 100}, 30, 9)") == {"from": 0, "to": 100}
    assert value("m.extent([])") == {"from": 0, "to": 1}
    assert value("m.extent([{start: 5, end: 9}, {start: 3, end: 4}])") == {"from": 3, "to": 9}


def test_places_in_a_text_are_characters(page: Any, server: Server) -> None:
    def value(expression: str) -> Any:
        return module(page, server, "offsets", expression)

    # UTF-16 units: a 1, the cup 2, b 1, the cup 2
    assert value("m.utf16('a🍵b🍵', [0, 1, 2, 4, 9])") == [0, 1, 3, 6, 6]
    assert value("m.utf16('🍵🍵', [2, 0, 1])") == [4, 0, 2]
    # offsets 1-3 and 2-4 overlap on the cup; 4-4 is a place between d and e; the last has none; the fourth is turned
    reasons = (
        """[{start: 1, end: 3}, {start: 2, end: 4}, {start: 4, end: 4}, {start: 3, end: 1}, {start: null, end: null}]"""
    )
    assert value(f"m.pieces('ab🍵de', {reasons})") == [
        {"text": "a", "reasons": []},
        {"text": "b", "reasons": [0]},
        {"text": "🍵", "reasons": [0, 1]},
        {"text": "d", "reasons": [1]},
        {"text": "", "reasons": [2]},
        {"text": "e", "reasons": []},
    ]
    assert value("m.pieces('', [{start: 0, end: 0}])") == [{"text": "", "reasons": [0]}]
    assert value("m.pieces('abc', [{start: 1, end: 99}])") == [
        {"text": "a", "reasons": []},
        {"text": "bc", "reasons": [0]},
    ]


def test_what_follows_from_the_spans_of_a_run(page: Any, server: Server, rich: SentRun) -> None:
    found = page.goto(server.url) and page.evaluate(
        """async (id) => {
             const { buildTree } = await import("/tree.js");
             const m = await import("/timeline.js");
             const tree = buildTree(await (await fetch(`/api/runs/${id}`)).json());
             const nodes = m.rowsOf(tree.roots).map((row) => row.node);
             const paths = m.failingPath(nodes);
             const ids = (list) => [...list].map((node) => node.id);
             return { chain: [...m.chainConfidence(nodes)],
                      trips: m.roundTrips(nodes).map(({ask, run, taker}) => [ask.id, run.id, taker?.id ?? null]),
                      failed: ids(paths.failed), path: ids(paths.path).sort(), after: ids(paths.after).sort() };
           }""",
        rich.run_id,
    )
    step = [rich.id(f"step {index}") for index in range(9)]
    root, call1, call2, call3 = (rich.id(name) for name in ("invoke_workflow refunds", "call 1", "call 2", "call 3"))
    # as the spans say: .9 from step 0 on, .54 from step 2, .432 at step 8
    assert found["chain"] == [[node, 0.9] for node in step[:2]] + [[node, 0.54] for node in step[2:8]] + [
        [step[8], 0.432]
    ]
    # by the ids of the tool calls; both results are in the request of call 2, the server's own tool needs none
    assert sorted(found["trips"]) == sorted(
        [[step[2], step[4], call2], [step[3], step[5], call2], [step[6], step[7], None]]
    )
    assert found["failed"] == [step[2], step[4], call3]
    assert found["path"] == sorted([root, call1, step[2], step[4], call3])
    # what began after step 2 ended, at 3.6 s
    assert found["after"] == sorted([step[3], step[5], call2, step[6], step[7], step[8]])


def test_confidence_of_the_chain_without_the_attribute_and_trips_without_ids(page: Any, server: Server) -> None:
    node = "id: String(i), own: true, kind: k, start: i, end: i + 1, span: null, call: null"
    step = f"{{{node}, step: {{step_index: i, kind: s, tool: 't', call_span_id: c, confidence: p}}}}"
    found = module(
        page, server, "timeline",
        f"""((n) => ({{
            chain: [...m.chainConfidence(n)],
            trips: m.roundTrips(n).map((trip) => [trip.ask.id, trip.run.id, trip.taker?.id]) }}))([
            ...[[0, "step", "text", "A", null], [1, "step", "tool_use", "A", .8], [2, "step", "tool_use", "A", null],
                [3, "tool", "tool_run", "A", null], [4, "tool", "tool_run", "A", .5]]
              .map(([i, k, s, c, p]) => ({step})),
            {{id: "B", own: true, kind: "call", start: 5, end: 9, span: null, step: null, call: null}}])""",
    )  # fmt: skip
    assert found["chain"] == [["1", 0.8], ["2", 0.8], ["3", 0.8], ["4", 0.4]]
    assert found["trips"] == [["1", "3", "B"], ["2", "4", "B"]]  # the first run is of the first that asked


def test_hostile_spans_make_a_tree(page: Any, server: Server) -> None:
    """Spans that are each other's parent, that are missing, and a chain of 5,000."""
    found = module(
        page, server, "tree",
        """((tree) => [tree.roots.length, tree.nodes.size, tree.hidden])(m.buildTree({
             run: {run_id: "r"}, steps: [], calls: [], events: [], traces: [], truncated: false,
             spans: [["a", "b"], ["b", "a"], ["c", "c"], ["d", "gone"],
               ...Array.from({length: 5000}, (_, i) => ["n" + i, "n" + (i - 1)])].map(([span_id, parent_span_id]) => ({
               span_id, parent_span_id, trace_id: "t", name: "x", start_us: 0, end_us: 0, status: "unset", resource: {},
               attributes: {"claudescope.chain.id": "r"}, events: [], links: [] })) }))""",
    )  # fmt: skip
    assert found == [4, 5004, 0]  # one of a and b, c, d, n0


def test_the_names_that_the_page_reads_are_those_of_semconv() -> None:
    text = (Path(claudescope.live.__file__).parent / "page" / "names.js").read_text(encoding="utf-8")
    given = re.findall(r'= "([^"]+)";', text)
    assert len(given) >= 20
    assert set(given) <= set(semconv.ATTRIBUTES)


# ------------------------------------------------------------------------------------------------ waterfall


def test_a_run_as_a_waterfall(page: Any, server: Server, rich: SentRun) -> None:
    visit(page, server, rich)
    assert names(page) == [
        "1 invoke_workflow refunds",
        "2 call claude-sonnet-5-5",
        "3 0 thinking step 1",
        "3 1 text",
        "3 2 tool_use refund",
        "3 3 tool_use research",
        "2 4 tool_run refund",
        "2 5 tool_run research",
        "2 execute_tool research",
        "3 call claude-sonnet-5-5",
        "4 0 text",
        "2 call claude-sonnet-5-5",
        "3 6 server_tool_use web_search",
        "3 7 web_search_tool_result",
        "3 8 text",
        "2 call claude-sonnet-5-5 overloaded_error",
    ]
    bar = row(page, rich.id("step 2")).locator(".stripe")
    left, width = (float(bar.evaluate(f"(bar) => parseFloat(bar.style.{side})")) for side in ("left", "width"))
    assert (left, width) == (pytest.approx(100 * 3.0 / 13.5, abs=1e-3), pytest.approx(100 * 0.6 / 13.5, abs=1e-3))
    sources = {0: "measured", 8: "consumer"}
    for index, source in sources.items():
        assert source in row(page, rich.id(f"step {index}")).locator(".stripe").get_attribute("class")
    assert "apportioned" in row(page, rich.id("sub-agent step")).locator(".stripe").get_attribute("class")
    hatched = row(page, rich.id("step 8")).locator(".stripe").evaluate("(bar) => getComputedStyle(bar).backgroundImage")
    assert hatched.startswith("repeating-linear-gradient")
    assert page.locator("cs-run .retries").all_inner_texts() == ["↻2\nThe SDK sent the request 2 times again"]
    # verdicts by shape: a diamond, a disc, a dash; rings: low, full, dashed
    assert row(page, rich.id("step 2")).locator(".seal.bad path.shape").count() == 1
    assert row(page, rich.id("step 3")).locator(".seal.good circle.shape").count() == 1
    assert row(page, rich.id("step 1")).locator(".seal.unknown .shape").count() == 0
    assert row(page, rich.id("step 2")).locator(".ring.low .value").get_attribute("stroke-dasharray") == "60 100"
    assert row(page, rich.id("step 1")).locator(".ring .none").count() == 1
    classes = {
        node: set((row(page, node).get_attribute("class") or "").split())
        for node in map(rich.id, ("call 1", "step 2", "step 3", "step 0"))
    }
    assert "path" in classes[rich.id("call 1")]
    assert {"path", "failed"} <= classes[rich.id("step 2")]
    assert "after" in classes[rich.id("step 3")]
    assert not classes[rich.id("step 0")] & {"path", "after"}
    assert page.locator("cs-run .wires path").count() == 3
    assert page.locator("cs-run .wires path.bad").count() == 1
    assert page.locator("cs-run .course circle").count() == 3  # where a confidence was known


def test_what_a_reader_hears(page: Any, server: Server, rich: SentRun) -> None:
    visit(page, server, rich)
    grid = page.get_by_role("treegrid", name="Calls, steps and tools on a time axis")
    assert grid.get_attribute("aria-rowcount") == "17"
    assert grid.get_by_role("columnheader").all_inner_texts()[2:] == ["Latency", "Confidence", "Chain", "Validity"]
    first = row(page, rich.id("step 2"))
    assert [first.get_attribute(f"aria-{name}") for name in ("level", "posinset", "setsize", "selected")] == [
        "3",
        "3",
        "4",
        "false",
    ]
    assert row(page, rich.id("call 1")).get_attribute("aria-expanded") == "true"
    cells = first.get_by_role("gridcell").all_inner_texts()
    assert cells[2:5] == ["600 ms", "0.60", "0.54"]
    assert re.sub(r"\s+", " ", cells[5]).strip() == "invalid schema_mismatch"
    unknown = row(page, rich.id("step 1")).get_by_role("gridcell").all_inner_texts()
    assert (unknown[3].strip(), unknown[5].strip()) == ("unknown", "unknown")
    assert row(page, rich.id("step 8")).get_by_role("gridcell").nth(2).inner_text() == "≤ 2.10 s"
    assert first.get_by_role("gridcell", name="3.00 s after the start").count() == 1


def test_what_a_run_adds_up_to(page: Any, server: Server, rich: SentRun) -> None:
    visit(page, server, rich)
    facts = dict(
        zip(
            page.locator("cs-run .facts dt").all_inner_texts(),
            page.locator("cs-run .facts dd").all_inner_texts(),
            strict=True,
        )
    )
    assert facts["Duration"] == "13.5 s"
    assert facts["Steps"].split() == ["9", "2", "invalid"]
    assert facts["Calls"].split() == ["3", "2", "retries"]
    # calls of this run: 12,000, 1,000 and 1,000 in, 100 out each
    assert re.sub(r"\s+", " ", facts["Tokens in"]) == "14K 9,000 from cache, 1,500 to cache"
    assert facts["Tokens out"] == "300"
    assert facts["Confidence"].split()[0] == "0.43"
    assert "$" in facts["Cost"] or facts["Cost"] == "unknown"
    page.get_by_role("button", name="Step 2", exact=True).click()
    page.locator("cs-run .detail h2").wait_for()
    assert f"step={rich.id('step 2')}" in page.url
    assert row(page, rich.id("step 2")).get_attribute("aria-selected") == "true"


def test_filters_dim_what_does_not_match(page: Any, server: Server, rich: SentRun) -> None:
    visit(page, server, rich, "&kind=tool_use")
    dim = page.locator("cs-run [role=row].dim").evaluate_all("(rows) => rows.map((row) => row.dataset.id)")
    steps = {rich.id(f"step {index}") for index in range(9) if index not in (2, 3)}
    assert set(dim) == steps | {rich.id("sub-agent step")}


# ------------------------------------------------------------------------------------------------ detail


def test_the_detail_of_an_invalid_step(page: Any, server: Server, rich: SentRun) -> None:
    visit(page, server, rich, f"&step={rich.id('step 2')}")
    detail = page.locator("cs-run .detail")
    detail.locator("mark").wait_for()
    # {"note":"🍵🍵","amount":   "39,9"}: the two cups are two characters and four UTF-16 units
    assert detail.locator("mark").evaluate("(mark) => mark.firstChild.data") == '"39,9"'
    assert detail.locator(".excerpt pre").evaluate("(pre) => pre.childNodes[0].data") == '{"note":"🍵🍵","amount":   '
    text = detail.inner_text()
    assert "tool_input.schema_mismatch" in text
    assert "characters 25–31" in text
    assert "Measured: the app was waiting" in text
    assert "By verbalised, calibrated on labelled outcomes." in text
    checks = detail.locator(".checks li")
    assert checks.all_inner_texts() == ["tool_input", "tool_name"]
    assert [checks.nth(at).locator("svg").get_attribute("class") for at in (0, 1)] == ["seal bad", "seal good"]
    detail.get_by_role("button", name="step 4 · tool_run refund").click()
    page.locator("cs-run .detail h2", has_text="tool_run").wait_for()
    assert f"step={rich.id('step 4')}" in page.url
    assert "an upper bound of the tool’s own time" in detail.inner_text()


def test_the_detail_of_a_call(page: Any, server: Server, rich: SentRun) -> None:
    visit(page, server, rich, f"&step={rich.id('call 1')}")
    detail = page.locator("cs-run .detail")
    detail.get_by_text("Refund order A-1044, please.").wait_for()
    text = re.sub(r"\s+", " ", detail.inner_text())
    assert "12,000 (1,500 new, 9,000 from cache, 1,500 to cache)" in text
    assert "retries 2" in text
    assert "first bytes after 1.40 s" in text
    assert '"amount": "39,90"' in text
    attributes = detail.locator("summary", has_text="Attributes")
    attributes.click()
    detail.locator("th", has_text="claudescope.chain.id").wait_for()
    # what is open stays open for the next one
    row(page, rich.id("call 2")).click()
    page.locator("cs-run .detail tr", has_text="gen_ai.response.time_to_first_chunk").wait_for()


def test_a_sub_agent_is_a_way_to_its_own_run(page: Any, server: Server, rich: SentRun) -> None:
    visit(page, server, rich, f"&step={rich.id('sub-agent step')}")
    page.get_by_role("button", name="Open that run").click()
    page.wait_for_function("(run) => document.querySelector('cs-run code')?.textContent === run", arg="c" * 32)
    assert f"run={'c' * 32}&step={rich.id('sub-agent step')}" in page.url
    # of the 16 spans of its trace, its own and what they hang from: the root, the tool's span, its call, its step
    page.wait_for_function("() => document.querySelector('cs-run [role=treegrid]').ariaRowCount === '5'")
    page.locator("cs-run").get_by_text("12 spans of the same trace, outside this run, are not shown.").wait_for()


def test_long_texts_are_cut_until_asked_for(page: Any, server: Server, rich: SentRun) -> None:
    visit(page, server, rich, f"&step={rich.id('step 1')}")
    pre = page.locator("cs-run .excerpt pre")
    pre.wait_for()
    assert len(pre.inner_text()) == 1201  # and an ellipsis
    page.get_by_role("button", name="Show all 3,600 characters").click()
    assert len(pre.evaluate("(pre) => pre.textContent")) == 3600  # "Let me refund it. " is 18 characters, 200 times


def test_a_link_to_jaeger_where_there_is_one(page: Any, server: Server, rich: SentRun) -> None:
    page.route("**/api/status", lambda route: route.fulfill(json={"jaeger_url": "http://127.0.0.1:16686/"}))
    visit(page, server, rich, f"&step={rich.id('step 2')}")
    link = page.locator("cs-run .detail a", has_text="Jaeger")
    link.wait_for()
    whole = f"http://127.0.0.1:16686/trace/{rich.trace_id}"
    assert link.get_attribute("href") == f"{whole}?uiFind={rich.id('step 2')}"
    assert page.get_by_role("link", name="Open in Jaeger").get_attribute("href") == whole


def test_a_run_that_is_not_there(page: Any, server: Server) -> None:
    page.goto(f"{server.url}/?run={'0' * 32}")
    page.get_by_text("This run is not in the store").wait_for()
    assert all("404" in fault for fault in page.faults)
    page.faults.clear()
    page.get_by_role("button", name="Runs", exact=True).click()
    assert "run=" not in page.url


# ------------------------------------------------------------------------------------------------ keyboard


def test_a_run_by_keyboard_alone(page: Any, server: Server, rich: SentRun) -> None:
    rows = visit(page, server, rich)
    assert rows.evaluate_all("(rows) => rows.filter((row) => row.tabIndex === 0).length") == 1
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    assert focused(page) == rich.id("call 1")
    page.keyboard.press("ArrowLeft")
    assert row(page, rich.id("call 1")).get_attribute("aria-expanded") == "false"
    assert row(page, rich.id("step 0")).count() == 0
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert focused(page) == rich.id("step 0")
    page.keyboard.press("ArrowLeft")
    assert focused(page) == rich.id("call 1")
    page.keyboard.press("End")
    assert focused(page) == rich.id("call 3")
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.locator("cs-run .detail").wait_for()
    assert f"step={rich.id('invoke_workflow refunds')}" in page.url
    page.keyboard.press("ArrowDown")  # the detail goes along, without a new entry in the history
    page.locator("cs-run .detail h2", has_text="call").wait_for()
    assert f"step={rich.id('call 1')}" in page.url
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('.detail') !== null")
    page.keyboard.press("Escape")
    page.locator("cs-run .detail").wait_for(state="hidden")
    assert focused(page) == rich.id("call 1")
    assert "step=" not in page.url
    for key, name in (("n", "step 2"), ("n", "step 4"), ("n", "call 3"), ("n", "step 2"), ("p", "call 3")):
        page.keyboard.press(key)
        page.wait_for_function("(id) => new URLSearchParams(location.search).get('step') === id", arg=rich.id(name))
        assert focused(page) == rich.id(name)
    assert page.locator("cs-run .fault-steps").inner_text().strip() == "3 of 3 invalid or failed"


def test_the_axis_can_be_looked_at_closer(page: Any, server: Server, rich: SentRun) -> None:
    visit(page, server, rich)
    axis = page.locator("cs-run .axis").bounding_box()
    page.mouse.move(axis["x"] + axis["width"] * 0.2, axis["y"] + 5)
    page.mouse.down()
    page.mouse.move(axis["x"] + axis["width"] * 0.4, axis["y"] + 5, steps=4)
    page.mouse.up()
    fit = page.get_by_role("button", name="Whole run")
    fit.wait_for()
    # 2.7 s to 5.4 s: step 2, from 3 s to 3.6 s, now takes 0.6 of 2.7 s
    width = row(page, rich.id("step 2")).locator(".stripe").evaluate("(bar) => parseFloat(bar.style.width)")
    assert width == pytest.approx(100 * 0.6 / 2.7, abs=1.5)
    assert row(page, rich.id("call 3")).locator(".stripe").count() == 0
    fit.click()
    fit.wait_for(state="hidden")
    row(page, rich.id("step 2")).focus()
    page.keyboard.press("+")
    fit.wait_for()
    page.keyboard.press("0")
    fit.wait_for(state="hidden")


# ------------------------------------------------------------------------------------------------ live, large, narrow


def test_a_run_grows_while_it_goes_on(page: Any, server: Server) -> None:
    run = SentRun("growing", int(time.time() * 1000) - 5_000)
    call = run.id("call 1")
    for index in range(40):
        run.step(index, "text", 100 * index, 100 * index + 100, call)
    run.send(server.url)
    visit(page, server, run)
    assert names(page)[0] == "1 call claude-sonnet-5-5 not ended"  # its span comes when it ends
    row(page, run.id("step 2")).click()
    page.locator("cs-run .detail h2", has_text="text").wait_for()
    page.locator("cs-run .waterfall").evaluate("(grid) => { grid.scrollTop = 150; }")
    for index in range(40, 50):
        run.step(index, "text", 100 * index, 100 * index + 100, call)
    run.call("call 1", 0, 5_000)
    run.send(server.url)
    page.wait_for_function("() => document.querySelector('cs-run [role=treegrid]').ariaRowCount === '52'")
    page.wait_for_function("() => !document.querySelector('cs-run').innerText.includes('not ended')")
    assert row(page, run.id("step 2")).get_attribute("aria-selected") == "true"
    assert focused(page) == run.id("step 2")
    assert page.locator("cs-run .waterfall").evaluate("(grid) => grid.scrollTop") == 150
    assert page.locator("cs-run .detail").is_visible()


def test_two_thousand_steps_are_a_few_rows_in_the_page(page: Any, server: Server, long: SentRun) -> None:
    rows = visit(page, server, long)
    # 1,667 steps of calls and 333 tool runs in 334 calls: one row each, and the header's
    assert page.locator("cs-run [role=treegrid]").get_attribute("aria-rowcount") == str(2_000 + 334 + 1)
    assert rows.count() < 80
    rows.first.focus()
    page.keyboard.press("End")
    row(page, long.id("step 1999")).wait_for()
    assert focused(page) == long.id("step 1999")
    assert rows.count() < 80
    # scrolled away, the row with the focus stays in the page
    page.locator("cs-run .waterfall").evaluate("(grid) => { grid.scrollTop = 0; }")
    row(page, long.id("step 0")).wait_for()
    assert focused(page) == long.id("step 1999")
    # every 37th step is invalid but where it is a tool's run: 36, 73, ... 1997 are 54, of which every sixth is one
    assert page.locator("cs-run .fault-steps").inner_text().strip() == "45 invalid or failed"
    page.keyboard.press("p")
    page.wait_for_function("(id) => new URLSearchParams(location.search).get('step') === id", arg=long.id("step 1960"))


def test_a_run_on_a_phone_in_the_dark(browser: Any, server: Server, rich: SentRun) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark", reduced_motion="reduce")
    visit(page, server, rich, f"&step={rich.id('step 2')}")
    page.locator("cs-run .detail mark").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    falls, detail = (page.locator(f"cs-run {name}").bounding_box() for name in (".falls", ".detail"))
    assert detail["y"] >= falls["y"] + falls["height"]
    name, bar = (row(page, rich.id("step 2")).locator(part).bounding_box() for part in (".c0", ".c1"))
    assert bar["y"] >= name["y"] + name["height"] - 4  # the bar is below the words
    page.close()


def test_what_an_app_sends_is_text_in_a_run(page: Any, server: Server) -> None:
    run = SentRun(PLANTED, int(time.time() * 1000) - 2_000, service=PLANTED)
    call = run.call(
        "call 1", 0, 900, "", error=PLANTED, gen_ai__request__model=PLANTED, gen_ai__response__id=PLANTED,
        gen_ai__input__messages=f'[{{"role":"{PLANTED}","parts":[{{"type":"{PLANTED}","content":"{PLANTED}"}}]}}]',
        gen_ai__system_instructions=PLANTED,
    )  # fmt: skip
    run.step(0, PLANTED, 0, 500, call, claudescope__step__name=PLANTED, gen_ai__tool__name=PLANTED,
             claudescope__step__valid=False, claudescope__step__validity__reason=f"{PLANTED}.x@2-9",
             claudescope__step__validity__checks=[PLANTED], claudescope__step__text=PLANTED,
             claudescope__label__tier=PLANTED,
             claudescope__step__confidence=0.5, claudescope__step__confidence__method=PLANTED)  # fmt: skip
    run.span(PLANTED, 500, 900, call, {PLANTED: PLANTED})
    run.send(server.url)
    rows = visit(page, server, run)
    for at in range(rows.count()):
        rows.nth(at).click()
        page.wait_for_function(
            "(id) => new URLSearchParams(location.search).get('step') === id", arg=rows.nth(at).get_attribute("data-id")
        )
        page.locator("cs-run .detail details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
    assert PLANTED in page.locator("cs-run").inner_text()
    assert page.locator("cs-run img[src=x], cs-run script").count() == 0


@pytest.mark.parametrize("end", ["closed", "completed"])
def test_output_tokens_of_a_stream_that_ended_early_are_at_least_so_many(page: Any, server: Server, end: str) -> None:
    run = SentRun(f"stream {end}", int(time.time() * 1000) - 60_000)
    call = run.call("call", 0, 900, claudescope__stream__end=end, gen_ai__usage__output_tokens=1)
    run.step(0, "text", 100, 900, call)
    run.send(server.url)
    visit(page, server, run)
    row(page, call).click()
    told = page.locator("cs-run .detail tr", has_text="output tokens").first.locator("td")
    out = page.locator("cs-run dl.facts div", has_text="Tokens out").locator("dd")
    told.wait_for()
    early = end == "closed"
    assert told.inner_text() == ("at least 1: the stream ended early" if early else "1")
    assert re.sub(r"\s+", " ", out.inner_text()) == ("1 at least: a stream ended early" if early else "1")
