"""The examples, run again and again in one process: what ``claudescope demo`` watches.

``python -m claudescope.cli.demo_apps [--once]``; it ends when its standard input closes.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

__all__ = ["EXAMPLES", "main"]

EXAMPLES: Final = Path(__file__).resolve().parent.parent / "examples"


def _turns(main: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
    return (main for _ in count())


def _tutor_turns(main: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
    # Every second time it is a slow reader: planted, for latencies of which the source is the consumer.
    return (partial(main, typing_delay=0.06 * (turn % 2)) for turn in count())


_ORDER: Final = {
    "support_agent": (_turns, 1.0),
    "maths_tutor": (_tutor_turns, 1.0),
    "batch_summariser": (_turns, 6.0),
    "handmade_steps": (_turns, 4.0),
}
"""How each example is called, and the seconds between two of its runs; the first one's steps are the first seen."""


def _repeat(turns: Iterator[Callable[[], Any]], pause: float, once: bool) -> None:
    for turn in turns:
        try:
            turn()
        except Exception:  # noqa: BLE001 - an example that fails is part of the show; it goes to the demo's log
            traceback.print_exc()
        if once:
            return
        time.sleep(pause)


def main(arguments: list[str]) -> None:
    """Starts one thread an example and waits for the end of standard input; then the last spans go out."""
    once = "--once" in arguments
    for name, (turns, pause) in _ORDER.items():
        example = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name=name)["main"]
        threading.Thread(target=_repeat, args=(turns(example), pause, once), name=name, daemon=True).start()
    while os.read(0, 4096):
        pass
    import claudescope

    claudescope.flush(5.0)
    # The examples' threads may be in the middle of a call; nothing of theirs is worth waiting for.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
