"""The page's main view in a real browser: nothing yet, the heat strip, live steps, and what goes wrong."""

from __future__ import annotations

from typing import Any

import pytest
from page_kit import (
    chips,
    facet,
    figures,
    names,
    now,
    painted,
    rows,
    simple,
    slot,
    state,
    strip_at,
    two_frames,
    until,
)

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'claudescope[browser]'")
expect = playwright.expect
expect.set_options(timeout=15_000)

pytestmark = [pytest.mark.stack]
NO_STATS = """
const add = EventSource.prototype.addEventListener;
EventSource.prototype.addEventListener = function (name, ...rest) {
    if (name !== "stats") add.call(this, name, ...rest);
};
"""
CAPTURED = """
const Real = EventSource;
window.EventSource = class extends Real { constructor(...all) { super(...all); window.stream = this; } };
window.EventSource.CLOSED = 2;
"""
VISIBILITY = """
let hidden = false;
Object.defineProperty(document, "hidden", { get: () => hidden });
Object.defineProperty(document, "visibilityState", { get: () => (hidden ? "hidden" : "visible") });
window.show = (on) => { hidden = !on; document.dispatchEvent(new Event("visibilitychange")); };
"""


def test_an_empty_page_tells_three_ways_and_copies_them(pages: Any, server: Any) -> None:
    page = pages.open(server.url, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("heading", name="Waiting for the first step").wait_for()
    commands = page.locator(".ways code").all_inner_texts()
    assert commands == [
        "claudescope run -- python app.py",
        "import claudescope; claudescope.instrument()",
        f"export OTEL_EXPORTER_OTLP_ENDPOINT={server.url}",
    ]
    for command, button in zip(commands, page.locator(".ways button").all(), strict=True):
        button.click()
        expect(button).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == command
    assert page.locator("cs-runs").is_hidden()
    simple("first", now(), {}).send(server.url)
    expect(rows(page)).to_have_count(1)
    assert page.locator("cs-empty").is_hidden()


def test_the_page_is_sent_packed_and_small(pages: Any, server: Any) -> None:
    """All of it, types for the checker and the run's view included, on the wire."""
    page = pages.open(server.url)
    page.get_by_role("heading", name="Waiting for the first step").wait_for()
    sizes = page.evaluate(
        """performance.getEntriesByType("resource").filter((one) => /[.](js|css|svg)$/.test(one.name))
            .concat(performance.getEntriesByType("navigation"))
            .map((one) => [one.encodedBodySize, one.decodedBodySize])"""
    )
    assert sum(encoded for encoded, _ in sizes) < 150_000
    assert sum(encoded for encoded, _ in sizes) < 0.5 * sum(decoded for _, decoded in sizes)


def test_a_step_is_on_the_strip_before_the_server_counts_it(pages: Any, server: Any) -> None:
    simple("before", now() - 120_000, {}).send(server.url)
    page = pages.open(server.url, NO_STATS)
    expect(rows(page)).to_have_count(1)
    expect(page.locator("#connection")).to_have_text("Live")
    until(page, "() => document.querySelector('cs-heat').whole.running === null")
    end = now()
    blank = painted(page, end, 2)
    simple("live", end, {}, {}, {"ms": 2_000}).send(server.url)
    until(page, "() => document.querySelector('cs-heat').cells.top >= 2")
    two_frames(page)
    assert painted(page, end, 2) != blank
    page.mouse.move(*strip_at(page, end, 2))
    assert figures(page)["Steps"] == "1"
    assert figures(page)["Latency p95"].startswith(("1.9", "2.0"))


def test_totals_count_steps_by_verdict(pages: Any, server: Any) -> None:
    page = pages.open(server.url)
    simple("one", now(), {"claudescope__step__valid": True}, {"claudescope__step__valid": False}, {}, {}).send(
        server.url
    )
    expect(page.locator("#total-steps")).to_have_text("4")
    expect(page.locator("#total-invalid")).to_have_text("1")
    expect(page.locator("#total-unknown")).to_have_text("2")


def test_hovering_a_cell_says_its_figures(pages: Any, server: Any) -> None:
    """20 steps of 100, 200, ..., 2000 ms: p50 1 s, p95 1.9 s, both within the 5 % of the bands."""
    end = slot(60_000)
    for number in range(20):
        simple(
            f"run {number}",
            end,
            {
                "ms": 100 * (number + 1),
                "claudescope__step__confidence": 0.5 if number < 10 else 0.9,
                "claudescope__step__valid": number >= 5,
            },
        ).send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(20)
    page.mouse.move(*strip_at(page, end, 0))
    found = figures(page)
    assert found["Steps"] == "20"
    assert found["Mean confidence"] == "0.70 of 20 steps"
    assert found["Invalid"] == "5 of 20 checked (25 %)"

    def seconds(text: str) -> float:
        return float(text.split()[0]) / (1000 if "ms" in text else 1)

    assert seconds(found["Latency p50"]) == pytest.approx(1.0, rel=0.06)
    assert seconds(found["Latency p95"]) == pytest.approx(1.9, rel=0.06)


def test_colour_is_by_the_chosen_measure(pages: Any, server: Any) -> None:
    end = slot(60_000)
    simple("run", end, {"ms": 3_000, "claudescope__step__confidence": 0.55, "claudescope__step__valid": False}).send(
        server.url
    )
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(1)
    seen = [painted(page, end, 0)]
    for measure in ("Confidence", "Invalid share"):
        page.get_by_role("radio", name=measure).check()
        two_frames(page)
        seen.append(painted(page, end, 0))
    # steps of the scales: 2.5-10 s, .5-.6, 40 % and over
    assert seen == [[0x2B, 0x67, 0xA8], [0xD3, 0x6A, 0x23], [0x82, 0x34, 0x07]]
    assert state(page)["measure"] == ["invalid"]


def test_a_click_filters_by_time_and_step_number_and_again_takes_it_off(pages: Any, server: Any) -> None:
    early, late = slot(180_000), slot(60_000)
    simple("early", early, {}, {}, service="early").send(server.url)
    simple("late", late, {}, {}, service="late").send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(2)
    page.mouse.click(*strip_at(page, early, 1))
    expect(rows(page)).to_have_count(1)
    assert names(page) == ["early"]
    assert state(page) == {"slot": [f"{early - 5_000}-{early + 5_000}"], "index": ["1"]}
    assert chips(page)[1] == "step 1"
    expect(facet(page, "Service", "early")).to_contain_text("1")
    page.mouse.click(*strip_at(page, early, 1))
    expect(rows(page)).to_have_count(2)
    assert state(page) == {}


def test_a_drag_zooms_and_the_browser_goes_back(pages: Any, server: Any) -> None:
    early, late = slot(600_000), slot(60_000)
    simple("early", early, {}, service="early").send(server.url)
    simple("late", late, {}, service="late").send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(2)
    x, y = strip_at(page, early - 60_000, 0)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(*strip_at(page, early + 60_000, 0), steps=5)
    page.mouse.up()
    # the early run began ten seconds before its steps ended
    expect(rows(page)).to_have_count(1)
    assert names(page) == ["early"]
    given = state(page)
    assert (int(given["from"][0]), int(given["to"][0])) == (early - 65_000, early + 65_000)
    page.get_by_role("button", name="Back to now").click()
    expect(rows(page)).to_have_count(2)
    page.go_back()
    expect(rows(page)).to_have_count(1)
    page.go_back()
    expect(rows(page)).to_have_count(2)
    assert state(page) == {}


@pytest.mark.parametrize(
    ("name", "bucket_s"),
    [("5 min", 10), ("15 min", 10), ("1 h", 10), ("6 h", 60), ("24 h", 300), ("7 d", 3600), ("30 d", 21600)],
)
def test_every_range_has_its_columns(pages: Any, server: Any, name: str, bucket_s: int) -> None:
    simple("run", now() - 20_000, {}).send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(1)
    page.get_by_role("radio", name=name, exact=True).check()
    until(page, "(ms) => document.querySelector('cs-heat').strip.bucket === ms", bucket_s * 1000)
    until(page, "() => document.querySelector('cs-heat').cells.columns.size > 0")
    simple("new", now(), {}, {}, {}).send(server.url)
    until(page, "() => document.querySelector('cs-heat').cells.top === 2")


def test_a_time_by_hand(pages: Any, server: Any) -> None:
    simple("run", now() - 20_000, {}).send(server.url)
    page = pages.open(server.url, timezone_id="America/New_York")
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name="From – to").click()
    page.get_by_label("From", exact=True).fill("2026-01-02T10:00:00")
    page.get_by_label("To", exact=True).fill("2026-01-02T09:00:00")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_role("alert").filter(has_text="must be before")).to_be_visible()
    page.get_by_label("To", exact=True).fill("2026-01-02T11:00:00")
    page.get_by_role("button", name="Show", exact=True).click()
    # ten o'clock in New York in January is 15:00 UTC
    assert state(page) == {"from": ["1767366000000"], "to": ["1767369600000"]}
    expect(rows(page)).to_have_count(0)
    page.get_by_text("No run has such steps").wait_for()


