"""Two sets of steps side by side in a real browser: the statistics, the figures, and what is in the address."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))
sys.path.insert(0, str(Path(__file__).parent))

from e2e_kit import Server, free_port
from sent_runs import SentRun

pytestmark = [pytest.mark.stack]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PLANTED = "<img src=x onerror='window.planted=1'>"
HOUR = 3_600_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.fail("no chromium on PATH: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'claudescope[browser]'")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def start_ms() -> int:
    """A full minute some minutes ago: the steps are in the ten minutes after it."""
    return (int(time.time() * 1000) - 15 * 60_000) // 60_000 * 60_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, start_ms: int) -> Iterator[Server]:
    """Two sets by label ``variant``, 300 runs of two steps each.

    Step 0 is alike in both: 100 ms, confidence .9, 15 of 300 invalid. Step 1 of ``new`` takes 400 ms and not 200, has
    confidence .6 and not .9, and 60 of 300 are invalid and not 15. ``new`` comes five minutes later.
    """
    running = Server(tmp_path_factory.mktemp("compare") / "data", free_port())
    for variant, latency, confidence, every, at in (("old", 200, 0.9, 20, 0), ("new", 400, 0.6, 5, 300_000)):
        for number in range(300):
            run = SentRun(f"{variant} {number}", start_ms + at + 500 * number)
            call = run.call("call", 0, 100 + latency)
            label = {"claudescope__label__variant": variant, "claudescope__label__note": PLANTED}
            check = "claudescope__step__valid"
            run.step(
                0, "thinking", 0, 100, call, **label, **{check: number % 20 > 0}, claudescope__step__confidence=0.9
            )
            run.step(1, "text", 100, 100 + latency, call, **label, **{check: number % every > 0},
                     claudescope__step__confidence=confidence)  # fmt: skip
            run.send(running.url)
    yield running
    running.stop()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1400, "height": 900})
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    yield opened
    planted = opened.evaluate("window.planted")
    opened.close()
    assert faults == []
    assert planted is None


def visit(page: Any, server: Server, a: str, b: str) -> Any:
    """Opens a comparison; returns the locator of its rows."""
    page.goto(f"{server.url}/?view=compare&a={quote(a, safe='')}&b={quote(b, safe='')}")
    rows = page.locator("cs-compare tbody tr")
    rows.first.wait_for()
    return rows


def sides(page: Any) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """What the address says of A and B."""
    query = parse_qs(urlsplit(page.url).query)
    return parse_qs(query["a"][0]), parse_qs(query["b"][0])


def sides_are(page: Any, name: str, value: str) -> None:
    """Waits until the address' ``name`` holds ``value``."""
    page.wait_for_function(
        "([name, value]) => new URLSearchParams(location.search).get(name)?.includes(value)", arg=[name, value]
    )


def module(page: Any, server: Server, name: str, expression: str) -> Any:
    if not page.url.startswith(server.url):
        page.goto(server.url)
    return page.evaluate(f"async () => {{ const m = await import('/{name}.js'); return {expression}; }}")


# ------------------------------------------------------------------------------------------------ arithmetic


