"""How long 200 objectives take to become rules, from YAML text to text, and whether promtool accepts them.

    python bench/slo_compile.py [--objectives 200] [--promtool .cache/stack/bin/promtool]

The bar is 2 s for 200. Beside it stands what PyYAML alone needs to read the result, so that machines compare.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import yaml

from claudescope.slo.rules.compiler import compile as compiled
from claudescope.slo.rules.rendering import text_of
from claudescope.slo.spec.load import load

KINDS = (
    "indicator: {step_validity: {}}",
    "indicator: {step_confidence: {below: 0.7}}",
    "indicator: {step_latency: {over: 800ms}}\n    load: [{above: 5000, over: 1s}]",
    "indicator: {errors: {}}\n    group_by: [model]",
    "indicator: {tool_success: {}}\n    group_by: [tool]\n    period: month",
    (
        "sli:\n      events:\n        error_query: sum(rate(bad_total[{{.window}}]))\n"
        "        total_query: sum(rate(all_total[{{.window}}]))"
    ),
)


def specification(count: int) -> str:
    """``count`` objectives of every kind, with targets from 90 to 99.9 %."""
    lines = ["version: prometheus/v1", "service: app", "slos:"]
    for number in range(count):
        lines += [f"  - name: objective-{number}", f"    objective: {(90, 95, 99, 99.5, 99.9)[number % 5]}"]
        lines += [f"    {KINDS[number % len(KINDS)]}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objectives", type=int, default=200)
    parser.add_argument("--promtool", type=Path, default=Path(".cache/stack/bin/promtool"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "slos.yml").write_text(specification(arguments.objectives), "utf-8")
        began = time.perf_counter()
        objectives = load([folder / "slos.yml"])
        read = time.perf_counter()
        text = text_of(compiled(objectives))
        made = time.perf_counter()
        rules = folder / "rules.yml"
        rules.write_text(text, "utf-8")
        parsed = time.perf_counter()
        yaml.load(text, yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader)
        beside = time.perf_counter() - parsed
        print(f"{len(objectives)} objectives: read {read - began:.2f} s, compiled {made - read:.2f} s,", end=" ")
        print(f"together {made - began:.2f} s (bar 2 s); {len(text) / 1e6:.1f} MB of rules")
        print(f"PyYAML reads them in {beside:.2f} s")
        if arguments.promtool.exists():
            command = [arguments.promtool, "check", "rules", "--lint=all", "--lint-fatal", rules]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            print(f"promtool: {'accepts all' if done.returncode == 0 else 'REFUSES'}: {done.stdout.strip()[-200:]}")


if __name__ == "__main__":
    main()