def test_a_dropped_connection_is_said_and_mended(pages: Any, server: Any, tmp_path: Any) -> None:
    from e2e_kit import Server

    simple("before", now() - 30_000, {}, service="before").send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(1)
    pages.expected = "Failed to load resource"
    server.stop()
    expect(page.locator("#connection")).to_have_text("Connection lost")
    expect(page.locator("[data-notice=lost]")).to_contain_text("No connection to the server since")
    again = Server(tmp_path / "data", int(server.url.rpartition(":")[2]))
    try:
        simple("after", now(), {}, service="after").send(again.url)
        expect(page.locator("#connection")).to_have_text("Live", timeout=30_000)
        expect(rows(page)).to_have_count(2)
        expect(page.locator("[data-notice=lost]")).to_have_count(0)
    finally:
        again.stop()


def test_a_hidden_tab_lets_go_and_catches_up(pages: Any, server: Any) -> None:
    simple("before", now() - 30_000, {}, service="before").send(server.url)
    page = pages.open(server.url, VISIBILITY)
    expect(rows(page)).to_have_count(1)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("window.show(false)")
    expect(page.locator("#connection")).to_have_attribute("data-state", "asleep")
    simple("meanwhile", now(), {}, service="meanwhile").send(server.url)
    page.wait_for_timeout(3_000)
    assert asked == []
    assert server.get("/api/status")["clients"] == 0
    page.evaluate("window.show(true)")
    expect(rows(page)).to_have_count(2)
    expect(page.locator("#connection")).to_have_text("Live")


