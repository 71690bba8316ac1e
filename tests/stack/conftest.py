"""The stack, native and real; a browser, a server and a page of it that must not fail."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stack_native import BINARIES, Stack

from claudescope.testing.standin import StandIn

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from e2e_kit import Server, free_port

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the built programs."""
    if not (BINARIES / "otelcol").exists():
        pytest.fail("the programs of the stack are not built: type scripts/build-stack", pytrace=False)
    return BINARIES


@pytest.fixture(scope="module")
def new_stack(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Stack]]:
    """Starts a stack; it ends with the module, whatever happens."""
    with contextlib.ExitStack() as ending:

        def start(**options: object) -> Stack:
            stack = Stack(tmp_path_factory.mktemp("stack"), **options)  # type: ignore[arg-type]
            ending.callback(stack.stop)
            return stack.start()

        yield start


@pytest.fixture(scope="module")
def stack(new_stack: Callable[..., Stack]) -> Stack:
    """One stack with nothing changed but addresses and folders, shared by a module's tests."""
    return new_stack()


@pytest.fixture
def standin() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running


@pytest.fixture(scope="module")  # only one driver at a time: other modules have their own
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


class Pages:
    """Opens pages, and notes what goes wrong in any."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.faults: list[str] = []
        self.expected = ""
        """What an error of the console may say."""

    def open(self, url: str, script: str = "", **how: Any) -> Any:
        context = self._browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **how})
        self._contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._said)
        if script:
            page.add_init_script(script)
        page.goto(url)
        return page

    def _said(self, message: Any) -> None:
        if message.type == "error" and not (self.expected and self.expected in message.text):
            self.faults.append(message.text)

    def close(self) -> None:
        planted = [page.evaluate("window.planted") for context in self._contexts for page in context.pages]
        for context in self._contexts:
            context.close()
        assert self.faults == []
        assert [one for one in planted if one is not None] == []


@pytest.fixture
def pages(browser: Any, server: Server) -> Iterator[Pages]:
    opened = Pages(browser)  # closed before the server is
    yield opened
    opened.close()
