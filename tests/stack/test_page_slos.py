"""Objectives on the page, in a real browser: cards, states in words, the explanation and what its slices do."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_kit import Server, free_port
from page_kit import chips, now, rows, simple, state, two_frames

playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'claudescope[browser]'")
expect = playwright.expect
expect.set_options(timeout=30_000)

pytestmark = [pytest.mark.stack]

SPEC = """\
version: prometheus/v1
service: shop
slos:
  - name: valid
    description: "<img src=x onerror=alert(1)> most steps are right"
    objective: 99
    indicator: {step_validity: {}}
    group_by: [tool]
    windows:
      - {name: fast, severity: page, short: 5m, long: 1h, factor: 14.4, for: 0s}
      - {name: slow, severity: ticket, short: 30m, long: 6h, factor: 1, for: 10m}
  - name: quiet
    objective: 99
    indicator: {tool_success: {tool: nothing}}
  - name: promql
    objective: 99.95
    sli:
      events:
        error_query: sum(rate(http_requests_total{code=~"5.."}[{{.window}}]))
        total_query: sum(rate(http_requests_total[{{.window}}]))
"""


FAINT = """() => {
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const linear = (v) => (v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
    const back = (node) => {
        for (; node; node = node.parentElement) {
            const colour = parse(getComputedStyle(node).backgroundColor);
            if ((colour[3] ?? 1) > 0.5) return colour;
        }
        return [255, 255, 255];
    };
    const found = [];
    for (const node of document.querySelectorAll("cs-slos *")) {
        const said = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
        if (!said || !node.checkVisibility() || node.closest(".hidden, svg")) continue;
        const [a, b] = [light(parse(getComputedStyle(node).color)), light(back(node))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) found.push([node.textContent, (a + 0.05) / (b + 0.05)]);
    }
    return found;
}"""
"""Texts of the objectives with less contrast than 4.5."""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "slo.yml"
    file.write_text(SPEC)
    return file


@pytest.fixture
def idle(tmp_path: Path, spec: Path) -> Iterator[Server]:
    """A server with objectives and without a step."""
    server = Server(tmp_path / "idle", free_port(), "--slo", str(spec))
    yield server
    server.stop()


@pytest.fixture
def burning(tmp_path: Path, spec: Path) -> Iterator[Server]:
    """A server with an objective that burns: of the tool search, since a minute."""
    server = Server(tmp_path / "burning", free_port(), "--slo", str(spec))
    for hour in range(6, 0, -1):
        for number in range(20):
            _run(server, now() - hour * 3_600_000 - number * 1000, "pay" if number % 2 else "search", number == 3)
    for number in range(40):
        _run(server, now() - 60_000 - number * 500, "pay" if number % 2 else "search", number % 2 == 0)
    until = time.monotonic() + 60
    while not server.get("/api/slos")["alerts"]:
        assert time.monotonic() < until
        time.sleep(0.2)
    yield server
    server.stop()


def _run(server: Server, at: int, tool: str, bad: bool) -> None:
    step = {"kind": "tool_use", "gen_ai__tool__name": tool, "claudescope__step__valid": not bad}
    simple(f"run-{at}-{tool}", at, step, service="shop").send(server.url)  # the name makes its ids


def card(page: Any, name: str) -> Any:
    return page.locator(f'[data-slo="shop-{name}"]')


def test_cards_say_in_words_what_burns(burning: Server, pages: Any) -> None:
    page = pages.open(burning.url)
    valid = card(page, "valid")
    expect(valid.locator(".slo-head .tag")).to_have_text("Burning: fast")
    expect(valid).to_contain_text("99 % of shop over 30d; bad: invalid steps of service shop.")
    expect(valid).to_contain_text("<img src=x onerror=alert(1)> most steps are right")  # as text
    # 20 of 40 and 6 of 120 are bad: 26 / 160 = .1625, and 1 - 16.25 of the budget is left
    expect(valid.locator(".slo-line")).to_have_text("Budget left: -1525 %26 bad of 160")
    expect(valid.get_by_role("img", name="Budget left: -1525 %")).to_be_attached()
    expect(valid.locator('[data-tier="fast"]')).to_contain_text("5m and 1h")
    expect(valid.locator('[data-tier="fast"]')).to_contain_text("fires, page")
    expect(valid.locator('[data-tier="slow"]')).to_contain_text("pending")
    assert valid.locator(".slo-spark rect").count() > 5
    assert card(page, "quiet").locator(".slo-head .tag").inner_text() == "No events"
    expect(card(page, "quiet")).to_contain_text("Budget left: unknown")
    promql = card(page, "promql")
    assert promql.locator(".slo-head .tag").inner_text() == "Needs Prometheus"
    expect(promql).to_contain_text("99.95 % of shop")
    expect(promql).to_contain_text("Not evaluated here, since its indicator is PromQL.")
    expect(promql.get_by_role("button", name="Explain")).to_be_hidden()
    expect(page.locator('cs-slos [role="status"]')).to_have_text("1 objective burning: shop valid")
    assert page.locator("cs-slos img").count() == 0


def test_groups_worst_first(burning: Server, pages: Any) -> None:
    page = pages.open(burning.url)
    groups = card(page, "valid").locator("details")
    groups.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(groups.locator("summary")).to_have_text("By tool: 2, 1 firing")
    rows = groups.locator("tbody tr")
    expect(rows).to_have_count(2)
    assert [row.locator("th").inner_text() for row in rows.all()] == ["search", "pay"]
    expect(rows.first).to_contain_text("20 of 80")
    expect(rows.first).to_contain_text("fast")


def test_the_explanation_names_the_slice_and_filters_by_it(burning: Server, pages: Any) -> None:
    page = pages.open(burning.url)
    button = card(page, "valid").get_by_role("button", name="Explain")
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_attribute("aria-expanded", "true")
    assert state(page)["slo"] == ["shop-valid"]
    reasons = card(page, "valid").get_by_role("region", name="Why it burns")
    slice_ = reasons.get_by_role("button", name="tool search")
    expect(slice_).to_be_visible()
    expect(reasons).to_contain_text("20 of 20 bad")
    links = reasons.get_by_role("link")
    expect(links).to_have_count(3)
    links.first.click()
    expect(page.locator("cs-run")).to_be_visible()
    expect(page.locator("cs-slos")).to_be_hidden()
    page.go_back()
    expect(card(page, "valid").get_by_role("region", name="Why it burns")).to_be_visible()
    slice_.click()
    assert state(page)["tool"] == ["search"]
    assert {"from", "to"} <= set(state(page))
    assert "tool search" in chips(page)
    page.reload()  # a link that is sent shows the same
    expect(reasons).to_contain_text("20 of 20 bad")
    button.click()
    expect(reasons).to_be_hidden()
    assert "slo" not in state(page)


def test_the_cards_can_be_closed(burning: Server, pages: Any) -> None:
    page = pages.open(burning.url)
    title = page.get_by_role("button", name="Objectives")
    expect(page.locator("cs-slos .head p")).to_contain_text(
        "3 objectives: 1 burning, 1 without events, 1 for Prometheus."
    )
    expect(title).to_have_attribute("aria-expanded", "true")
    title.focus()
    page.keyboard.press("Enter")
    expect(card(page, "valid")).to_be_hidden()
    assert state(page)["slos"] == ["closed"]
    expect(page.locator("cs-slos .head p")).to_contain_text("1 burning")
    page.reload()
    expect(title).to_have_attribute("aria-expanded", "false")
    expect(card(page, "valid")).to_be_hidden()
    title.click()
    expect(card(page, "valid")).to_be_visible()
    assert "slos" not in state(page)


def test_a_first_hour_is_explained_by_itself(idle: Server, pages: Any) -> None:
    """Without a time before, slices are compared with all else."""
    for number in range(120):
        _run(idle, now() - 60_000 - number * 500, "pay" if number % 4 else "search", number % 4 == 0)
    page = pages.open(f"{idle.url}/?slo=shop-valid")
    reasons = card(page, "valid").get_by_role("region", name="Why it burns")
    expect(reasons.get_by_role("button", name="tool search")).to_be_visible()
    expect(reasons).to_contain_text("No history yet: compared with everything else in the same time.")
    expect(reasons).to_contain_text("30 of 30 bad")


def test_files_that_are_bad_are_told_of(burning: Server, pages: Any, spec: Path) -> None:
    page = pages.open(burning.url)
    card(page, "valid").wait_for()
    spec.write_text(SPEC.replace("99.95", "200"))
    fault = page.locator(".slo-faults .notice")
    expect(fault).to_contain_text("are not in force")
    expect(fault).to_contain_text("slo.yml:")
    expect(card(page, "promql")).to_contain_text("99.95 % of shop")
    spec.write_text(SPEC.replace("- name: quiet", "- name: hush"))
    expect(fault).to_have_count(0)
    expect(card(page, "hush")).to_be_visible()
    expect(card(page, "quiet")).to_have_count(0)


def test_without_objectives_there_is_nothing(pages: Any, server: Any) -> None:
    page = pages.open(server.url)
    simple("one", now(), {}).send(server.url)
    expect(rows(page)).to_have_count(1)
    expect(page.locator("cs-slos section").first).to_be_hidden()


def test_before_the_first_step_the_cards_are_there(idle: Server, pages: Any) -> None:
    page = pages.open(idle.url)
    page.get_by_role("heading", name="Waiting for the first step").wait_for()
    expect(card(page, "valid").locator(".slo-head .tag")).to_have_text("No events")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_and_dark(burning: Server, pages: Any, scheme: str) -> None:
    """Nothing is wider than the window, and every text has a contrast of 4.5 or more."""
    page = pages.open(f"{burning.url}/?slo=shop-valid", viewport={"width": 360, "height": 800}, color_scheme=scheme)
    card(page, "valid").get_by_role("region", name="Why it burns").get_by_role("link").first.wait_for()
    two_frames(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    faint = page.evaluate(FAINT)
    assert json.dumps(faint) == "[]"
