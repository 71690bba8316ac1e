"""The apps in `examples/` run in a loop through the real client, against a stand-in of the API on this machine.

Some answers are wrong on purpose: tool inputs that do not fit, answers that are cut off, a tool that fails, an
overloaded API, low confidence, a slow reader. Objectives of the examples burn for that on the page. The data go to a
temporary folder, which is removed at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import webbrowser
from pathlib import Path

from ..errors import UsageError
from ..setting_values import number
from ..settings import Settings
from .companion import Companion
from .launch import armed_environment
from .server import ServerProcess, base_url, choose_ports
from .summary import read_summary

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope demo --seconds 20 --no-open"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("--seconds", metavar="N", help="End after N seconds. Default: at Ctrl-C.")
    parser.add_argument("--port", metavar="PORT", help="Port of the page. Default: 4318, or a free one.")
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        help="Open the page in a browser. Default: when standard error is a terminal.",
    )
    parser.add_argument(
        "--no-server",
        action="store_true",
        help="Start no server and no page: the steps go to where OTEL_EXPORTER_OTLP_ENDPOINT says.",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="Ask the real API, with ANTHROPIC_API_KEY: each example once, some 25 short calls, a few cents.",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Runs the demo; 0, or 1 when the example apps ended by themselves."""
    try:
        seconds = None if arguments.seconds is None else number(0)(arguments.seconds)
    except ValueError as error:
        raise UsageError(f"--seconds is {arguments.seconds!r}.", f"It takes {error}.") from None
    if arguments.live and not os.environ.get("ANTHROPIC_API_KEY"):
        raise UsageError("--live asks the real API and ANTHROPIC_API_KEY is not set.", "Set it, or leave --live out.")
    if arguments.no_server:
        _check_endpoint(os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", ""))
    objectives = Path(__file__).parents[1] / "examples" / "slo.yml"
    settings = Settings.load({"port": arguments.port, "host": "127.0.0.1", "token": ""}).replace(
        slo=(objectives,), slo_webhook="", slo_command=""
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what we started is ended then, too
    with tempfile.TemporaryDirectory(prefix="claudescope-demo-") as folder, contextlib.ExitStack() as stack:
        return _demo(settings, arguments, seconds, Path(folder), stack)


def _check_endpoint(endpoint: str) -> None:
    """Refuses what would send nothing to anybody, without a word until the exporter gives up."""
    if not endpoint:
        raise UsageError(
            "--no-server sends the steps elsewhere, and OTEL_EXPORTER_OTLP_ENDPOINT is not set.",
            "Set it to the address of a collector, or leave --no-server out.",
        )
    if os.environ.get("CS_RECEIVER") == "otlp/tls" and not endpoint.startswith("https://"):
        raise UsageError(
            f"The stack's collector takes TLS only (CS_RECEIVER=otlp/tls), and the demo sends to {endpoint}.",
            "Look at the demo without CS_RECEIVER, or set OTEL_EXPORTER_OTLP_ENDPOINT to an https:// address and"
            " OTEL_EXPORTER_OTLP_CERTIFICATE to the authority of its certificate.",
        )


def _demo(
    settings: Settings, arguments: argparse.Namespace, seconds: float | None, folder: Path, stack: contextlib.ExitStack
) -> int:
    ours = ("CLAUDESCOPE_",) if arguments.no_server else ("OTEL_", "CLAUDESCOPE_")
    plain = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    endpoint = server = None
    if not arguments.no_server:
        port, _ = choose_ports(settings)
        endpoint = base_url(settings.host, port)
        # The server and the apps load side by side; what the apps send before the server answers is sent again.
        server = ServerProcess(settings, (port, 0), folder / "data", plain)
        stack.callback(server.stop)
    extra = {"OTEL_SERVICE_NAME": "claudescope-demo", "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1"}
    if not arguments.live:
        extra |= _stand_in(stack)
    # Without a page of ours, what the apps complain of is all that there is to see; what they print is not.
    log = stack.enter_context((folder / "apps.log").open("w+", encoding="utf-8")) if server is not None else None
    output = subprocess.DEVNULL if log is None else log
    once = ["--once"] if arguments.live else []
    apps = Companion("claudescope.cli.demo_apps", once, armed_environment(plain, endpoint, extra=extra), output)
    stack.callback(apps.stop)
    url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] if server is None else server.wait_ready()
    taken = server is not None and settings.port not in (0, port)
    _announce(url, settings.port if taken else None, arguments.live)
    if server is not None and (sys.stderr.isatty() if arguments.open is None else arguments.open):
        webbrowser.open(url)
    died = _wait(apps, seconds)
    apps.stop()
    if endpoint is not None:
        print(read_summary(endpoint), flush=True)
    if died:
        said: list[str] = []
        if log is not None:
            log.seek(0)
            said = log.readlines()[-20:]
        print("claudescope: the example apps ended:", *said, sep="\n", file=sys.stderr)
    return int(died)


def _stand_in(stack: contextlib.ExitStack) -> dict[str, str]:
    """Starts the stand-in; what makes the apps' clients ask it instead of the real API."""
    from ..testing.standin import StandIn
    from .demo_script import PACE, DemoScript

    standin = stack.enter_context(StandIn(DemoScript(), seed=1, pace=PACE))
    return {"ANTHROPIC_BASE_URL": standin.url, "ANTHROPIC_API_KEY": "demo", "ANTHROPIC_AUTH_TOKEN": ""}


def _announce(url: str, taken: int | None, live: bool) -> None:
    print(f"claudescope: {url}" + (f" (something else has port {taken})" if taken else ""), flush=True)
    if live:
        print("The examples ask the real API once each: some 25 short calls, a few cents.", flush=True)
    else:
        print("The examples ask a stand-in of the API on this machine; some answers are wrong on purpose.", flush=True)


def _wait(apps: Companion, seconds: float | None) -> bool:
    """Until the time is up or Ctrl-C; True when the apps ended by themselves."""
    until = None if seconds is None else time.monotonic() + seconds
    with contextlib.suppress(KeyboardInterrupt):
        while until is None or time.monotonic() < until:
            if apps.process.poll() is not None:
                return True
            time.sleep(0.2)
    return False
