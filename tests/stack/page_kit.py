"""What the tests of the page's main view share: runs in a line, and what the page shows, read from it."""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sent_runs import SentRun

NAMES = "#runs .run-name button"


def now() -> int:
    return int(time.time() * 1000)


def slot(ago_ms: int) -> int:
    """The middle of a ten-second bucket, about so long ago."""
    at = now() - ago_ms
    return at - at % 10_000 + 5_000


def simple(name: str, end_ms: int, *steps: dict[str, Any], service: str = "shop", **call: Any) -> SentRun:
    """A run of one call whose steps all end at ``end_ms``; a step's ``ms`` is its latency."""
    run = SentRun(name, end_ms - 10_000, service)
    first = run.call("call", 0, 10_000, **call)
    for index, step in enumerate(steps):
        given = {**step}
        latency = given.pop("ms", 100)
        run.step(given.pop("index", index), given.pop("kind", "text"), 10_000 - latency, 10_000, first, **given)
    return run


def state(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def rows(page: Any) -> Any:
    return page.locator("#runs tr")


def names(page: Any) -> list[str]:
    """Services of the rows, from the top."""
    return page.locator(NAMES).all_inner_texts()


def facet(page: Any, group: str, value: str) -> Any:
    """The row of a value in a list of the filters."""
    lists = page.locator("cs-filters .group").filter(has=page.get_by_role("heading", name=group, exact=True))
    return lists.locator("li").filter(has_text=re.compile(rf"^{re.escape(value)}\s*[\d,]*$"))


def chips(page: Any) -> list[str]:
    return [re.sub(r"\s+", " ", text).strip() for text in page.locator(".chip").all_inner_texts()]


def strip_at(page: Any, end_ms: int, row: int) -> tuple[float, float]:
    """Where in the window a cell is, from the strip's own geometry."""
    box = page.locator("#strip").bounding_box()
    spot = page.evaluate(
        """([at, row]) => { const { strip } = document.querySelector("cs-heat");
            const box = strip.box(at - at % strip.bucket, at - at % strip.bucket + strip.bucket, row);
            return [box.x + box.width / 2, box.y + box.height / 2]; }""",
        [end_ms, row],
    )
    return box["x"] + spot[0], box["y"] + spot[1]


def painted(page: Any, end_ms: int, row: int) -> list[int]:
    """The colour of a cell's middle."""
    return page.evaluate(
        """([at, row]) => { const { strip, canvas } = document.querySelector("cs-heat");
            const box = strip.box(at - at % strip.bucket, at - at % strip.bucket + strip.bucket, row);
            const ratio = devicePixelRatio;
            const x = Math.floor((box.x + box.width / 2 - 1) * ratio), y = Math.floor((box.y + box.height / 2) * ratio);
            return [...canvas.getContext("2d").getImageData(x, y, 1, 1).data].slice(0, 3); }""",
        [end_ms, row],
    )


def figures(page: Any) -> dict[str, str]:
    """What the tooltip of the strip says."""
    lines = page.locator(".heat-tip div").all()
    return {line.locator("span").inner_text(): line.locator("b").inner_text() for line in lines}


def until(page: Any, condition: str, argument: Any = None) -> None:
    """Waits until a function of the page says so. ``wait_for_function`` is stopped by the Content-Security-Policy."""
    end = time.monotonic() + 15
    while not page.evaluate(condition, argument):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


def two_frames(page: Any) -> None:
    """Waits until what was asked for is painted."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def send_two_services(server: Any) -> None:
    end = slot(60_000)
    simple(
        "quick",
        end,
        {"ms": 50, "claudescope__step__valid": True, "claudescope__step__confidence": 0.95},
        {"ms": 60, "kind": "tool_use", "gen_ai__tool__name": "search", "claudescope__label__tier": "gold"},
        service="quick",
    ).send(server.url)
    simple(
        "slow",
        end,
        {
            "ms": 4_000,
            "claudescope__step__valid": False,
            "claudescope__step__validity__reason": "tool_input.schema_mismatch@1-2",
            "claudescope__step__confidence": 0.42,
            "claudescope__label__tier": "free",
        },
        service="slow",
        gen_ai__request__model="claude-haiku-5-5",
    ).send(server.url)
