from __future__ import annotations

import anthropic
import pytest

import claudescope
from claudescope import control
from claudescope.testing.script import say


@pytest.mark.parametrize("error", [RuntimeError("mine"), SystemExit(3), KeyboardInterrupt()])
def test_a_subscriber_that_raises_anything_keeps_nothing_from_the_others(
    claudescope_standin, claudescope_instrumented, error
):
    claudescope_standin.use(say("Hello."))
    told = []

    def raises(record):
        raise error

    def listens(record):
        told.append(record["kind"])

    subscribers = control.worker().pipeline.subscribers
    subscribers += [raises, listens]
    try:
        ask = {"model": "claude-sonnet-5-5", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}
        with anthropic.Anthropic(base_url=claudescope_standin.url, api_key="any") as client:
            for _ in range(2):
                client.messages.create(**ask)
        assert claudescope.flush(10)  # nothing was lost
    finally:
        del subscribers[-2:]
    assert told == ["text", "text"]
