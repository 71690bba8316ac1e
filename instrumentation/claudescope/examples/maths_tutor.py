"""A maths tutor that thinks aloud, explains a solution as it comes, and then checks it.

ANTHROPIC_API_KEY=... python maths_tutor.py "What is the sum of the first 40 odd numbers?"
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

import anthropic
from anthropic.types import MessageParam

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-5-5")
SYSTEM = (
    "You are a patient maths tutor. Explain in numbered steps, give the answer on a line of its own, and say how sure"
    " you are of it in percent."
)
PROBLEMS = (
    "A train covers 126 km in 1.5 h and then 84 km in 1 h. What is its mean speed?",
    "What is the sum of the first 40 odd numbers?",
    "A jar holds 3 red and 5 blue balls. Two are drawn without looking. How likely are both red?",
)
CHECK = "Check that answer in another way, and correct it if it is wrong."


def stream_turn(client: anthropic.Anthropic, messages: list[MessageParam], typing_delay: float) -> None:
    """Prints one answer as it comes and appends it to the conversation."""
    with client.messages.stream(
        model=MODEL,
        max_tokens=4096,
        thinking={"type": "adaptive", "display": "summarized"},
        system=SYSTEM,
        messages=messages,
    ) as stream:
        for event in stream:
            if event.type == "text":
                print(event.text, end="", flush=True)
                time.sleep(typing_delay)
            elif event.type == "content_block_start" and event.content_block.type == "thinking":
                print("(thinking)", flush=True)
        reply = stream.get_final_message()
    print("\n", flush=True)
    messages.append({"role": "assistant", "content": reply.content})


def main(problems: Sequence[str] = PROBLEMS, typing_delay: float = 0.0) -> None:
    """Solves and checks each problem; ``typing_delay`` is the seconds between two pieces of printed text."""
    client = anthropic.Anthropic()
    for problem in problems:
        print(f"> {problem}")
        messages: list[MessageParam] = []
        for prompt in (problem, CHECK):
            messages.append({"role": "user", "content": prompt})
            stream_turn(client, messages, typing_delay)


if __name__ == "__main__":
    main(sys.argv[1:] or PROBLEMS)
