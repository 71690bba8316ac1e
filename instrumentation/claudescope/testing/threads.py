"""The conversations that a stand-in holds for requests with ``thread`` (beta), which send only what is new."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

__all__ = ["Threads", "UnknownThreadError"]

_HELD = 1_000


class UnknownThreadError(Exception):
    """The response that a request continues is none of the latest 1,000 of threads."""


class Threads:
    """Conversations by the id of their latest response."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def join(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request as if it had sent the whole conversation: what the model sees. Raises UnknownThreadError."""
        thread = body.get("thread")
        if not isinstance(thread, dict) or thread.get("type") != "continue":
            return body
        earlier = self._held.get(str(thread.get("previous_message_id")))
        if earlier is None:
            raise UnknownThreadError
        return {**earlier, **body, "messages": [*earlier["messages"], *body["messages"]]}

    def hold(self, body: dict[str, Any], message: dict[str, Any]) -> None:
        """Keeps the conversation so far, where the (joined) request asks for it, under the response's id."""
        if isinstance(body.get("thread"), dict):
            said = {"role": "assistant", "content": message["content"]}
            self._held[message["id"]] = {**body, "messages": [*body["messages"], said]}
            if len(self._held) > _HELD:
                self._held.popitem(last=False)
