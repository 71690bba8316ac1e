"""From what happened to what is emitted: items become steps, steps get numbers and verdicts, and leave as spans.

Runs on the worker's thread only.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan

from .assess.panel import Panel
from .emit.metrics import NO_EXEMPLAR, Meters
from .emit.spans import SpanWriter
from .guard import guard
from .redact import redact_label
from .settings import Settings
from .steps.blocks import blocks_of, content_of, steps_of
from .steps.chains import Asked, ChainBook, asking_types
from .steps.items import BatchLines, BlockEnded, CallEnded, Item, ManualEnded, ToolsReturned
from .steps.model import Block, Call, Chain, Step, ToolResult
from .steps.record import record

__all__ = ["Pipeline", "Subscriber"]

Subscriber = Callable[[dict[str, Any]], object]
_TRACE_BITS: Final = 64
_RETURNED: Final = 10_000
_BATCH_RESULT: Final = "batch_result"
"""Operation of a call that is a batch's result: nobody knows when it ran, so its steps have no time."""
_GOES_ON: Final = ("tool_use", "pause_turn")
"""Stop reasons after which the same run continues with another call."""
_STOPPED: Final = ("refusal", "max_tokens", "model_context_window_exceeded")
"""Stop reasons that need a step to be seen on, also where the response has no content at all."""


