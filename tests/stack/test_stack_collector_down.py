"""The collector killed, and back: told through Alertmanager into a webhook, and its end."""

from __future__ import annotations

import time

import pytest
from stack_backends import eventually
from stack_webhook import Webhook, told_at

pytestmark = [pytest.mark.stack, pytest.mark.slow]


@pytest.mark.timeout(600)
def test_collector_down_and_back(new_stack) -> None:
    with Webhook() as webhook:
        stack = new_stack(alertmanager=told_at(webhook))
        assert eventually(lambda: stack.prometheus.value('sum(up{job="collector"})') == 1, 60)
        killed = time.time()
        stack["collector"].kill()
        told = eventually(lambda: webhook.alerts("CollectorDown"), 240, 1)
        assert told, stack.prometheus.alerts()
        print(f"told {time.time() - killed:.0f} s after the collector was killed")
        assert told[0]["labels"]["severity"] == "page"
        assert told[0]["annotations"]["summary"] == "The collector does not answer"
        assert told[0]["annotations"]["dashboard"] == "/d/claudescope-pipeline"
        stack["collector"].start()
        back = time.time()
        assert eventually(lambda: webhook.alerts("CollectorDown", "resolved"), 240, 1), stack.prometheus.alerts()
        print(f"its end told {time.time() - back:.0f} s after its start")
