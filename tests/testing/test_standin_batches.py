"""Batches through the real client."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest

from claudescope.testing.script import HTTPFault, Unprocessed, say
from claudescope.testing.standin import StandIn

PARAMS: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hi"}],
}


def requests(count: int) -> list[Any]:
    return [{"custom_id": f"r{number}", "params": PARAMS} for number in range(count)]


def test_results_of_every_kind():
    script = [say("fine"), say().failing(HTTPFault(400, message="bad")), say().failing(Unprocessed("expired"))]
    with StandIn(script) as standin, anthropic.Anthropic(base_url=standin.url, api_key="k") as client:
        batch = client.messages.batches.create(requests=requests(3))
        assert (batch.processing_status, batch.request_counts.processing, batch.results_url) == ("in_progress", 3, None)
        batch = client.messages.batches.retrieve(batch.id)
        assert batch.processing_status == "ended"
        counts = batch.request_counts
        assert (counts.succeeded, counts.errored, counts.canceled, counts.expired) == (1, 1, 0, 1)
        assert batch.results_url == f"{standin.url}/v1/messages/batches/{batch.id}/results"
        results = list(client.messages.batches.results(batch.id))
        assert [(item.custom_id, item.result.type) for item in results] == [
            ("r0", "succeeded"),
            ("r1", "errored"),
            ("r2", "expired"),
        ]
        assert results[0].result.message.content[0].text == "fine"
        assert results[1].result.error.error.message == "bad"


def test_a_batch_in_progress_can_be_cancelled():
    with (
        StandIn(say("fine"), batch_polls=2) as standin,
        anthropic.Anthropic(base_url=standin.url, api_key="k", max_retries=0) as client,
    ):
        batch = client.beta.messages.batches.create(requests=requests(2)).id
        assert client.beta.messages.batches.retrieve(batch).processing_status == "in_progress"
        with pytest.raises(anthropic.BadRequestError, match="has not ended"):
            client.get(f"/v1/messages/batches/{batch}/results", cast_to=object)
        assert client.beta.messages.batches.cancel(batch).processing_status == "canceling"
        assert client.beta.messages.batches.retrieve(batch).processing_status == "canceling"
        ended = client.beta.messages.batches.retrieve(batch)
        assert (ended.processing_status, ended.request_counts.canceled) == ("ended", 2)
        assert [item.result.type for item in client.beta.messages.batches.results(batch)] == ["canceled", "canceled"]


async def test_list_and_delete_with_the_async_client():
    with StandIn(say("fine")) as standin:
        async with anthropic.AsyncAnthropic(base_url=standin.url, api_key="k", max_retries=0) as client:
            made = [(await client.messages.batches.create(requests=requests(1))).id for _ in range(2)]
            assert [batch.id async for batch in client.messages.batches.list()] == made[::-1]
            assert (await client.messages.batches.delete(made[0])).type == "message_batch_deleted"
            with pytest.raises(anthropic.NotFoundError):
                await client.messages.batches.retrieve(made[0])
            results = [item async for item in await client.messages.batches.results(made[1])]
            assert results[0].result.message.model == "claude-haiku-5-5"
