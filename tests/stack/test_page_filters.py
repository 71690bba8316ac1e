"""Filters and runs of the page's main view, in a real browser."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from page_kit import (
    NAMES,
    chips,
    facet,
    figures,
    names,
    now,
    rows,
    send_two_services,
    simple,
    state,
    strip_at,
    until,
)

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'claudescope[browser]'")
expect = playwright.expect
expect.set_options(timeout=15_000)

pytestmark = [pytest.mark.stack]


@pytest.mark.parametrize(
    ("group", "value", "parameter", "service"),
    [
        ("Service", "slow", "service=slow", "slow"),
        ("Kind of step", "tool_use", "kind=tool_use", "quick"),
        ("Tool", "search", "tool=search", "quick"),
        ("Failed check", "tool_input", "check=tool_input", "slow"),
        ("tier", "gold", "label=tier:gold", "quick"),
        ("Validity", "Invalid", "valid=false", "slow"),
        ("Step number", "Step 1", "index=1", "quick"),
    ],
)
def test_a_choice_filters_everything_and_is_in_the_address(
    pages: Any, server: Any, group: str, value: str, parameter: str, service: str
) -> None:
    send_two_services(server)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(2)
    facet(page, group, value).locator("input").check()
    expect(rows(page)).to_have_count(1)
    assert names(page) == [service]
    assert urlsplit(page.url).query == parameter
    expect(page.locator(".chip")).to_have_count(1)
    again = pages.open(page.url)  # the link, on another machine
    expect(rows(again)).to_have_count(1)
    assert names(again) == [service]
    expect(facet(again, group, value).locator("input")).to_be_checked()
    again.locator(".chip button").click()
    expect(rows(again)).to_have_count(2)
    assert urlsplit(again.url).query == ""


def test_counts_leave_out_their_own_list_so_that_a_choice_can_be_widened(pages: Any, server: Any) -> None:
    send_two_services(server)
    page = pages.open(f"{server.url}/?service=slow&valid=false")
    expect(rows(page)).to_have_count(1)
    page.mouse.move(700, 600)  # lists under the pointer keep still
    expect(facet(page, "Service", "slow")).to_contain_text("1")
    expect(facet(page, "Validity", "Invalid")).to_contain_text("1")
    expect(facet(page, "Tool", "search")).to_have_count(0)
    facet(page, "Validity", "Invalid").locator("input").uncheck()
    expect(facet(page, "Service", "quick")).to_contain_text("2")
    facet(page, "Service", "quick").locator("input").check()
    expect(rows(page)).to_have_count(2)
    assert state(page)["service"] == ["slow", "quick"]


def test_ranges_move_by_keys_in_steps_of_the_scale(pages: Any, server: Any) -> None:
    send_two_services(server)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(2)
    low = page.get_by_role("slider", name="Latency from")
    low.focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert low.get_attribute("aria-valuetext") == "200 ms"
    expect(rows(page)).to_have_count(1)
    assert state(page) == {"latency_min_us": ["200000"]}
    assert chips(page) == ["latency 200 ms and over"]
    high = page.get_by_role("slider", name="Confidence to")
    high.focus()
    page.keyboard.press("ArrowLeft")
    assert state(page)["confidence_max"] == ["0.95"]
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name="Clear all").click()
    expect(rows(page)).to_have_count(2)
    assert low.get_attribute("aria-valuetext") == "lowest"


def test_a_range_is_dragged_over_its_bars(pages: Any, server: Any) -> None:
    send_two_services(server)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(2)
    box = page.locator(".plot").first.bounding_box()
    each = box["width"] / 16  # 15 edges
    page.mouse.move(box["x"] + 0.5 * each, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 4.5 * each, box["y"] + 10, steps=4)
    page.mouse.up()
    expect(rows(page)).to_have_count(1)
    assert names(page) == ["quick"]
    assert state(page) == {"latency_max_us": ["200000"]}


def test_confidence_known_or_not(pages: Any, server: Any) -> None:
    send_two_services(server)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Steps with or without a confidence").select_option(value="false")
    expect(rows(page)).to_have_count(1)
    assert names(page) == ["quick"]
    assert chips(page) == ["confidence unknown"]


def test_live_steps_obey_the_filters(pages: Any, server: Any) -> None:
    send_two_services(server)
    page = pages.open(f"{server.url}/?service=slow")
    expect(rows(page)).to_have_count(1)
    end = now()
    simple("other", end, {}, {}, {}, service="quick").send(server.url)
    simple("mine", end, {}, {}, {}, {}, service="slow").send(server.url)
    expect(rows(page)).to_have_count(2)
    assert names(page) == ["slow", "slow"]
    until(page, "() => document.querySelector('cs-heat').cells.top === 3")
    page.mouse.move(*strip_at(page, end, 1))
    assert figures(page)["Steps"] == "1"


def test_copy_link_copies_this_view(pages: Any, server: Any) -> None:
    send_two_services(server)
    page = pages.open(f"{server.url}/?service=slow&measure=invalid", permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#copy-link")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == f"{server.url}/?measure=invalid&service=slow"


def test_columns_of_the_table_say_what_is_unknown(pages: Any, server: Any) -> None:
    end = now() - 30_000
    known = "claude-sonnet-4-5"
    simple("priced", end, {}, service="priced", gen_ai__request__model=known).send(server.url)
    simple("unpriced", end - 1_000, {}, service="unpriced", gen_ai__request__model="some-model").send(server.url)
    both = simple("both", end - 2_000, {}, service="both", gen_ai__request__model=known)
    both.call("second", 0, 10_000, gen_ai__request__model="some-model")
    both.send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(3)
    priced, unpriced, partly = rows(page).all()
    assert "1,100" in priced.inner_text()  # 1,000 in and 100 out
    assert re.search(r"^\$0\.\d+$", priced.locator("td").last.inner_text())
    assert unpriced.locator("td").last.inner_text() == "unknown"
    assert re.search(r"^≥ \$0\.\d+$", partly.locator("td").last.inner_text())
    date = server.get("/api/status")["prices_date"]
    expect(priced.locator("td").last).to_have_attribute("title", re.compile(re.escape(date)))


def test_sorting_by_a_column(pages: Any, server: Any) -> None:
    for number, steps in enumerate((3, 1, 2)):
        simple(f"run {number}", now() - 60_000 * (number + 1), *[{}] * steps, service=f"s{steps}").send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(3)
    assert names(page) == ["s3", "s1", "s2"]
    head = page.get_by_role("columnheader", name="Steps")
    assert head.get_attribute("aria-sort") == "none"
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.locator(NAMES).first).to_have_text("s3")
    expect(page.locator(NAMES)).to_have_text(["s3", "s2", "s1"])
    head.get_by_role("button").click()
    expect(page.locator(NAMES)).to_have_text(["s1", "s2", "s3"])
    assert head.get_attribute("aria-sort") == "ascending"
    assert state(page) == {"sort": ["steps"], "order": ["asc"]}


def test_paging_goes_older_and_newer(pages: Any, server: Any) -> None:
    for number in range(120):
        simple(f"run {number}", now() - 1_000 * number, {}, service=f"s{number}").send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(50)
    newer, older = page.get_by_role("button", name="Newer"), page.get_by_role("button", name="Older")
    assert newer.is_disabled()
    seen = set(names(page))
    older.click()
    page.get_by_text("51 – 100").wait_for()
    seen |= set(names(page))
    older.click()
    page.get_by_text("101 – 120").wait_for()
    seen |= set(names(page))
    assert len(seen) == 120
    assert older.is_disabled()
    newer.click()
    newer.click()
    page.get_by_text("The latest 50").wait_for()


def test_search_by_trace_id_and_by_label(pages: Any, server: Any) -> None:
    send_two_services(server)
    run = simple("wanted", now() - 60_000, {}, service="wanted")
    run.send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(3)
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type(run.trace_id[:9])
    expect(rows(page)).to_have_count(1)
    assert names(page) == ["wanted"]
    page.locator("#search").fill("tier:gold")
    expect(page.locator(NAMES)).to_have_text(["quick"])
    assert state(page) == {"q": ["tier:gold"]}
    page.locator("#search").fill("ffffffffff")
    page.get_by_text("No run has such steps").wait_for()


def test_new_runs_wait_while_the_pointer_is_on_the_rows(pages: Any, server: Any) -> None:
    simple("old", now() - 30_000, {}, service="old").send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(1)
    rows(page).first.hover()
    simple("new", now(), {}, service="new").send(server.url)
    expect(page.get_by_role("button", name="1 new run")).to_be_visible()
    assert names(page) == ["old"]
    page.mouse.move(5, 5)
    expect(rows(page)).to_have_count(2)
    assert names(page) == ["new", "old"]
    assert page.get_by_role("button", name="1 new run").is_hidden()


def test_a_run_opens_and_the_focus_comes_back(pages: Any, server: Any) -> None:
    send_two_services(server)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(2)
    button = page.locator(NAMES).first
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/?run=*")
    assert page.locator("cs-run").is_visible()
    assert page.locator("cs-runs").is_hidden()
    page.go_back()
    expect(rows(page)).to_have_count(2)
    expect(page.locator(NAMES).first).to_be_focused()
