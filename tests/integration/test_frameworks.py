"""Frameworks that call Claude through the SDK are covered without a line: a smoke test of each."""

import json

import pytest

from claudescope.cli.launch import armed_environment
from claudescope.testing import StandIn, say
from claudescope.testing.script import text, thinking, tool_use

APPS = {
    "langchain": """
        from langchain_anthropic import ChatAnthropic
        model = ChatAnthropic(model="test-model", max_tokens=99)
        print(model.invoke("2 + 2?").text)
        print("".join(chunk.text for chunk in model.stream("2 + 2?")))
    """,
    "pydantic-ai": """
        from pydantic_ai import Agent
        agent = Agent("anthropic:test-model")
        print(agent.run_sync("2 + 2?").output)
        import asyncio

        async def streamed():
            async with agent.run_stream("2 + 2?") as result:
                return await result.get_output()

        print(asyncio.run(streamed()))
    """,
}
INSTRUCTOR = """
    import anthropic, instructor
    from pydantic import BaseModel

    class Answer(BaseModel):
        value: int

    client = instructor.from_anthropic(anthropic.Anthropic(max_retries=0))
    answer = client.chat.completions.create(
        model="test-model", max_tokens=99, response_model=Answer, messages=[{"role": "user", "content": "2 + 2?"}]
    )
    print(answer.value)
"""


def kinds(page):
    steps = sorted(page.steps, key=lambda step: (step["parent"], step["attributes"]["claudescope.step.index"]))
    return [step["attributes"]["claudescope.step.kind"] for step in steps]


@pytest.mark.parametrize("framework", APPS)
def test_covered(framework, run_app, page, compat_python):
    with StandIn(say(thinking("Two and two."), text("4"))) as standin:
        env = armed_environment({"ANTHROPIC_BASE_URL": standin.url}, page.url)
        done = run_app(APPS[framework], compat_python, **env)
    assert done.stdout.split() == ["4", "4"]
    assert "claudescope" not in done.stderr
    calls = [span for span in page.spans if span["name"] == "chat test-model"]
    assert len(calls) == 2, "one plain, one streamed"
    assert kinds(page) == ["thinking", "text"] * 2
    assert {step["parent"] for step in page.steps} == {call["id"] for call in calls}


def test_instructor(run_app, page, compat_python):
    with StandIn(say(tool_use("Answer", {"value": 4}))) as standin:
        env = armed_environment({"ANTHROPIC_BASE_URL": standin.url}, page.url)
        done = run_app(INSTRUCTOR, compat_python, **env)
    assert json.loads(done.stdout) == 4
    assert "claudescope" not in done.stderr
    assert kinds(page) == ["tool_use"]
    assert page.steps[0]["attributes"]["gen_ai.tool.name"] == "Answer"
