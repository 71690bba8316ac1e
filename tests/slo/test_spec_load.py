"""What files give together, and what is raised for what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudescope.errors import UsageError
from claudescope.slo.spec.document import Mapping, Node, Sequence, read_documents
from claudescope.slo.spec.load import load, read
from claudescope.slo.spec.problem import Problem, SpecErrors

HEAD = "version: prometheus/v1\nservice: bot\nslos:\n"
SLI = """\
apiVersion: openslo/v1
kind: SLI
metadata: {name: calls}
spec:
  ratioMetric:
    bad: {metricSource: {type: Prometheus, spec: {query: 'sum(rate(bad_total[5m]))'}}}
    total: {metricSource: {type: Prometheus, spec: {query: 'sum(rate(all_total[5m]))'}}}
"""
SLO = """\
apiVersion: openslo/v1
kind: SLO
metadata: {name: NAME}
spec:
  service: bot
  indicatorRef: calls
  timeWindow: [{duration: 30d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.99}]
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name: str, text: str) -> Path:
        Path(name).write_text(text)
        return Path(name)

    return write


def test_everything_is_raised_at_once(write):
    one = write("a.yml", HEAD + "  - {name: x, objective: 100, indicator: {errors: }}\n")
    two = write("b.yml", "[")
    with pytest.raises(SpecErrors) as raised:
        load([one, two])
    assert isinstance(raised.value, UsageError)
    what, fix = (
        "slos[0].objective is 100, which leaves no budget.",
        "Write less, such as 99.9: with 100 every bad event would page.",
    )
    assert raised.value.problems[0] == Problem("a.yml", 4, what, fix)
    assert [problem.path for problem in raised.value.problems] == ["a.yml", "b.yml"]
    assert str(raised.value) == f"a.yml:4: {what} {fix}\n{raised.value.problems[1]}"


def test_an_indicator_is_found_in_another_file(write):
    files = [write("slo.yml", SLO.replace("NAME", "one") + "---\n" + SLO.replace("NAME", "two")), write("sli.yml", SLI)]
    assert [objective.id for objective in load(files)] == ["bot-one", "bot-two"]
    (problem,) = read(files[:1]).problems[:1]
    assert (problem.line, problem.what) == (6, "There is no SLI 'calls'.")


def test_a_wrong_indicator_is_said_once_and_not_by_those_that_use_it(write):
    sli = write("sli.yml", SLI.replace("[5m]", "", 1).replace("rate", "max", 1))
    slo = write("slo.yml", SLO.replace("NAME", "one"))
    assert [(problem.path, problem.line) for problem in read([sli, slo]).problems] == [("sli.yml", 6)]
    shape = write("sli.yml", SLI.replace("total:", "totl:"))
    assert [(problem.path, problem.line) for problem in read([shape, slo]).problems] == [("sli.yml", 7)]


def test_two_indicators_of_one_name(write):
    files = [write("a.yml", SLI), write("b.yml", SLI)]
    (problem,) = read(files).problems
    assert (problem.path, problem.line, problem.what) == ("b.yml", 3, "There are two SLIs 'calls'.")


def test_what_the_rest_of_an_objective_means_is_said_too(write):
    text = "  - name: x\n    objective: 99\n    indicator: {step_validity: {modle: a}}\n"
    text += "    canary: {label: a, canary: b, baseline: b}\n"
    problems = read([write("a.yml", HEAD + text)]).problems
    assert [(problem.line, problem.what) for problem in problems] == [
        (6, "slos[0].indicator.step_validity.modle is not known."),
        (7, "slos[0].canary compares b with itself."),
    ]


def test_labels_of_the_document_are_checked_once(write):
    text = "version: prometheus/v1\nservice: bot\nlabels: {claudescope_slo: a}\nslos:\n"
    text += "".join(f"  - {{name: n{n}, objective: 99, indicator: {{errors: }}}}\n" for n in range(3))
    (problem,) = read([write("a.yml", text)]).problems
    assert problem.line == 3