def test_statistics(page: Any, server: Server) -> None:
    def value(expression: str) -> Any:
        return module(page, server, "statistics", expression)

    for p, z in ((0.975, 1.959963984540054), (0.5, 0.0), (0.001, -3.090232306167813), (0.999999, 4.753424308822899)):
        assert value(f"m.normalQuantile({p})") == pytest.approx(z, abs=1e-7)
    # 5 % over both sides of 10 rows: .0025 each
    assert value("m.sureness(10)") == pytest.approx(2.807033768343811, abs=1e-7)
    # Wilson 1927 for 10 of 100, as in every table
    assert value("m.wilson(10, 100, 1.959964)") == pytest.approx([0.0552291, 0.1743657], abs=1e-6)
    assert value("m.wilson(0, 0, 2)") == [0, 1]
    assert value("m.wilson(0, 10, 1.959964)") == pytest.approx([0, 0.2775328], abs=1e-6)
    # Newcombe 1998, method 10, his example of 56 of 70 and 48 of 80: .0524 to .3339
    assert value("m.shareDifference(48, 80, 56, 70, 1.959964)") == pytest.approx([0.0524, 0.3339], abs=5e-5)
    assert value("m.shareDifference(0, 0, 1, 2, 2)") == [-1, 1]
    # 100 values: the median is between the ranks 50 - 9.8 (40th) and 50 + 9.8 + 1 (61st)
    # a band is at most 10 % wide, so the one up to 20 begins at 18.2 or later, or where the one before ends
    assert value("m.quantileInterval([[10, 10], [20, 80], [30, 10]], 0.5, 1.96)") == pytest.approx([20 / 1.1, 20])
    assert value("m.quantileInterval([[10, 45], [20, 10], [30, 45]], 0.5, 1.96)") == pytest.approx([10 / 1.1, 30])
    assert value("m.quantileInterval([[19, 10], [20, 80], [30, 10]], 0.5, 1.96)") == [19, 20]
    # p99 of 10 values: no value is surely above it
    assert value("m.quantileInterval([[10, 10]], 0.99, 1.96)[1] === Infinity")
    # each: variance of 50 at .4 and 50 at .6 is .01 * 100 / 99, and that of a band .05^2 / 12; of two means a hundredth
    reach = 1.96 * (2 * (0.01 * 100 / 99 + 0.05**2 / 12) / 100) ** 0.5
    halves = "[[0.4, 50], [0.6, 50]]"
    assert value(f"m.meanDifference({halves}, 0.5, {halves}, 0.56, 1.96)") == pytest.approx(
        [0.06 - reach, 0.06 + reach]
    )
    assert value("m.meanDifference([[1, 1]], 1, [[0, 9]], 0, 2).map(String)") == ["-Infinity", "Infinity"]


def test_histograms_on_one_scale(page: Any, server: Server) -> None:
    def value(expression: str) -> Any:
        return module(page, server, "comparison", expression)

    # upper edges belong to their bin: 10 is in the first of (0, 10], (10, 20]
    assert value("m.binned([[10, 1], [11, 2], [20, 1]], 0, 20, 2)") == [0.25, 0.75]
    assert value("m.binned([[-5, 1], [500, 3]], 0, 20, 2)") == [0.25, 0.75]
    # a decade a bin: 10 in (1, 10], 1000 in (100, 1000]
    assert value("m.binned([[10, 1], [1000, 1]], 1, 1000, 3, Math.log10)") == [0.5, 0, 0.5]


# ------------------------------------------------------------------------------------------------ the view


def test_two_labels_side_by_side(page: Any, server: Server) -> None:
    rows = visit(page, server, "range=1h&label=variant:old", "range=1h&label=variant:new")
    assert rows.locator("th").all_inner_texts() == ["All", "0", "1"]
    cells = rows.nth(2).locator("td")
    assert cells.nth(0).locator("span").all_inner_texts() == ["300", "300"]
    # invalid, of those checked: 15 of 300 and 60 of 300
    assert cells.nth(7).locator(".ab span").all_inner_texts() == ["5.0 %", "20 %"]
    assert cells.nth(7).locator(".worse").inner_text().startswith("▲+15.0 pt")
    assert cells.nth(5).locator(".ab span").all_inner_texts() == ["0.90", "0.60"]
    assert cells.nth(5).locator(".worse").inner_text().startswith("▼−0.30")
    for quantile in (1, 2):
        assert "worse" in cells.nth(quantile).locator(".change").get_attribute("class")
    # 300 steps do not bound their p99: it may be above the 300th, with a rank of up to 297 + 2.39 * 1.72 + 1
    assert cells.nth(3).locator(".change").get_attribute("class") == "change"
    # 200 and 400 ms, each at most 5 % off
    old, new = (float(text.split()[0]) for text in cells.nth(1).locator(".ab span").all_inner_texts())
    assert (old, new) == (pytest.approx(200, rel=0.05), pytest.approx(400, rel=0.05))
    assert cells.nth(4).locator("svg path.a, svg path.b").count() == 2
    # step 0 is alike in both
    alike = rows.nth(1).locator("td")
    assert alike.nth(7).locator(".ab span").all_inner_texts() == ["5.0 %", "5.0 %"]
    assert rows.nth(1).locator(".worse, .better").count() == 0
    title = alike.nth(7).get_attribute("title")
    assert title.startswith("No change that can be told from noise. Between −")
    assert "Newcombe" in title
    assert "Bonferroni" in title
    assert page.locator("cs-compare .side strong").all_inner_texts() == ["600 steps", "600 steps"]


