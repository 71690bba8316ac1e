"""It runs in the foreground.

It takes OTLP over HTTP and gRPC from any OpenTelemetry app, keeps the spans in one SQLite file and shows them on a
page. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading

from ..settings import Settings
from .flags import add_server_flags, add_slo_flags, add_store_flags, load_settings
from .locks import Users

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope up --port 4318 --data ./traces"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    add_server_flags(parser)
    add_store_flags(parser)
    add_slo_flags(parser)
    parser.add_argument(
        "--open", action=argparse.BooleanOptionalAction, default=False, help="Open the page in a browser. Default: no."
    )
    parser.add_argument("--supervised", action="store_true", help=argparse.SUPPRESS)


def execute(arguments: argparse.Namespace) -> int:
    """Serves until it is told to end. Raises UsageError for a taken port and the like."""
    settings = load_settings(arguments)
    from ..live.server import serve

    if arguments.supervised:
        threading.Thread(target=_end_with_users, args=(settings,), name="claudescope-parent", daemon=True).start()
    else:
        users = Users(settings)
        users.join()  # waits for a server that is ending
        users.leave()
    return serve(settings, open_browser=arguments.open, on_ready=_announce_bare if arguments.supervised else _announce)


def _announce(url: str) -> None:
    print(f"claudescope: {url} (Ctrl-C ends it)", flush=True)


def _announce_bare(url: str) -> None:
    sys.stdout.write(f"{url}\n")
    sys.stdout.flush()


def _end_with_users(settings: Settings) -> None:
    # The parent holds the other end of our standard input: it closes when the parent ends, however it ends.
    while os.read(0, 4096):
        pass
    users = Users(settings)
    if not users.shut_out(wait=False):
        # Others use us still. Who reads what the parent wrote is not to wait for them.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None: it was closed, and the number may be a file's now
            os.dup2(nowhere, stream.fileno())
        users.shut_out(wait=True)
    os.kill(os.getpid(), signal.SIGTERM)
