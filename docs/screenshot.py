"""Makes docs/page.png, the README's picture, from ``claudescope demo``.

    python docs/screenshot.py [--seconds N]

The demo runs so long; then the page is opened twice in a headless Chromium: with its heat strip and runs, and with one
run that went wrong and was mended. Both go into one picture.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

PICTURE = Path(__file__).with_name("page.png")
WIDTH, HEIGHT, RUN_HEIGHT = 1280, 640, 740
MAX_BYTES = 300_000


def start_demo() -> tuple[subprocess.Popen[str], str]:
    """The demo and its page's address."""
    command = [sys.executable, "-m", "claudescope", "demo", "--no-open"]
    demo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    first = demo.stdout.readline()
    if "http://" not in first:
        raise SystemExit("The demo did not start.")
    return demo, "http://" + first.partition("http://")[2].split()[0].rstrip("/")


def choose_run(url: str) -> str:
    """The latest whole run with an invalid step among its most: several calls, tools, and an end."""
    with urllib.request.urlopen(f"{url}/api/runs?limit=200", timeout=30) as answer:
        runs: list[dict[str, Any]] = json.load(answer)["items"]
    whole = [run for run in runs if run["status"] == "ok" and run["invalid"] and run["calls"] > 2]
    if not whole:
        raise SystemExit("The demo made no run with an invalid step: give it more --seconds.")
    return str(max(whole, key=lambda run: (run["steps"], run["started_ms"]))["run_id"])


def shoot(browser: Browser, address: str, ready: str, height: int) -> bytes:
    """A picture of a page once an element is there."""
    page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
    page.goto(address)
    page.locator(ready).first.wait_for(timeout=20_000)
    page.wait_for_timeout(2500)  # figures come once a second
    picture = page.screenshot()
    page.close()
    return picture


def join(browser: Browser, pictures: list[bytes]) -> bytes:
    """Pictures below one another."""
    page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    images = "".join(
        f'<img style="display:block;margin-top:{12 if at else 0}px" src="data:image/png;base64,'
        f'{base64.b64encode(picture).decode()}">'
        for at, picture in enumerate(pictures)
    )
    page.set_content(f'<body style="margin:0;background:#c9d1dc">{images}</body>')
    whole = page.screenshot(full_page=True)
    page.close()
    return whole


def main() -> int:
    """Makes the picture; 0, or an exit with the reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=150, help="how long the demo runs")
    parser.add_argument("--out", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("There is no chromium on PATH.")
    demo, url = start_demo()
    try:
        time.sleep(arguments.seconds)
        with sync_playwright() as driver:
            root = ["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else []
            browser = driver.chromium.launch(executable_path=chromium, args=root)
            above = shoot(browser, f"{url}/?range=5m", "cs-runs tbody tr", HEIGHT)
            below = shoot(browser, f"{url}/?run={choose_run(url)}", "cs-run [role=treegrid] [role=row]", RUN_HEIGHT)
            picture = join(browser, [above, below])
            browser.close()
    finally:
        demo.send_signal(signal.SIGINT)
        demo.wait(30)
    if len(picture) > MAX_BYTES:
        raise SystemExit(f"The picture has {len(picture):,} bytes, over {MAX_BYTES:,}.")
    arguments.out.write_bytes(picture)
    print(f"{arguments.out}: {len(picture):,} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