def test_what_is_better_is_said_too_after_a_swap(page: Any, server: Server) -> None:
    rows = visit(page, server, "range=1h&label=variant:old", "range=1h&label=variant:new")
    rows.nth(2).locator(".worse").first.wait_for()
    page.get_by_role("button", name="Swap A and B").click()
    rows.nth(2).locator(".better").first.wait_for()
    a, b = sides(page)
    assert (a["label"], b["label"]) == (["variant:new"], ["variant:old"])
    assert rows.nth(2).locator(".worse").count() == 0
    page.go_back()
    rows.nth(2).locator(".worse").first.wait_for()


def test_two_times_side_by_side(page: Any, server: Server, start_ms: int) -> None:
    later = f"from={start_ms + 300_000}&to={start_ms + 600_000}&kind=text"
    rows = visit(page, server, later, later)
    page.get_by_role("button", name="A: the time before B").click()
    sides_are(page, "a", f"from={start_ms}")
    a, b = sides(page)
    assert a == {"from": [str(start_ms)], "to": [str(start_ms + 300_000)], "kind": ["text"]}
    assert b == {"from": [str(start_ms + 300_000)], "to": [str(start_ms + 600_000)], "kind": ["text"]}
    rows.nth(1).locator(".worse").first.wait_for()
    assert rows.locator("th").all_inner_texts() == ["All", "1"]
    assert rows.nth(1).locator("td").nth(0).locator("span").all_inner_texts() == ["300", "300"]


def test_a_comparison_starts_from_what_is_shown(page: Any, server: Server, start_ms: int) -> None:
    page.goto(f"{server.url}/?view=compare&from={start_ms + 300_000}&to={start_ms + 600_000}&kind=text")
    page.locator("cs-compare tbody tr").first.wait_for()
    a, b = sides(page)
    assert (a["from"], a["to"], a["kind"]) == ([str(start_ms)], [str(start_ms + 300_000)], ["text"])
    assert (b["from"], b["to"], b["kind"]) == ([str(start_ms + 300_000)], [str(start_ms + 600_000)], ["text"])


def test_sides_are_chosen_on_the_page(page: Any, server: Server) -> None:
    visit(page, server, "range=1h", "range=1h")
    page.get_by_label("Compare two values of a label").select_option("variant")
    sides_are(page, "b", "variant")
    a, b = sides(page)
    assert sorted(a["label"] + b["label"]) == ["variant:new", "variant:old"]
    page.get_by_label("Add a condition to A").select_option("kind:text")
    sides_are(page, "a", "kind=text")
    page.wait_for_function("() => document.querySelector('cs-compare .side strong').textContent === '300 steps'")
    page.get_by_role("button", name="Remove kind text from A").click()
    page.wait_for_function("() => document.querySelector('cs-compare .side strong').textContent === '600 steps'")
    page.get_by_label("Time of A").select_option("24h")
    sides_are(page, "a", "range=24h")
    assert "range" in sides(page)[0]
    page.get_by_role("button", name="Runs", exact=True).click()
    page.locator("cs-compare").wait_for(state="hidden")
    assert "view=" not in page.url


def test_an_empty_side_says_none(page: Any, server: Server) -> None:
    rows = visit(page, server, "range=1h&service=nobody", "range=1h&label=variant:new")
    cells = rows.nth(1).locator("td")
    assert cells.nth(0).locator("span").all_inner_texts() == ["0", "300"]
    assert cells.nth(1).locator(".ab span").first.inner_text() == "unknown"
    assert page.locator("cs-compare .change").count() == 0


def test_labels_are_text(page: Any, server: Server) -> None:
    visit(page, server, f"range=1h&label={quote(f'note:{PLANTED}')}", "range=1h")
    chip = page.locator("cs-compare .chip")
    chip.wait_for()
    assert PLANTED in chip.inner_text()
    assert page.locator("cs-compare img").count() == 0


def test_a_comparison_on_a_phone_in_the_dark(browser: Any, server: Server) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
    visit(page, server, "range=1h&label=variant:old", "range=1h&label=variant:new")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.close()
