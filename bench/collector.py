"""What the stack's programs cost under a steady load: CPU a span and resident memory, with tail sampling on.

    make bench-collector ARGS="--rate 1000 --seconds 60"

The load is the stack tests' own (`tests/stack/stack_load.py`), in a process of its own; the first ten seconds are not
counted. Sender and programs share the machine, so another load shows in the figures: look at the load average printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STACK = Path(__file__).resolve().parents[1] / "tests" / "stack"
sys.path.insert(0, str(STACK))

from stack_native import Stack  # noqa: E402

WARM_UP = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=1000, help="Spans a second. Default: 1000.")
    parser.add_argument("--seconds", type=float, default=60, help="How long is measured. Default: 60.")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="CS_X=VALUE",
        help="A variable; CS_SAMPLE_PERCENT is 10.",
    )
    arguments = parser.parse_args()
    variables = {"CS_SAMPLE_PERCENT": "10", **dict(pair.split("=", 1) for pair in arguments.set)}
    with tempfile.TemporaryDirectory() as folder, Stack(Path(folder), variables) as stack:
        load = subprocess.Popen(
            [
                *(sys.executable, str(STACK / "stack_load.py"), str(Path(folder) / "load")),
                *(str(arguments.rate), str(arguments.seconds + WARM_UP + 5)),
            ],
            env={**os.environ, **stack.app_environment()},
        )
        time.sleep(WARM_UP)
        began, before = time.monotonic(), {name: program.cpu_seconds() for name, program in stack.programs.items()}
        taken = stack.telemetry_value("otelcol_receiver_accepted_spans")
        most = dict.fromkeys(stack.programs, 0)
        while time.monotonic() < began + arguments.seconds:
            time.sleep(1)
            most = {name: max(most[name], program.resident_kib()) for name, program in stack.programs.items()}
        took = time.monotonic() - began
        spans = stack.telemetry_value("otelcol_receiver_accepted_spans") - taken
        used = {name: program.cpu_seconds() - before[name] for name, program in stack.programs.items()}
        load.wait()
    print(f"{spans / took:.0f} spans/s for {took:.0f} s, {variables}")
    print(f"load average {os.getloadavg()[0]:.1f}")
    for name, seconds in used.items():
        print(f"{name:<13} {1e6 * seconds / spans:6.1f} us CPU a span   {most[name] / 1024:6.0f} MiB resident at most")


if __name__ == "__main__":
    main()
