"""Which runs are kept, and what a process that lives briefly leaves behind."""

import json

from claudescope.cli.launch import armed_environment
from claudescope.testing import StandIn, say
from claudescope.testing.script import text, tool_use

NATIVE = "com.anthropic.sdk.python"
TOOLS = [{"name": "add", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
SHORT_LIFE = """
    import anthropic
    PROVIDERS
    client = anthropic.Anthropic(max_retries=0)
    for _ in range(CALLS):
        client.messages.create(
            model="test-model", max_tokens=99, tools=TOOLS, messages=[{"role": "user", "content": "Add."}]
        )
"""
OWN = (
    "from opentelemetry import trace; from opentelemetry.sdk.trace import TracerProvider;"
    " trace.set_tracer_provider(TracerProvider())"
)


def app(calls, providers=""):
    filled = SHORT_LIFE.replace("PROVIDERS", providers or "pass").replace("CALLS", str(calls))
    return filled.replace("TOOLS", json.dumps(TOOLS))


def test_seven_invalid_of_57_steps(run_app, page):
    """19 answers of text, a good tool use and, in 7 of them, one of a tool that was never offered, else text again."""
    replies = [
        say(
            text("I add."),
            tool_use("add", {"a": 1}),
            tool_use("subtract", {"a": 1}) if n % 3 == 2 or n == 0 else text("x"),
        )
        for n in range(19)
    ]
    assert sum(reply.content[2].type == "tool_use" for reply in replies) == 7
    with StandIn(replies) as standin:
        env = armed_environment({"ANTHROPIC_BASE_URL": standin.url}, page.url)
        done = run_app(app(19), **env)
    assert done.stderr == ""
    series = page.samples("claudescope.steps")
    assert all(points[0].as_int == 0 and len(points) >= 2 for points in series.values())
    last = {labels: points[-1].as_int for labels, points in series.items()}
    by_verdict = {}
    for labels, value in last.items():
        verdict = dict(labels)["claudescope.step.valid"]
        by_verdict[verdict] = by_verdict.get(verdict, 0) + value
    assert by_verdict["false"] == 7
    assert sum(by_verdict.values()) == 57
    assert sum(span["attributes"].get("claudescope.step.valid") is False for span in page.steps) == 7
    assert len(page.steps) == 57


def test_from_the_first_bad_step_on_and_the_held_span(run_app, page):
    """A base share of 0: a run is kept only from its first bad step on, its native call span included."""
    replies = [say("ok"), say(text("one"), tool_use("subtract", {"a": 1}), text("two")), say("ok")]
    with StandIn(replies) as standin:
        env = armed_environment({"ANTHROPIC_BASE_URL": standin.url, "CLAUDESCOPE_KEEP_SHARE": "0"}, page.url)
        done = run_app(app(3, OWN), **env)
    assert done.stderr == ""
    calls = [span for span in page.spans if span["scope"] == NATIVE]
    assert len(calls) == 3, "each once"
    kept = {span["id"] for span in calls if span["attributes"].get("claudescope.keep")}
    assert len(kept) == 1
    marks = {
        (span["attributes"]["claudescope.step.index"], span["parent"] in kept): span["attributes"].get(
            "claudescope.keep"
        )
        for span in page.steps
    }
    assert marks == {(0, False): None, (0, True): None, (1, True): True, (2, True): True}
    traces = {span["trace"] for span in calls if span["id"] in kept}
    exemplars = {
        exemplar.trace_id.hex()
        for points in page.samples("claudescope.step.duration").values()
        for point in points
        for exemplar in point.exemplars
    }
    assert exemplars == traces, "exemplars are offered by kept traces only"


def test_base_share(run_app, page):
    """200 runs at one half, by trace id: fewer than 60 or more than 140 kept has a chance of 1e-8."""
    with StandIn(say("ok")) as standin:
        env = armed_environment({"ANTHROPIC_BASE_URL": standin.url, "CLAUDESCOPE_KEEP_SHARE": "0.5"}, page.url)
        run_app(app(200), **env)
    kept = {span["trace"] for span in page.spans if span["attributes"].get("claudescope.keep")}
    assert 60 <= len(kept) <= 140
    assert kept == {span["trace"] for span in page.spans if int(span["trace"][16:], 16) < 2**63}
    assert len(page.spans) == 400, "the mark is for the collector's sampling; nothing is dropped here"
