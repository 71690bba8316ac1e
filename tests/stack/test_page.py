"""The page in a real browser: steps arrive live, are right, and nothing that an app sends becomes markup."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from e2e_kit import Server, free_port
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from claudescope import semconv

pytestmark = [pytest.mark.stack]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PLANTED = "<img src=x onerror='window.planted=1'><script>window.planted=1</script>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.fail("no chromium on PATH: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install 'claudescope[browser]'")
    with playwright.sync_playwright() as driver:
        yield driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(tmp_path / "data", free_port())
    yield running
    running.stop()


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    opened.goto(server.url)
    yield opened
    planted = opened.evaluate("window.planted")
    opened.close()
    assert faults == []
    assert planted is None


def send(server: Server, *steps: dict[str, Any], service: str = "shop") -> None:
    """Sends each step as a span of one call of one run."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    provider = TracerProvider(resource=Resource({semconv.SERVICE_NAME: service}), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(f"{server.url}/v1/traces")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("chat m"):
        for index, attributes in enumerate(steps):
            kind = str(attributes.get(semconv.STEP_KIND, "text"))
            span = tracer.start_span(
                f"{semconv.STEP_SPAN} {kind}",
                attributes={
                    semconv.STEP_INDEX: index,
                    semconv.STEP_KIND: kind,
                    semconv.CHAIN_ID: "a" * 32,
                    **attributes,
                },
            )
            span.end()
    provider.shutdown()


def test_an_empty_page_says_how_to_connect_an_app(page: Any) -> None:
    page.get_by_text("Waiting for the first step").wait_for()
    assert page.locator("#way-run").inner_text() == "claudescope run -- python app.py"
    assert page.locator("#columns").is_hidden()


def test_steps_arrive_live_with_their_verdicts(page: Any, server: Server) -> None:
    page.get_by_text("Waiting for the first step").wait_for()
    send(
        server,
        {semconv.STEP_CONFIDENCE: 0.45, semconv.STEP_LATENCY_SOURCE: "measured"},
        {
            semconv.STEP_KIND: "tool_use",
            semconv.TOOL_NAME: "search",
            semconv.STEP_VALID: False,
            semconv.STEP_VALIDITY_REASON: "tool_input.schema_mismatch@3-9",
            semconv.STEP_VALIDITY_CHECKS: ("tool_input",),
            semconv.STEP_LATENCY_SOURCE: "measured",
        },
        {semconv.STEP_VALID: True, semconv.STEP_LATENCY_SOURCE: "measured"},
    )
    row = page.locator("#runs tr").first
    row.wait_for()
    assert "shop" in row.inner_text()
    expect = pytest.importorskip("playwright.sync_api").expect
    expect(page.locator("#total-steps")).to_have_text("3")  # totals come apart from the steps, so this waits
    expect(page.locator("#total-invalid")).to_have_text("1")
    row.click()
    steps = page.locator("#steps tr")
    steps.nth(2).wait_for()
    texts = [steps.nth(index).inner_text() for index in range(3)]
    assert "0.45" in texts[0]
    assert "unknown" in texts[0]
    assert "tool_input.schema_mismatch" in texts[1]
    assert "invalid" in texts[1]
    assert "valid" in texts[2]
    assert "invalid" not in texts[2]
    painted = page.evaluate(
        """() => { const c = document.getElementById('strip');
                   const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                   const seen = new Set();
                   for (let i = 0; i < d.length; i += 4) seen.add(d[i] + ',' + d[i+1] + ',' + d[i+2]);
                   return seen.size; }"""
    )
    assert painted > 2  # background, empty cells, and at least one cell of data


def test_what_an_app_sends_is_text(page: Any, server: Server) -> None:
    send(
        server,
        {
            semconv.STEP_KIND: PLANTED,
            semconv.STEP_NAME: PLANTED,
            semconv.TOOL_NAME: PLANTED,
            semconv.REQUEST_MODEL: PLANTED,
            semconv.STEP_VALID: False,
            semconv.STEP_VALIDITY_REASON: f"{PLANTED}.x",
            semconv.LABEL_PREFIX + "tier": PLANTED,
        },
        service=PLANTED,
    )
    row = page.locator("#runs tr").first
    row.wait_for()
    row.click()
    page.locator("#steps tr").first.wait_for()
    assert PLANTED in page.locator("#steps").inner_text()
    assert page.locator("main img[src=x], main script").count() == 0


def test_a_page_of_a_phone_and_of_the_dark(browser: Any, server: Server) -> None:
    send(server, {semconv.STEP_VALID: True})
    page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
    page.goto(server.url)
    page.locator("#runs tr").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    red, green, blue = page.evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    )
    assert max(red, green, blue) < 64
    page.close()
