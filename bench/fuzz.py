"""Hostile OTLP against a real server process, for as long as one likes.

    python bench/fuzz.py [--minutes N] [--seed N]

What ``tests/live/test_fuzz_otlp.py`` does for some seconds: protobuf and JSON, damaged, deep, large, of 1970 and 2100,
over HTTP and gRPC, for all three signals, with random questions of the API between them. A fault is shrunk and shown
with its seed; the exit code is then 1.
"""

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "live"))

from hostile_otlp import Shot, large_shots, volleys
from hostile_target import Target
from hypothesis import HealthCheck, Phase, given, seed, settings

ROUND = 500
"""Examples of one round; the large requests come between two rounds."""


def one_round(target: Target, number: int) -> None:
    @seed(number)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(volleys())
    def fire(volley: tuple[Shot, list[str]]) -> None:
        target.volley(*volley)

    fire()
    for shot in random.Random(number).sample(large_shots(), 4):
        target.fire(shot)
        target.prove()
    for trace in list(target.taken)[-50:]:
        target.check_trace(trace)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="of the first round; random unless given")
    arguments = parser.parse_args()
    number = random.SystemRandom().randrange(2**31) if arguments.seed is None else arguments.seed
    until = time.monotonic() + arguments.minutes * 60
    with tempfile.TemporaryDirectory(prefix="claudescope-fuzz-") as name:
        target = Target(Path(name) / "data")
        print(f"seed {number}; the server has {target.rss():.0f} MB at the start", flush=True)
        try:
            while time.monotonic() < until:
                one_round(target, number)
                number += 1
                print(
                    f"  next seed {number}, {sum(target.counts.values()):,} requests, {target.rss():.0f} MB", flush=True
                )
                target.check_memory()
            peak = target.rss("VmHWM")
            target.stop()
        except BaseException as error:
            traceback.print_exc()
            print(f"failed in the round of seed {number}: {type(error).__name__}", file=sys.stderr)
            return 1
        finally:
            target.kill()
        print(f"  most memory at any time: {peak:.0f} MB")
        for what, times in sorted(target.counts.items()):
            print(f"  {what}: {times:,}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
