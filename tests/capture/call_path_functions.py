"""One function for each row of ``call_paths``, written once for both clients: ``settle`` awaits what it must."""

from __future__ import annotations

import inspect
from typing import Any

from call_paths import CLOSED, CONSUMED, DROPPED
from pydantic import BaseModel

ASK: dict[str, Any] = {"model": "claude-a", "max_tokens": 64, "messages": [{"role": "user", "content": "2 + 2?"}]}


class Sum(BaseModel):
    """What ``parse`` asks for."""

    answer: int


async def settle(value: Any) -> Any:
    """The value, awaited if it must be."""
    return await value if inspect.isawaitable(value) else value


async def read(stream: Any, partly: bool = False) -> list[Any]:
    """The items of a stream; ``partly``: up to the first delta of the second block."""
    items = []
    iterator = stream.__aiter__() if hasattr(stream, "__aiter__") else iter(stream)
    while True:
        try:
            item = await iterator.__anext__() if hasattr(iterator, "__anext__") else next(iterator)
        except (StopIteration, StopAsyncIteration):
            return items
        items.append(item)
        if partly and _in_second_block(item):
            return items


def _in_second_block(item: Any) -> bool:
    if isinstance(item, dict):
        return item["type"] == "content_block_delta" and item["index"] == 1
    if isinstance(item, str):  # a piece of text: that is the second block
        return True
    return getattr(item, "type", None) == "content_block_delta" and item.index == 1


async def enter(manager: Any) -> Any:
    return await manager.__aenter__() if hasattr(manager, "__aenter__") else manager.__enter__()


async def leave(manager: Any) -> None:
    if hasattr(manager, "__aexit__"):
        await manager.__aexit__(None, None, None)
    else:
        manager.__exit__(None, None, None)


async def follow(stream: Any, end: str) -> list[Any]:
    items = await read(stream, partly=end in (CLOSED, DROPPED))
    if end == CLOSED:
        await settle(stream.close())
    return [type(stream).__name__, *items]


async def within(manager: Any, use: Any, end: str) -> Any:
    """Uses what a context manager gives, and leaves it, unless it is to be dropped."""
    given = await enter(manager)
    if end == DROPPED:
        return await use(given)
    try:
        return await use(given)
    finally:
        await leave(manager)


def structured(resource: Any) -> dict[str, Any]:
    return {**ASK, "output_format": Sum}


# ------------------------------------------------------------------------------ one function a row


async def create(resource: Any, end: str) -> Any:
    return await settle(resource.create(**ASK))


async def create_stream(resource: Any, end: str) -> Any:
    return await follow(await settle(resource.create(**ASK, stream=True)), end)


async def stream(resource: Any, end: str) -> Any:
    return await within(resource.stream(**ASK), lambda given: follow(given, end), end)


async def stream_text(resource: Any, end: str) -> Any:
    async def use(given: Any) -> Any:
        pieces = await read(given.text_stream, partly=end in (CLOSED, DROPPED))
        return [type(given).__name__, *pieces]

    return await within(resource.stream(**ASK), use, end)


async def stream_final_message(resource: Any, end: str) -> Any:
    return await within(resource.stream(**ASK), lambda given: settle(given.get_final_message()), end)


async def parse(resource: Any, end: str) -> Any:
    message = await settle(resource.parse(**structured(resource)))
    return [message, message.parsed_output]


async def raw_create(resource: Any, end: str) -> Any:
    raw = await settle(resource.with_raw_response.create(**ASK))
    return [type(raw).__name__, raw.status_code, await settle(raw.parse()), await settle(raw.parse())]


async def raw_create_unparsed(resource: Any, end: str) -> Any:
    raw = await settle(resource.with_raw_response.create(**ASK))
    return [type(raw).__name__, raw.http_response.content]


async def raw_create_stream(resource: Any, end: str) -> Any:
    raw = await settle(resource.with_raw_response.create(**ASK, stream=True))
    return [type(raw).__name__, await follow(await settle(raw.parse()), end)]


async def raw_create_stream_unparsed(resource: Any, end: str) -> Any:
    raw = await settle(resource.with_raw_response.create(**ASK, stream=True))
    response = raw.http_response
    asynchronous = _is_async(resource)
    if end == CLOSED:
        await settle(response.aclose() if asynchronous else response.close())
        return None
    if end == DROPPED:
        return None
    return await settle(response.aread() if asynchronous else response.read())


async def raw_parse(resource: Any, end: str) -> Any:
    raw = await settle(resource.with_raw_response.parse(**structured(resource)))
    message = await settle(raw.parse())
    return [type(raw).__name__, message, message.parsed_output]


async def raw_count_tokens(resource: Any, end: str) -> Any:
    raw = await settle(resource.with_raw_response.count_tokens(model="claude-a", messages=ASK["messages"]))
    return [type(raw).__name__, await settle(raw.parse())]


async def streaming_create(resource: Any, end: str) -> Any:
    return await within(resource.with_streaming_response.create(**ASK), lambda raw: settle(raw.parse()), end)


async def streaming_create_read(resource: Any, end: str) -> Any:
    return await within(resource.with_streaming_response.create(**ASK), lambda raw: settle(raw.read()), end)


async def streaming_create_unread(resource: Any, end: str) -> Any:
    async def use(raw: Any) -> Any:
        return [type(raw).__name__, raw.status_code]

    return await within(resource.with_streaming_response.create(**ASK), use, end)


