"""The committed table: every way to call the Messages API through the SDK, and what is seen of it.

An outcome is ``steps`` (each content block that came is a step), ``tokens only`` or ``span only``. Ends are
``consumed``, ``closed`` (the app closes a stream or raw response early), ``dropped`` (it lets go of it) and ``failing``
(the API fails: overloaded, for a stream in the middle of its second block; batches and count_tokens: not found).

The path of a row is the function of its name in ``call_path_functions``.
"""

from __future__ import annotations

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
