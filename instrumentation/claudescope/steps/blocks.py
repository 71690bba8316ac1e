"""Content blocks of a response to steps: a block, or each part of a long thinking or text block, is one step."""

from __future__ import annotations

import json
from bisect import bisect_left
from itertools import accumulate
from typing import Any, Final, Literal

from .model import SUB_STEPS_MAX, Block, LatencySource, Step
from .segment import Piece, segment

__all__ = ["SUB_STEPS_MAX", "blocks_of", "content_of", "steps_of", "text_of"]

CONSUMER_SHARE: Final = 0.2
"""Share of a step's duration above which the app's own time between reads makes it an upper bound."""

_SEGMENTED: Final = ("thinking", "text")
_TEXT_FIELDS: Final = ("text", "thinking", "content")
_STREAMED_FIELDS: Final = {"text": "text", "thinking": "thinking", "compaction": "content"}
"""Block type -> the field that its deltas add to."""


def blocks_of(message: dict[str, Any], started: int, ended: int) -> list[Block]:
    """The content blocks of a whole (not streamed) message; entries that are not objects are left out.

    The call's time is shared out by the number of characters that the model wrote: text, thinking, the data of redacted
    thinking, tool input as JSON. A server tool's result was not written by the model and gets no time. If nothing
    has a length, the shares are equal. The first block starts at ``started``, the last ends at ``ended`` (ns).
    """
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    entries = [entry for entry in content if isinstance(entry, dict)] if isinstance(content, list) else []
    if not entries:
        return []
    written = [_written(entry) for entry in entries]
    if not any(written):
        written = [1] * len(entries)
    duration, total = max(0, ended - started), sum(written)
    bounds = [started, *(started + duration * done // total for done in accumulate(written))]
    blocks = [
        Block(index, _kind(entry), entry, bounds[index], bounds[index + 1]) for index, entry in enumerate(entries)
    ]
    blocks[-1].ended = started + duration  # also where the last ones have no length
    stop_reason = message.get("stop_reason")
    blocks[-1].stop_reason = stop_reason if isinstance(stop_reason, str) else None
    return blocks


def steps_of(block: Block, mode: Literal["block", "segment"] | str, budget: int) -> list[Step]:
    """The steps of one block, at least one. Never raises for what a block may hold.

    ``mode`` ``segment`` cuts long thinking and text; ``block`` does not. ``budget`` is how many steps the call has left
    of ``SUB_STEPS_MAX``: the parts beyond are merged into the last step, whose ``merged`` says how many they were.
    A streamed step ends with the arrival of the delta that carries its last character; other times are shared out by
    length. Times are monotone and within the block.
    """
    text, start_length = _text(block)
    pieces = [Piece(0, len(text))]
    if mode == "segment" and block.type in _SEGMENTED:
        pieces = segment(text)
    merged = max(0, len(pieces) - max(1, budget))
    if merged:
        pieces = [*pieces[: -merged - 1], Piece(pieces[-merged - 1].start, len(text), pieces[-merged - 1].name)]
    ends = _piece_ends(block, pieces, start_length)
    tool_name, tool_call_id, is_error = _tool(block)
    steps: list[Step] = []
    started = block.started
    for piece, ended in zip(pieces, ends, strict=True):
        steps.append(
            Step(
                kind=block.type,
                started=started,
                ended=ended,
                latency_source="apportioned",
                text=text[piece.start : piece.end] if len(pieces) > 1 else text,
                name=piece.name,
                block=block,
                tool_name=tool_name,
                tool_call_id=tool_call_id,
                is_error=is_error,
            )
        )
        started = ended
    steps[-1].last = True
    steps[-1].merged = merged
    if block.streamed:
        _set_sources(block, steps)
    return steps


def text_of(block: Block) -> str:
    """The whole text of a block: its steps' texts joined."""
    return _text(block)[0]


def content_of(block: Block) -> dict[str, Any]:
    """A block's fields with what its deltas brought, as a block that is not streamed has them.

    A tool's input that is no JSON, such as one that was cut off, stays text.
    """
    if not block.deltas:
        return block.fields
    text = text_of(block)
    if _is_tool_use(block.type):
        if not text:
            return block.fields
        try:
            return {**block.fields, "input": json.loads(text)}
        except (ValueError, RecursionError):
            return {**block.fields, "input": text}
    name = _STREAMED_FIELDS.get(block.type)
    return block.fields if name is None else {**block.fields, name: text}


def _kind(entry: dict[str, Any]) -> str:
    kind = entry.get("type")
    return kind if isinstance(kind, str) and kind else "unknown"


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _is_tool_use(kind: str) -> bool:
    return kind.endswith("tool_use")


def _is_tool_result(kind: str) -> bool:
    return kind.endswith("tool_result")


def _field_text(kind: str, fields: dict[str, Any]) -> str:
    """The text of a block's own fields."""
    if _is_tool_use(kind):
        given = fields.get("input")
        return given if isinstance(given, str) else "" if given is None else _dumped(given)
    for name in _TEXT_FIELDS:
        value = fields.get(name)
        if isinstance(value, str):
            return value
    content = fields.get("content")
    if _is_tool_result(kind):
        if isinstance(content, dict):
            return _dumped(content)
        if isinstance(content, list):
            texts = (part.get("text") for part in content if isinstance(part, dict))
            return "\n".join(text for text in texts if isinstance(text, str))
    return ""


def _written(entry: dict[str, Any]) -> int:
    """How many characters of a whole block the model wrote."""
    kind = _kind(entry)
    if _is_tool_result(kind):
        return 0
    if kind == "redacted_thinking":
        data = entry.get("data")
        return len(data) if isinstance(data, str) else 0
    return len(_field_text(kind, entry))


def _text(block: Block) -> tuple[str, int]:
    """The block's text, and how much of it came with the block's start."""
    if block.type == "redacted_thinking":
        return "", 0
    streamed = "".join([delta[2] for delta in block.deltas])
    if streamed and _is_tool_use(block.type):
        return streamed, 0  # the start's `input` is only a placeholder for what the deltas bring
    if not streamed and block.streamed and _is_tool_use(block.type) and not block.fields.get("input"):
        return "", 0
    start = _field_text(block.type, block.fields)
    return start + streamed, len(start)


def _piece_ends(block: Block, pieces: list[Piece], start_length: int) -> list[int]:
    last = max(block.started, block.ended)
    if len(pieces) == 1:
        return [last]
    if not block.streamed:
        duration, total = last - block.started, pieces[-1].end
        return [block.started + duration * piece.end // total for piece in pieces]
    # carried[i]: characters there with the i-th delta; bisect_left finds the delta that carries character `end - 1`.
    carried = list(accumulate((len(delta[2]) for delta in block.deltas), initial=start_length))
    ends: list[int] = []
    latest = block.started
    for piece in pieces[:-1]:
        at = bisect_left(carried, piece.end)
        arrived = block.started if at == 0 else block.deltas[at - 1][1]
        latest = min(last, max(latest, arrived))
        ends.append(latest)
    return [*ends, last]


def _set_sources(block: Block, steps: list[Step]) -> None:
    """Says of each step whether the app was waiting for it, or was busy with something else between its reads."""
    own = [0] * len(steps)
    first, before = 0, block.started
    for pulled, arrived, _ in block.deltas:
        while first < len(steps) - 1 and steps[first].ended <= before:
            first += 1
        for at in range(first, len(steps)):
            if steps[at].started >= pulled:
                break
            own[at] += max(0, min(pulled, steps[at].ended) - max(before, steps[at].started))
        before = max(before, arrived)
    for step, busy in zip(steps, own, strict=True):
        over = busy > CONSUMER_SHARE * (step.ended - step.started)
        source: LatencySource = "consumer" if over else "measured"
        step.latency_source = source


def _tool(block: Block) -> tuple[str | None, str | None, bool | None]:
    """Name, id and (for a result) error state of a tool's block."""
    fields = block.fields
    if _is_tool_use(block.type):
        return _string(fields.get("name")), _string(fields.get("id")), None
    if _is_tool_result(block.type):
        return None, _string(fields.get("tool_use_id")), _says_error(fields)
    return None, None, None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _says_error(fields: dict[str, Any]) -> bool:
    content = fields.get("content")
    if fields.get("is_error") is True:
        return True
    if not isinstance(content, dict):
        return False
    kind = content.get("type")
    return "error_code" in content or (isinstance(kind, str) and kind.endswith("_error"))
