"""The token and its cookie in a real browser: where other tests can only read headers."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from claudescope.live.server import LiveServer
from claudescope.settings import Settings

pytestmark = [pytest.mark.stack]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[str]:
    server = LiveServer(Settings({"port": 0, "grpc_port": 0, "data": tmp_path / "data", "token": "s3cret"}))
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(lambda url: ready.set(),))
    thread.start()
    assert ready.wait(20)
    yield server.url
    server.stop()
    thread.join(20)


@pytest.fixture
def other_site() -> Iterator[str]:
    """A page of another site (localhost is not 127.0.0.1) with a link to the address that its query is."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(f"<a href='{self.path[2:]}'>a view</a>".encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_a_link_on_another_sites_page_opens_the_view(browser: Any, live: str, other_site: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(15_000)

    def follow(link: str) -> None:
        page.goto(f"{other_site}?{live}{link}")
        page.click("a")

    follow("/?range=1h")  # nobody is known yet
    page.get_by_text("token_needed").wait_for()
    follow("/?token=s3cret&range=6h")
    page.locator("cs-filters").wait_for(state="attached")
    assert page.url.startswith(f"{live}/?range=6h")
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("fetch('/api/steps').then(answer => answer.status)") == 200
    follow("/?range=7d")
    page.locator("cs-filters").wait_for(state="attached")
    assert page.url.startswith(f"{live}/?range=7d")
    page.goto(f"{other_site}?x")
    assert page.evaluate(f"fetch('{live}/api/steps').then(answer => answer.status, () => 'refused')") == "refused"
    context.close()
