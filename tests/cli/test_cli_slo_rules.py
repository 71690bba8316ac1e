"""`slo rules` and `slo test` as a person types them; promtool is played by a script here, and real elsewhere."""

from __future__ import annotations

import os
import stat

import pytest
import yaml

SPEC = """\
version: prometheus/v1
service: app
slos:
  - name: validity
    objective: 99
    indicator: {step_validity: {}}
  - name: native
    objective: 99
    indicator: {step_latency: {over: 1.2s, native: true}}
"""
OTHER = SPEC.replace("service: app", "service: other")
NATIVE = "  - name: native\n    objective: 99\n    indicator: {step_latency: {over: 1.2s, native: true}}\n"


@pytest.fixture
def specs(tmp_path):
    (tmp_path / "a.yml").write_text(SPEC, "utf-8")
    (tmp_path / "b.yml").write_text(OTHER, "utf-8")
    return tmp_path


@pytest.fixture
def promtool(tmp_path):
    """A program that is content unless what it tests is of ``other``."""
    file = tmp_path / "bin" / "promtool"
    file.parent.mkdir()
    file.write_text(
        '#!/bin/sh\nfor last; do :; done\ncase "$1 $last" in\n'
        "'test '*/other-*) echo '  FAILED:'; echo '    alertname: X'; exit 1 ;;\nesac\necho '  SUCCESS'\n",
        "utf-8",
    )
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_printed(claudescope, specs) -> None:
    done = claudescope(
        "slo", "rules", "a.yml", "--explainer-url", "https://e/", environment={"CS_GRAFANA_URL": "https://g"}
    )
    assert done.returncode == 0, done.stderr
    groups = yaml.safe_load(done.stdout)["groups"]
    assert [group["name"] for group in groups][::2] == ["claudescope-slo-app-validity", "claudescope-slo-app-native"]
    told = next(rule for rule in groups[0]["rules"] if "alert" in rule)["annotations"]
    assert told["explanation"].startswith("https://e/explain?")
    assert told["dashboard"].startswith("https://g/d/")


@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/full", "pipe"])
def test_a_device_is_neither_read_nor_replaced(claudescope, specs, output) -> None:
    os.mkfifo(specs / "pipe")
    done = claudescope("slo", "rules", "a.yml", "-o", output)
    assert done.returncode == 2
    assert done.stderr == f"claudescope: {output} is no file. Name one; without -o the rules are printed.\n"
    assert (specs / "pipe").is_fifo()


def test_printed_as_utf_8_in_any_locale(claudescope, specs) -> None:
    (specs / "a.yml").write_text(SPEC.replace("step_validity: {}", "step_validity: {model: 'é'}"), "utf-8")
    c_locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = claudescope("slo", "rules", "a.yml", environment=c_locale)
    assert done.returncode == 0, done.stderr
    assert 'gen_ai_request_model="é"' in done.stdout


def test_a_folder_has_a_file_for_each_and_check_says_what_is_not_current(claudescope, specs) -> None:
    written = claudescope("slo", "rules", "a.yml", "b.yml", "-o", "rules/")
    assert (written.returncode, written.stdout) == (0, "written  rules/slo-a.yml\nwritten  rules/slo-b.yml\n")
    assert sorted(path.name for path in (specs / "rules").iterdir()) == ["slo-a.yml", "slo-b.yml"]
    again = claudescope("slo", "rules", "a.yml", "b.yml", "-o", "rules")
    assert again.stdout == "current  rules/slo-a.yml\ncurrent  rules/slo-b.yml\n"
    before = (specs / "rules" / "slo-a.yml").read_bytes()
    (specs / "a.yml").write_text(SPEC + "# changed\n", "utf-8")
    checked = claudescope("slo", "rules", "a.yml", "b.yml", "-o", "rules", "--check")
    assert (checked.returncode, checked.stdout.splitlines()[0]) == (0, "not current  rules/slo-a.yml")
    assert (specs / "rules" / "slo-a.yml").read_bytes() == before
    assert claudescope("slo", "rules", "a.yml", "-o", "rules", "--check", "--fail").returncode == 1
    assert claudescope("slo", "rules", "b.yml", "-o", "rules", "--check", "--fail").returncode == 0
    assert claudescope("slo", "rules", "b.yml", "-o", "none/x.yml", "--check", "--fail").returncode == 1