class Pipeline:
    """Turns queue items into emitted steps and calls. ``subscribers`` and ``error_subscribers`` get each record."""

    def __init__(self, settings: Settings, book: ChainBook, panel: Panel, writer: SpanWriter, service: str) -> None:
        self.subscribers: list[Subscriber] = []
        self.error_subscribers: list[Subscriber] = []
        self._settings = settings
        self._book = book
        self._panel = panel
        self._writer = writer
        self._service = service
        self._meters: Meters  # both of the item that is worked on
        self._assess: bool
        self._returned: OrderedDict[tuple[str, int], None] = OrderedDict()

    def work(self, item: Item, meters: Meters, assess: bool) -> None:
        """Works on one item; without ``assess`` its steps stay unchecked."""
        self._meters, self._assess = meters, assess
        if isinstance(item, BlockEnded):
            self._block(item)
        elif isinstance(item, ToolsReturned):
            for result, asked in item.results:
                self._tool(item, result, asked)
        elif isinstance(item, CallEnded):
            try:
                if item.body is not None:
                    self._message(item.body, item.call)
            finally:
                self._call(item.call)
        elif isinstance(item, ManualEnded):
            self._manual(item)
        elif isinstance(item, BatchLines):
            for line in item.body.splitlines():
                self._batch_result(line, item.call, item.at)

    # ------------------------------------------------------------------------------ items

    def _block(self, item: BlockEnded) -> None:
        block, offset = item.block, item.offset
        block.started += offset
        block.ended += offset
        block.deltas = [(pulled + offset, came + offset, text) for pulled, came, text in block.deltas]
        self._steps(block, item.call)

    def _message(self, body: bytes, call: Call) -> None:
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return
        if isinstance(message, dict):
            self._whole(message, call, call.started, call.ended)

    def _whole(self, message: dict[str, Any], call: Call, started: int, ended: int) -> None:
        call.response_id = _string(message.get("id"))
        call.response_model = _string(message.get("model"))
        call.stop_reason = _string(message.get("stop_reason"))
        usage = message.get("usage")
        call.usage = usage if isinstance(usage, dict) else {}
        asking = asking_types(call.stop_reason)
        for block in blocks_of(message, started, ended):
            tool_use_id = block.fields.get("id")
            if block.type in asking and isinstance(tool_use_id, str):
                known = self._book.claim([tool_use_id]).get(tool_use_id)
                if known is None or known.chain is not call.chain:
                    # A raw response that the app never parsed: its tool uses are known only here.
                    name = _string(block.fields.get("name")) or ""
                    self._book.register(tool_use_id, Asked(call.chain, call.context, ended, name))
            self._steps(block, call)

    def _steps(self, block: Block, call: Call) -> None:
        if self._settings.content == "full":
            call.blocks.append(content_of(block))
        self._cut(block, call)

    def _cut(self, block: Block, call: Call) -> None:
        call.has_content = True
        steps = steps_of(block, self._settings.steps, call.sub_steps_left)
        if len(steps) > 1:
            call.sub_steps_left = max(1, call.sub_steps_left - len(steps))
        for step in steps:
            if call.operation == _BATCH_RESULT:
                step.latency_source = None
            self._step(step, call)

    def _stopped_before_content(self, call: Call) -> None:
        """A response that was stopped before it had any content has one step, an empty text, to be seen and counted."""
        if call.stop_reason in _STOPPED and not call.has_content and call.first_chunk is None:
            fields = {"type": "text", "text": ""}
            stopped = Block(0, "text", fields, call.started, call.ended, [], call.streamed, None, call.stop_reason)
            self._cut(stopped, call)

    def _tool(self, item: ToolsReturned, result: ToolResult, asked: Asked) -> None:
        asking = (result.tool_use_id, asked.ended)  # a replayed response has the ids of the original
        if asking in self._returned:
            return  # the app has sent the same request again
        self._returned[asking] = None
        if len(self._returned) > _RETURNED:
            self._returned.popitem(last=False)
        call = Call(
            asked.chain,
            asked.ended,
            NonRecordingSpan(asked.context),
            owned=False,
            model=item.call.model,
            labels=item.call.labels,
            tracer_provider=item.call.tracer_provider,
        )
        step = Step(
            "tool_run",
            asked.ended,
            max(asked.ended, item.at),
            "measured",
            last=True,
            tool_name=asked.tool_name,
            tool_call_id=result.tool_use_id,
            is_error=result.is_error,
        )
        self._step(step, call)

    def _batch_result(self, line: bytes, outer: Call, at: int) -> None:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            return
        result = entry.get("result") if isinstance(entry, dict) else None
        message = result.get("message") if isinstance(result, dict) and result.get("type") == "succeeded" else None
        if not isinstance(message, dict):
            return
        call = Call(
            Chain(),
            at,
            outer.span,
            owned=False,
            operation=_BATCH_RESULT,
            model=_string(message.get("model")) or outer.model,
            provider=outer.provider,
            labels={**outer.labels, "custom_id": redact_label("custom_id", str(entry.get("custom_id")))},
            tracer_provider=outer.tracer_provider,
            ended=at,
        )
        self._whole(message, call, at, at)
        self._stopped_before_content(call)

    def _manual(self, item: ManualEnded) -> None:
        step, call = item.step, item.call
        self._number(step, call)
        self._weigh(step, call)
        context = self._writer.manual(step, call, item.span)
        self._told(step, call, context)

    # ------------------------------------------------------------------------------ steps and calls

    def _step(self, step: Step, call: Call) -> None:
        self._number(step, call)
        if self._assess:
            self._panel.assess(step, call)
        else:
            self._meters.dropped("queue_full", "assessment", 1)
        self._weigh(step, call)
        context = self._writer.step(step, call)
        self._told(step, call, context)

    def _number(self, step: Step, call: Call) -> None:
        step.index = call.chain.take_index()

    def _weigh(self, step: Step, call: Call) -> None:
        """The chain's confidence so far, and whether the run must be kept from here on."""
        chain = call.chain
        if step.confidence is not None:
            chain.confidence = step.confidence * (1.0 if chain.confidence is None else chain.confidence)
        step.chain_confidence = chain.confidence
        settings = self._settings
        if not chain.keep:
            chain.keep = (
                self._in_base_share(chain, call)
                or step.valid is False
                or (step.latency_source is not None and step.seconds >= settings.keep_slower)
                or (step.confidence is not None and step.confidence < settings.keep_below)
            )

    def _in_base_share(self, chain: Chain, call: Call) -> bool:
        share = self._settings.keep_share
        if share >= 1:
            return True
        trace_id = (chain.root or call.context).trace_id
        # The lower 64 bits against the share, as the SDK's TraceIdRatioBased sampler does.
        return (trace_id & (1 << _TRACE_BITS) - 1) < round(share * (1 << _TRACE_BITS))

    def _told(self, step: Step, call: Call, context: Context) -> None:
        sampled = context is not NO_EXEMPLAR
        self._meters.record_step(step, call, context, exemplar=sampled and call.chain.keep)
        self._writer.evaluations(step, call, context)
        if self.subscribers or self.error_subscribers:
            span = trace.get_current_span(context)
            told = record(step, call, span.get_span_context(), self._service, getattr(span, "parent", None))
            _tell(self.subscribers, told)
            if step.valid is False:
                _tell(self.error_subscribers, told)

    def _call(self, call: Call) -> None:
        chain = call.chain
        if call.operation == "chat" and call.error is None:
            self._stopped_before_content(call)
        if not chain.keep:
            chain.keep = call.error is not None or self._in_base_share(chain, call)
        context = self._writer.call(call)
        self._meters.record_call(call, context, exemplar=context is not NO_EXEMPLAR and chain.keep)
        if call.error is not None and call.error.type != "cancelled":
            self._writer.call_failed(call, context)
        if call.operation == "chat" and call.stop_reason not in _GOES_ON and chain.next_index:
            self._meters.chain_ended(chain, call)


def _tell(subscribers: list[Subscriber], told: dict[str, Any]) -> None:
    for subscriber in tuple(subscribers):
        try:
            subscriber(told)
        except BaseException as error:  # noqa: BLE001 - the app's own callback, also one that calls sys.exit()
            name = getattr(subscriber, "__qualname__", None) or type(subscriber).__qualname__
            guard.note(f"call the subscriber {name}", error)


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None