def test_groups_and_labels_that_the_resource_must_have(write):
    text = HEAD + (
        "  - {name: x, objective: 99, indicator: {errors: }, group_by: [cluster],\n"
        "     canary: {label: deployment, canary: a, baseline: b}}\n"
    )
    reading = read([write("a.yml", text)])
    assert reading.problems == []
    assert [(warning.line, warning.what.split(":")[0]) for warning in reading.warnings["bot-x"]] == [
        (4, "slos[0].group_by"),
        (5, "slos[0].canary.label"),
    ]


def test_two_equal_queries(write):
    text = "  - {name: x, objective: 99, sli: {events: {error_query: &q 'rate(a[{{.window}}])', total_query: *q}}}\n"
    (warning,) = read([write("a.yml", HEAD + text)]).warnings["bot-x"]
    assert warning.what == "slos[0].sli.events: both queries are the same, so all events are bad."


def test_nobody_is_told(write):
    text = "  - {name: x, objective: 99, indicator: {errors: },\n"
    text += "     alerting: {page_alert: &off {disable: y}, ticket_alert: *off}}\n"
    (warning,) = read([write("a.yml", HEAD + text)]).warnings["bot-x"]
    assert warning.what == "Pages and tickets are both disabled: nobody is told of a burn."


def test_what_is_said_of_an_indicator_is_said_of_each_that_uses_it(write):
    sli = write("sli.yml", SLI.replace("rate(", "avg_over_time(", 1))
    slo = write("slo.yml", SLO.replace("NAME", "one") + "---\n" + SLO.replace("NAME", "two"))
    warnings = read([slo, sli]).warnings
    assert {key: [(w.path, w.line) for w in found] for key, found in warnings.items()} == {
        "bot-one": [("sli.yml", 6)],
        "bot-two": [("sli.yml", 6)],
    }


def test_the_spelling_of_kubernetes_is_read(write):
    text = "  - {name: x, objective: 99, indicator: {errors: },\n"
    text += "     alerting: {pageAlert: {disable: true}, ticketAlert: {labels: {a: b}}}}\n"
    path = write("a.yml", HEAD + text)
    (objective,) = load([path])
    assert objective.page.disabled
    assert objective.ticket.labels == {"a": "b"}
    assert [(warning.line, warning.fix) for warning in read([path]).warnings["bot-x"]] == [
        (5, "Write page_alert."),
        (5, "Write ticket_alert."),
    ]
    both = write("b.yml", HEAD + text.replace("ticketAlert", "page_alert"))
    (problem,) = read([both]).problems
    assert problem.what == "slos[0].alerting.pageAlert is not known."


GOOD = Path(__file__).parent / "good"
FREE = {"labels", "annotations"}


def keys(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    """Keys that a form has, with their lines; what is in labels may be called anything."""
    if isinstance(node, Mapping) and not (path and (path[-1] in FREE or path[0].startswith("x-"))):
        for key, entry in node.entries.items():
            if not key.startswith("x-"):
                yield key, entry.line
            yield from keys(entry.value, (*path, key))
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from keys(item, path)


def misspelled(key: str) -> str:
    """With two letters exchanged in its middle."""
    middle = len(key) // 2
    return key[: middle - 1] + key[middle] + key[middle - 1] + key[middle + 1 :]


CASES = [
    (name, key, line)
    for name in ("native-quality", "sloth-availability", "sloth-raw", "openslo-good")
    for document in read_documents((GOOD / f"{name}.yml").read_bytes())
    for key, line in keys(document.root)
    if misspelled(key) != key and key not in ("version", "apiVersion", "kind")
]


@pytest.mark.parametrize(("name", "key", "line"), CASES)
def test_each_key_that_is_misspelled_is_named_rightly(name, key, line, write):
    lines = (GOOD / f"{name}.yml").read_text().split("\n")
    lines[line - 1] = re.sub(rf"\b{key}:", f"{misspelled(key)}:", lines[line - 1], count=1)
    problems = read([write("a.yml", "\n".join(lines))]).problems
    assert (line, f"Did you mean `{key}`?") in [(problem.line, problem.fix) for problem in problems]
    assert len(problems) == 1
