"""A notebook: a real kernel, cell by cell, with and without ``claudescope run``, sync and with top-level await."""

from claudescope.cli.launch import armed_environment

NOTEBOOK = """
    import os, sys
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", env=dict(os.environ))
    cells = [
        %(first)r,
        "import anthropic",
        "ask = dict(model='test-model', max_tokens=9, messages=[dict(role='user', content='2 + 2?')])",
        "print(anthropic.Anthropic(max_retries=0).messages.create(**ask).content[-1].text)",
        "answer = await anthropic.AsyncAnthropic(max_retries=0).messages.create(**ask); print(answer.content[-1].text)",
        "import claudescope; print(claudescope.flush(20))",
    ]
    try:
        for cell in cells:
            reply = client.execute_interactive(
                cell, timeout=60, output_hook=lambda message: print(message["content"].get("text", ""), end="")
            )
            assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
"""


def test_a_notebook_under_run(run_app, page, compat_python):
    env = armed_environment({}, page.url)
    done = run_app(NOTEBOOK % {"first": "pass"}, compat_python, **env)
    assert done.stdout.split() == ["4", "4", "True"], done.stderr
    assert [step["attributes"]["claudescope.step.kind"] for step in page.steps] == ["thinking", "text"] * 2


def test_a_notebook_that_instruments_itself(run_app, page, compat_python):
    first = "import claudescope; claudescope.instrument()"
    done = run_app(NOTEBOOK % {"first": first}, compat_python, OTEL_EXPORTER_OTLP_ENDPOINT=page.url)
    assert done.stdout.split() == ["4", "4", "True"], done.stderr
    assert len(page.steps) == 4
