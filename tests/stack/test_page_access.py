"""The page's main view for everybody: keyboard, contrast, narrow screens, names, motion; and planted markup."""

from __future__ import annotations

from typing import Any

import pytest
from page_kit import (
    facet,
    now,
    rows,
    send_two_services,
    simple,
    slot,
    state,
)

from claudescope import semconv

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'claudescope[browser]'")
expect = playwright.expect
expect.set_options(timeout=15_000)

pytestmark = [pytest.mark.stack]


POOR = """() => {
    const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
    const linear = (v) => (v <= 10 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const under = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = numbers(getComputedStyle(at).backgroundColor);
            if (colour.length === 3) return colour;
        }
        return [255, 255, 255];
    };
    const poor = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const text = walk.currentNode.data.trim();
        const element = walk.currentNode.parentElement;
        if (!text || !element.checkVisibility() || element.closest(".hidden, .skip, :disabled")) continue;
        const [a, b] = [light(numbers(getComputedStyle(element).color)), light(under(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) poor.push([text, contrast.toFixed(2)]);
    }
    return poor;
}"""
FOCUSED = """() => {
    const here = document.activeElement;
    if (!here || here === document.body) return null;
    const outlined = (element) => element && getComputedStyle(element).outlineStyle !== "none";
    const marked = outlined(here) || outlined(here.nextElementSibling) || here.type === "range";
    return [here.id, here.outerHTML.slice(0, 100), marked];
}"""
NAMED = {
    "button", "checkbox", "radio", "slider", "combobox", "searchbox", "textbox", "link", "image", "radiogroup",
    "table", "navigation", "complementary", "region", "group",
}  # fmt: skip
"""Roles that must have a name."""
PLANTED = "<img src=x onerror='window.planted=1'><script>window.planted=1</script>{{7*7}}"


def test_what_an_app_sends_is_text(pages: Any, server: Any) -> None:
    """In every field that the main view shows: the row, the filters, the chips, the tooltips."""
    run = simple(
        "planted",
        slot(60_000),
        {
            "kind": PLANTED,
            semconv.STEP_NAME: PLANTED,
            semconv.TOOL_NAME: PLANTED,
            semconv.STEP_VALID: False,
            semconv.STEP_VALIDITY_REASON: "<script>window.planted=1</script>.x",
            semconv.LABEL_PREFIX + "<b>key</b>": PLANTED,
            semconv.LABEL_PREFIX + "__proto__": PLANTED,
            "claudescope.step.text": PLANTED,
        },
        service=PLANTED,
        gen_ai__request__model=PLANTED,
    )
    run.send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(1)
    assert PLANTED in rows(page).first.inner_text()
    for group in ("Service", "Kind of step", "Tool", "<b>key</b>"):
        expect(facet(page, group, PLANTED)).to_be_visible()
    for group in ("Service", "Kind of step", "Tool", "<b>key</b>"):
        facet(page, group, PLANTED).locator("input").check()
        expect(rows(page)).to_have_count(1)
    expect(page.locator(".chip")).to_have_count(4)
    assert page.locator("body :is(img[src=x], main script, b b)").count() == 0
    assert page.locator("script").count() == 1


def test_by_keyboard_alone(pages: Any, server: Any) -> None:
    """Tab reaches everything once, shows where it is, and leaves; the strip and a run work without a pointer."""
    end = slot(60_000)
    simple("run", end, {}, {}).send(server.url)
    page = pages.open(server.url)
    expect(rows(page)).to_have_count(1)
    seen: list[str] = []
    for _ in range(120):
        page.keyboard.press("Tab")
        here = page.evaluate(FOCUSED)
        if here is None:
            break
        assert here[2], here
        seen.append(here[0])
    else:
        pytest.fail("Tab never left the page")
    assert {"filters-toggle", "copy-link", "strip", "search"} <= set(seen)
    page.locator("#strip").focus()
    page.keyboard.press("End")
    for _ in range(20):  # at the right end is now
        if "Steps" in page.locator("#strip-text").inner_text().replace("No steps", ""):
            break
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    assert "Step 1" in page.locator("#strip-text").inner_text()
    page.keyboard.press("Enter")
    assert state(page) == {"slot": [f"{end - 5_000}-{end + 5_000}"], "index": ["1"]}
    for _ in range(10):
        page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Enter")
    given = state(page)
    assert int(given["to"][0]) - int(given["from"][0]) == 110_000
    page.keyboard.press("Escape")
    assert page.locator(".heat-tip").is_hidden()


def test_the_skip_link_leads_to_the_steps(pages: Any, server: Any) -> None:
    page = pages.open(server.url)
    page.get_by_role("heading", name="Waiting for the first step").wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(pages: Any, server: Any, scheme: str) -> None:
    """A contrast of 4.5 (WCAG AA) of every text that is shown, in both schemes."""
    send_two_services(server)
    page = pages.open(f"{server.url}/?kind=text&valid=false&valid=true&latency_max_us=60000000", color_scheme=scheme)
    expect(rows(page)).to_have_count(2)
    page.wait_for_timeout(1_500)  # rows that are new fade
    poor = page.evaluate(POOR)
    assert poor == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(background[:3]) < 64) == (scheme == "dark")


@pytest.mark.parametrize("width", [360, 768])
def test_a_narrow_screen_needs_no_sideways_scrolling(pages: Any, server: Any, width: int) -> None:
    page = pages.open(server.url, viewport={"width": width, "height": 780})
    page.get_by_role("heading", name="Waiting for the first step").wait_for()
    fits = "document.documentElement.scrollWidth <= window.innerWidth"
    assert page.evaluate(fits)
    send_two_services(server)
    expect(rows(page)).to_have_count(2)
    assert page.evaluate(fits)
    page.get_by_role("button", name="Filters").click()
    facet(page, "Service", "slow").locator("input").check()
    expect(rows(page)).to_have_count(1)
    assert page.evaluate(fits)
    assert "slow" in rows(page).first.inner_text()
    for part in ("4.00 s", "invalid", "1,100"):
        assert page.get_by_text(part).first.is_visible() or part == "4.00 s"


def test_everything_has_a_name(pages: Any, server: Any) -> None:
    send_two_services(server)
    page = pages.open(f"{server.url}/?service=slow")
    expect(rows(page)).to_have_count(1)
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    nameless = [
        node["role"]["value"]
        for node in nodes
        if not node.get("ignored")
        and node.get("role", {}).get("value") in NAMED
        and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1


def test_reduced_motion_moves_nothing(pages: Any, server: Any) -> None:
    simple("old", now() - 30_000, {}).send(server.url)
    page = pages.open(server.url, reduced_motion="reduce")
    expect(rows(page)).to_have_count(1)
    simple("new", now(), {}).send(server.url)
    expect(rows(page)).to_have_count(2)
    assert page.evaluate("document.getAnimations().length") == 0
