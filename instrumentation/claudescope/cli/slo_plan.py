"""For each tier at each traffic: the share of failures that fires it at the least, how long it takes until it does, and
how often it fires while exactly the target is kept.

A time is what is expected, and behind it the 95 % interval of the median, by simulation; `never`: that share fires it
by luck only. Before the failures begin, nothing fails, unless --before says so. `needs` are the bad events of which one
of the windows must hold so many to be no chance, at the events that are expected there.

Months and delays are simulated on the rules themselves, with Prometheus's arithmetic; the same --seed gives the same
figures.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .progress import Progress

if TYPE_CHECKING:
    from ..slo.plan.plan import ObjectivePlan

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope slo plan slo.yml --rate 36/h --rate 10/s"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.add_argument("files", metavar="FILE", type=Path, nargs="+", help="Specifications.")
    parser.add_argument(
        "--rate",
        action="append",
        default=[],
        metavar="N/UNIT",
        help="Events: 10/s, 1/min, 36/h, 5/d. Again for more. Default: 1/h, 10/h, 1/min and 1/s.",
    )
    parser.add_argument(
        "--failures",
        action="append",
        default=[],
        metavar="SHARE",
        help="Another share of failures to be told of: 20%% or .2. Again for more.",
    )
    parser.add_argument("--before", default="0", metavar="SHARE", help="What fails before. Default: 0.")
    parser.add_argument(
        "--seeds", type=int, default=4, metavar="N", help="Months to simulate, each with a seed. Default: 4; 0: none."
    )
    parser.add_argument(
        "--samples", type=int, default=7, metavar="N", help="Delays to simulate for each time. Default: 7; 0: none."
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="Where chance begins. Default: 0.")
    parser.add_argument("--json", action="store_true", help="Print JSON: shares from 0 to 1, times in seconds.")


def execute(arguments: argparse.Namespace) -> int:
    """Prints the plans."""
    from ..slo.plan.plan import plan
    from ..slo.plan.table import write
    from ..slo.plan.traffic import DEFAULT_TRAFFIC, parse_traffic
    from ..slo.spec.load import load

    for flag in ("seeds", "samples"):
        if not 0 <= getattr(arguments, flag) <= 100_000:
            raise UsageError(f"--{flag} is {getattr(arguments, flag)}.", "It is a number from 0 to 100000.")
    traffic = [parse_traffic(text) for text in arguments.rate] or DEFAULT_TRAFFIC
    shares = [_share(text, "--failures") for text in arguments.failures]
    before = _share(arguments.before, "--before")
    progress = Progress()
    plans: list[ObjectivePlan] = []
    for objective in load(arguments.files):
        planned = plan(
            objective,
            traffic,
            months=arguments.seeds,
            samples=arguments.samples,
            seed=arguments.seed,
            shares=shares,
            before=before,
            tell=progress.tell,
        )
        plans.append(planned)
        if not arguments.json:
            progress.clear()
            print(("\n" if len(plans) > 1 else "") + write(planned), end="", flush=True)
    progress.clear()
    if arguments.json:
        print(json.dumps([_finite(planned.json()) for planned in plans], indent=2))
    return 0


def _share(text: str, flag: str) -> float:
    try:
        share = float(text.rstrip("% ")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"{flag} is {text!r}.", "It is a share of all events: 20% or .2.")
    return share


def _finite(value: Any) -> Any:
    """JSON has no infinity: a time without an end is null."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