async def streaming_create_stream(resource: Any, end: str) -> Any:
    async def use(raw: Any) -> Any:
        parsed = await settle(raw.parse())
        # here it is the raw response that the app closes, by leaving the context manager
        held.append(parsed)
        return [type(parsed).__name__, *await read(parsed, partly=end in (CLOSED, DROPPED))]

    held: list[Any] = []
    return await within(resource.with_streaming_response.create(**ASK, stream=True), use, end)


async def streaming_create_stream_lines(resource: Any, end: str) -> Any:
    async def use(raw: Any) -> Any:
        lines = raw.iter_lines()
        if end in (CLOSED, DROPPED):
            return await lines.__anext__() if hasattr(lines, "__anext__") else next(lines)
        return await read(lines)

    return await within(resource.with_streaming_response.create(**ASK, stream=True), use, end)


async def streaming_count_tokens(resource: Any, end: str) -> Any:
    manager = resource.with_streaming_response.count_tokens(model="claude-a", messages=ASK["messages"])
    return await within(manager, lambda raw: settle(raw.parse()), end)


async def count_tokens(resource: Any, end: str) -> Any:
    return await settle(resource.count_tokens(model="claude-a", messages=ASK["messages"]))


def _is_async(resource: Any) -> bool:
    return type(resource).__name__.startswith("Async")


def adder(resource: Any) -> Any:
    """A tool for the tool runner, which the app runs."""
    from anthropic import beta_async_tool, beta_tool

    if _is_async(resource):

        @beta_async_tool
        async def add(a: int, b: int) -> str:
            """Adds.

            Args:
                a: one number
                b: another
            """
            return str(a + b)
    else:

        @beta_tool
        def add(a: int, b: int) -> str:
            """Adds.

            Args:
                a: one number
                b: another
            """
            return str(a + b)

    return add


async def tool_runner(resource: Any, end: str) -> Any:
    runner = resource.tool_runner(**ASK, tools=[adder(resource)])
    return [type(runner).__name__, *await read(runner)]


async def tool_runner_stream(resource: Any, end: str) -> Any:
    runner = resource.tool_runner(**ASK, tools=[adder(resource)], stream=True)
    given: list[Any] = [type(runner).__name__]
    iterator = runner.__aiter__() if hasattr(runner, "__aiter__") else iter(runner)
    while True:
        try:
            stream = await iterator.__anext__() if hasattr(iterator, "__anext__") else next(iterator)
        except (StopIteration, StopAsyncIteration):
            return given
        given += await follow(stream, end)
        if end in (CLOSED, DROPPED):
            return given


async def thread(resource: Any, end: str) -> Any:
    conversation = resource.thread(model="claude-a", max_tokens=64)
    return await settle(conversation.send("2 + 2?"))


async def thread_stream(resource: Any, end: str) -> Any:
    conversation = resource.thread(model="claude-a", max_tokens=64)
    return await within(conversation.stream("2 + 2?"), lambda given: follow(given, end), end)


# ------------------------------------------------------------------------------ batches


async def _batch(batches: Any) -> str:
    return (
        await settle(
            batches.create(requests=[{"custom_id": "one", "params": ASK}, {"custom_id": "two", "params": ASK}])
        )
    ).id


async def batches_create(batches: Any, end: str) -> Any:
    return await _batch(batches)


async def batches_retrieve(batches: Any, end: str) -> Any:
    return (await settle(batches.retrieve(await _batch(batches)))).processing_status


async def batches_list(batches: Any, end: str) -> Any:
    await _batch(batches)
    return [batch.id for batch in await read(batches.list())]


async def batches_cancel(batches: Any, end: str) -> Any:
    return (await settle(batches.cancel(await _batch(batches)))).processing_status


async def batches_delete(batches: Any, end: str) -> Any:
    return await settle(batches.delete(await _batch(batches)))


async def batches_results(batches: Any, end: str) -> Any:
    name = await _batch(batches)
    await settle(batches.retrieve(name))
    lines = await settle(batches.results(name))
    if end == CONSUMED:
        return [type(lines).__name__, *await read(lines)]
    first = await lines.__anext__() if hasattr(lines, "__anext__") else next(lines)
    if end == CLOSED:
        await settle(lines.close())
    return first


async def batches_raw_results(batches: Any, end: str) -> Any:
    name = await _batch(batches)
    await settle(batches.retrieve(name))
    raw = await settle(batches.with_raw_response.results(name))
    return [type(raw).__name__, *await read(await settle(raw.parse()))]


# ------------------------------------------------------------------------------ a plain post


async def post(client: Any, end: str) -> Any:
    from anthropic.types import Message

    return await settle(client.post("/v1/messages", body=dict(ASK), cast_to=Message))


async def post_stream(client: Any, end: str) -> Any:
    from anthropic import AsyncStream, Stream
    from anthropic.types import RawMessageStreamEvent

    kind = AsyncStream if _is_async(client) else Stream
    given = client.post(
        "/v1/messages",
        body={**ASK, "stream": True},
        cast_to=RawMessageStreamEvent,
        stream=True,
        stream_cls=kind[RawMessageStreamEvent],
    )
    return await follow(await settle(given), end)


async def post_dicts(client: Any, end: str) -> Any:
    return await settle(client.post("/v1/messages", body=dict(ASK), cast_to=object))


async def post_stream_dicts(client: Any, end: str) -> Any:
    from anthropic import AsyncStream, Stream

    kind = AsyncStream if _is_async(client) else Stream
    given = client.post(
        "/v1/messages", body={**ASK, "stream": True}, cast_to=object, stream=True, stream_cls=kind[object]
    )
    return await follow(await settle(given), end)
