"""A support agent that looks orders up, follows parcels and pays refunds with tools.

ANTHROPIC_API_KEY=... python support_agent.py "Where is order A-1042?"
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam, ToolUseBlock

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5-5")
SYSTEM = (
    "You are the support agent of a kitchenware shop. Use the tools; never guess the state of an order."
    " End your answer with a line 'Confidence: ' and a number from 0 to 1."
)
QUESTIONS = (
    "Where is order A-1042, and has A-1043 left the warehouse?",
    "The kettle of order A-1044 arrived broken. Please refund it.",
    "When will the parcel of order A-1045 be here?",
)
ORDERS: dict[str, dict[str, Any]] = {
    "A-1042": {"item": "chef's knife", "paid": 64.00, "state": "shipped", "parcel": "PX-5501"},
    "A-1043": {"item": "cutting board", "paid": 28.50, "state": "packed", "parcel": None},
    "A-1044": {"item": "kettle", "paid": 39.90, "state": "delivered", "parcel": "PX-5502"},
    "A-1045": {"item": "stock pot", "paid": 89.00, "state": "shipped", "parcel": "QZ-7701"},
}


def _tool(name: str, description: str, **properties: str) -> ToolParam:
    schema = {name: {"type": kind} for name, kind in properties.items()}
    return {
        "name": name,
        "description": description,
        "input_schema": {"type": "object", "properties": schema, "required": list(schema)},
    }


TOOLS = [
    _tool("get_order", "Item, price, state and parcel of an order.", order_id="string"),
    _tool("track_parcel", "Where a parcel is now.", parcel="string"),
    _tool("refund", "Pays money back for an order.", order_id="string", amount="number", reason="string"),
]


def get_order(order_id: str) -> str:
    return str(ORDERS[order_id])


def track_parcel(parcel: str) -> str:
    if parcel.startswith("QZ"):
        raise TimeoutError("the carrier QZ does not answer")
    return f"{parcel}: in the delivery van, expected today by 18:00"


def refund(order_id: str, amount: float, reason: str) -> str:
    if not isinstance(amount, (int, float)) or amount > ORDERS[order_id]["paid"]:
        raise ValueError(f"amount must be a number up to {ORDERS[order_id]['paid']}")
    return f"refunded {amount:.2f} EUR ({reason})"


FUNCTIONS: dict[str, Callable[..., str]] = {"get_order": get_order, "track_parcel": track_parcel, "refund": refund}


def run_tool(use: ToolUseBlock) -> ToolResultBlockParam:
    try:
        content = FUNCTIONS[use.name](**use.input)
    except Exception as error:
        content = f"{type(error).__name__}: {error}"
        return {"type": "tool_result", "tool_use_id": use.id, "content": content, "is_error": True}
    return {"type": "tool_result", "tool_use_id": use.id, "content": content}


def ask(client: anthropic.Anthropic, question: str, max_turns: int = 8) -> str:
    messages: list[MessageParam] = [{"role": "user", "content": question}]
    with ThreadPoolExecutor() as pool:
        for _ in range(max_turns):
            reply = client.messages.create(model=MODEL, max_tokens=1024, system=SYSTEM, tools=TOOLS, messages=messages)
            messages.append({"role": "assistant", "content": reply.content})
            uses = [block for block in reply.content if block.type == "tool_use"]
            if not uses:
                return "\n".join(block.text for block in reply.content if block.type == "text")
            messages.append({"role": "user", "content": list(pool.map(run_tool, uses))})
    return "This needs a colleague: it took too many turns."


def main(questions: Sequence[str] = QUESTIONS) -> None:
    client = anthropic.Anthropic()
    for question in questions:
        print(f"> {question}\n{ask(client, question)}\n", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or QUESTIONS)
