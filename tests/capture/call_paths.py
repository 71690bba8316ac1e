"""The committed table: every way to call the Messages API through the SDK, and what is seen of it.

An outcome is ``steps`` (each content block that came is a step), ``tokens only`` or ``span only``. Ends are
``consumed``, ``closed`` (the app closes a stream or raw response early), ``dropped`` (it lets go of it) and ``failing``
(the API fails: overloaded, for a stream in the middle of its second block; batches and count_tokens: not found).

Each path is written once, as a coroutine that serves both clients: ``settle`` awaits what must be awaited.
"""

from __future__ import annotations

import inspect
from typing import Any

from pydantic import BaseModel

STEPS, TOKENS, SPAN = "steps", "tokens only", "span only"
CONSUMED, CLOSED, DROPPED, FAILING = "consumed", "closed", "dropped", "failing"

STREAM = {CONSUMED: STEPS, CLOSED: STEPS, DROPPED: STEPS, FAILING: STEPS}
WHOLE = {CONSUMED: STEPS, FAILING: SPAN}
UNREAD = {CONSUMED: SPAN, CLOSED: SPAN, DROPPED: SPAN, FAILING: SPAN}
NO_MESSAGE = {CONSUMED: SPAN, FAILING: SPAN}

MESSAGES: dict[str, dict[str, str]] = {
    "create": WHOLE,
    "create stream": STREAM,
    "stream": STREAM,
    "stream text": STREAM,
    "stream final message": {CONSUMED: STEPS, FAILING: STEPS},
    "parse": WHOLE,
    "raw create": WHOLE,
    "raw create unparsed": WHOLE,
    "raw create stream": STREAM,
    "raw create stream unparsed": UNREAD,
    "raw parse": WHOLE,
    "raw count_tokens": NO_MESSAGE,
    "streaming create": WHOLE,
    "streaming create read": WHOLE,
    "streaming create unread": UNREAD,
    "streaming create stream": STREAM,
    "streaming create stream lines": UNREAD,
    "streaming count_tokens": NO_MESSAGE,
    "count_tokens": NO_MESSAGE,
    "tool_runner": WHOLE,
    "tool_runner stream": STREAM,
    "thread": WHOLE,
    "thread stream": STREAM,
}
"""Way to call -> outcome by end, for ``messages`` and ``beta.messages`` as far as the SDK has it."""

BETA_WAYS = ("raw parse", "tool_runner", "tool_runner stream", "thread", "thread stream")
"""Those of ``beta.messages`` alone."""

PLATFORM_WAYS = ("create", "create stream", "stream", "raw create", "streaming create stream", "tool_runner stream")
"""Those that are tried on the clients of Bedrock and Vertex too."""

BATCHES: dict[str, dict[str, str]] = {
    "create": NO_MESSAGE,
    "retrieve": NO_MESSAGE,
    "list": NO_MESSAGE,
    "cancel": NO_MESSAGE,
    "delete": NO_MESSAGE,
    "results": {CONSUMED: STEPS, CLOSED: STEPS, DROPPED: STEPS, FAILING: SPAN},
    "raw results": {CONSUMED: STEPS, FAILING: SPAN},
}

CLIENT: dict[str, dict[str, str]] = {
    "post": WHOLE,
    "post stream": STREAM,
    "post dicts": WHOLE,
    "post stream dicts": STREAM,
}

PLATFORMS = ("bedrock messages", "bedrock beta.messages", "vertex messages", "vertex beta.messages")

METHODS: dict[str, tuple[str, ...]] = {
    "messages.create": ("create", "create stream", "post", "post stream"),
    "messages.stream": ("stream", "stream text", "stream final message"),
    "messages.parse": ("parse",),
    "messages.count_tokens": ("count_tokens",),
    "messages.tool_runner": ("tool_runner", "tool_runner stream"),
    "messages.thread": ("thread", "thread stream"),
    "messages.with_raw_response.create": (
        "raw create",
        "raw create unparsed",
        "raw create stream",
        "raw create stream unparsed",
    ),
    "messages.with_raw_response.parse": ("raw parse",),
    "messages.with_raw_response.count_tokens": ("raw count_tokens",),
    "messages.with_streaming_response.create": (
        "streaming create",
        "streaming create read",
        "streaming create unread",
        "streaming create stream",
        "streaming create stream lines",
    ),
    "messages.with_streaming_response.count_tokens": ("streaming count_tokens",),
    "batches.create": ("create",),
    "batches.retrieve": ("retrieve",),
    "batches.list": ("list",),
    "batches.cancel": ("cancel",),
    "batches.delete": ("delete",),
    "batches.results": ("results", "raw results"),
}
"""The SDK's public methods -> their rows. A method that is not here fails a test."""

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
