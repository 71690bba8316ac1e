"""Alerts about the stack: the shipped files under promtool and amtool, and what the README says of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from stack_native import COLLECTOR, ROOT
from test_stack_alerts_live import ENDED, LABELS

pytestmark = pytest.mark.stack

RULE_TESTS = sorted(Path(COLLECTOR / "rules" / "tests").glob("*.yml"))
RULES = sorted(Path(COLLECTOR / "rules").glob("*.yml"))


def _run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("file", RULE_TESTS, ids=lambda file: file.stem)
def test_rules_by_promtool(programs, file) -> None:
    print(_run(programs / "promtool", "test", "rules", file))


def test_every_rule_file_and_configuration_is_right(programs) -> None:
    _run(programs / "promtool", "check", "rules", "--lint=all", "--lint-fatal", *RULES)
    _run(programs / "promtool", "check", "config", "--syntax-only", COLLECTOR / "prometheus.yml")
    _run(programs / "amtool", "check-config", COLLECTOR / "alertmanager.yml")


def test_the_readme_says_how_each_alert_is_proved() -> None:
    """Its table has every alert with its severity, and those that ``test_stack_alerts_live`` has sent are live."""
    table = (COLLECTOR / "README.md").read_text("utf-8")
    rows = {
        row[0]: row[1:] for row in re.findall(r"^\| `(\w+)` \| (page|ticket) \| .+ \| (.+) \|$", table, re.MULTILINE)
    }
    groups = yaml.safe_load((COLLECTOR / "rules" / "stack.yml").read_text("utf-8"))["groups"]
    alerts = {
        rule["alert"]: rule["labels"]["severity"] for group in groups for rule in group["rules"] if "alert" in rule
    }
    assert {name: severity for name, (severity, _) in rows.items()} == alerts
    assert {name for name, (_, proof) in rows.items() if "live" in proof} == {"CollectorDown", *LABELS}
    assert {name for name, (_, proof) in rows.items() if "with its end" in proof} == {"CollectorDown", *ENDED}
    tests = (COLLECTOR / "rules" / "tests" / "stack_test.yml").read_text("utf-8")
    assert {name for name, (_, proof) in rows.items() if "`rules/tests/`" in proof} == {
        name for name in alerts if re.search(rf"\b{name}\b", tests)
    }


def uncommented(text: str) -> str:
    """Every example in alertmanager.yml, as a person would take the "#" off."""
    lines = text.splitlines()
    return "\n".join(line.replace("# ", "", 1) if line.startswith("    # ") else line for line in lines)


def test_the_examples_of_receivers_are_right(programs, tmp_path) -> None:
    file = tmp_path / "alertmanager.yml"
    text = uncommented((COLLECTOR / "alertmanager.yml").read_text("utf-8"))
    for kind in ("webhook", "slack", "email", "pagerduty"):
        assert f"\n    {kind}_configs:" in text
    file.write_text(text, "utf-8")
    assert "SUCCESS" in _run(programs / "amtool", "check-config", file)