def test_one_file_of_all_and_other_forms(claudescope, specs) -> None:
    done = claudescope("slo", "rules", "a.yml", "b.yml", "-o", "all.yml", "--format", "kubernetes", "--name", "My SLOs")
    assert done.returncode == 0, done.stderr
    made = yaml.safe_load((specs / "all.yml").read_text("utf-8"))
    assert made["metadata"]["name"] == "my-slos"
    assert len(made["spec"]["groups"]) == 8
    mimir = claudescope("slo", "rules", "a.yml", "--format", "mimir", "--recording-only", "--name", "My SLOs")
    found = yaml.safe_load(mimir.stdout)
    assert found["namespace"] == "My SLOs"
    assert not [rule for group in found["groups"] for rule in group["rules"] if "alert" in rule]


def test_what_an_older_prometheus_lacks(claudescope, specs) -> None:
    done = claudescope("slo", "rules", "a.yml", "--prometheus", "2.42")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a.yml:" in done.stderr
    assert "native histograms (`native: true`) are not in Prometheus 2.42" in done.stderr
    (specs / "a.yml").write_text(SPEC.replace(NATIVE, ""), "utf-8")
    done = claudescope("slo", "rules", "a.yml", "--prometheus", "2.42")
    assert "# For Prometheus 2.42." in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.yml", "--check"), "--check compares with what was written."),
        (("a.yml", "sub/a.yml", "-o", "rules/"), "Two of the files would become one"),
        (("a.yml", "-o", "a.yml/x.yml"), "a.yml/x.yml cannot be"),
    ],
)
def test_wrong_use(claudescope, specs, arguments, said) -> None:
    (specs / "sub").mkdir()
    (specs / "sub" / "a.yml").write_text(OTHER, "utf-8")
    done = claudescope("slo", "rules", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(specs.glob("**/*.part"))


def test_tests_pass_and_fail_in_plain_words(claudescope, specs, promtool) -> None:
    passed = claudescope("slo", "test", "a.yml", "--promtool", str(promtool), "--fail")
    assert passed.returncode == 0, passed.stderr
    assert passed.stdout == (
        "passed  app-validity\n"
        "passed  app-native  (its own queries only parsed; all else with stand-in counters)\n"
        "2 objectives, all passed.\n"
    )
    failed = claudescope("slo", "test", "a.yml", "b.yml", "--promtool", str(promtool), "-o", "kept")
    assert failed.returncode == 0
    assert "FAILED  other-validity\n      FAILED:\n        alertname: X\n" in failed.stdout
    assert failed.stdout.endswith("4 objectives, 2 failed.\n")
    assert {"slo-rules.yml", "app-validity.rules.yml", "app-validity.test.yml"} <= {
        path.name for path in (specs / "kept").iterdir()
    }
    assert claudescope("slo", "test", "b.yml", "--promtool", str(promtool), "--fail").returncode == 1


def test_rules_that_promtool_refuses(claudescope, specs, promtool) -> None:
    promtool.write_text('#!/bin/sh\n[ "$1" = test ] && exit 0\nseq 30\nexit 3\n', "utf-8")
    done = claudescope("slo", "test", "a.yml", "--promtool", str(promtool), "--fail")
    assert done.returncode == 1
    assert done.stdout.startswith("promtool refuses the rules:\n      1\n")
    assert "... and 10 lines more; -o FOLDER keeps the files" in done.stdout


def test_without_promtool(claudescope, specs, promtool) -> None:
    done = claudescope("slo", "test", "a.yml", environment={"PATH": "/nowhere"})
    assert done.returncode == 2
    assert "promtool is not here" in done.stderr
    assert "apt install prometheus" in done.stderr
    promtool.write_text("#!/nowhere\n", "utf-8")
    for given, said in ((promtool, "cannot be run"), ("none", "none is no program")):
        done = claudescope("slo", "test", "a.yml", "--promtool", str(given))
        assert done.returncode == 2
        assert said in done.stderr