def test_trouble_of_the_server_is_said(pages: Any, server: Any) -> None:
    simple("run", now() - 30_000, {}).send(server.url)
    page = pages.open(server.url, CAPTURED)
    expect(rows(page)).to_have_count(1)
    expect(page.locator("#connection")).to_have_text("Live")
    trouble = {
        "ts_ms": now(), "steps": 1, "valid": 0, "invalid": 0, "unknown": 1, "spans_per_s": 0,
        "last_span_ms": now() - 300_000, "backlog_bytes": 20 * 2**20, "store_error": "disk is full", "clients": 1,
        "cells": [], "dropped": [{"reason": "queue_full", "kind": "step", "value": 1200}],
    }  # fmt: skip
    page.evaluate(
        """(data) => { window.stream.close();
            window.stream.dispatchEvent(new MessageEvent("stats", { data: JSON.stringify(data) }));
            window.stream.dispatchEvent(new MessageEvent("lag", { data: '{"count": 7}' })); }""",
        trouble,
    )
    expect(page.locator("[data-notice=store]")).to_contain_text("disk is full")
    expect(page.locator("[data-notice=behind]")).to_contain_text("behind by 21 MB")
    expect(page.locator("[data-notice=dropped]")).to_contain_text("1,200 in all")
    expect(page.locator("[data-notice=dropped]")).to_contain_text("1,200 steps because the app's queue was full")
    expect(page.locator("[data-notice=quiet]")).to_contain_text("Data stopped at")
    expect(page.locator("[data-notice=lag]")).to_contain_text("missed 7 events")
    expect(page.locator("#connection")).to_contain_text("no data for 5 min")
    page.locator("[data-notice=dropped]").get_by_role("button", name="Dismiss").click()
    expect(page.locator("[data-notice=dropped]")).to_have_count(0)
