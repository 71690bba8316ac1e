"""Summarises many documents at once, a few calls at a time.

ANTHROPIC_API_KEY=... python batch_summariser.py minutes.txt report.txt
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import anthropic

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-haiku-5-5")
SYSTEM = "Summarise the document in three bullet points, then say how confident you are, as 'Confidence: 0.0' to '1.0'."
DOCUMENTS = {
    "minutes": "Minutes of 12 May. Present: Ada, Ben, Chi. The move of the store to the new hall was put off to July.",
    "incident": "At 09:14 the payment service ran out of connections. A restart at 09:31 ended it. 212 orders failed.",
    "review": "The blender is quiet and strong, yet the lid leaks after a month and nobody answers on the phone.",
    "contract": "The supplier delivers within 10 working days. Each late day costs 0.5 % of the price, at most 5 %.",
    "survey": "Of 480 customers asked, 61 % would order again, 24 % would not, and 15 % gave no answer.",
    "recall": "Batch 7731 of the pressure cooker has a faulty valve. Customers get a new lid by post without asking.",
}


async def summarise(client: anthropic.AsyncAnthropic, slots: asyncio.Semaphore, name: str, document: str) -> str:
    """One summary, or a sentence that says why there is none."""
    async with slots:
        try:
            reply = await client.messages.create(
                model=MODEL,
                max_tokens=400,
                system=SYSTEM,
                messages=[{"role": "user", "content": f"<document name='{name}'>{document}</document>"}],
            )
        except anthropic.APIError as error:
            return f"{name}: no summary, {error.message}"
    summary = "\n".join(block.text for block in reply.content if block.type == "text")
    return f"{name}:\n{summary}" + ("\n[cut off]" if reply.stop_reason == "max_tokens" else "")


async def summarise_all(documents: Mapping[str, str], at_once: int = 4) -> list[str]:
    """The summaries in the order of the documents, with at most ``at_once`` calls open."""
    slots = asyncio.Semaphore(at_once)
    async with anthropic.AsyncAnthropic() as client:
        return await asyncio.gather(*(summarise(client, slots, *item) for item in documents.items()))


def main(documents: Mapping[str, str] = DOCUMENTS) -> None:
    print("\n\n".join(asyncio.run(summarise_all(documents))), flush=True)


if __name__ == "__main__":
    main({name: Path(name).read_text("utf-8") for name in sys.argv[1:]} or DOCUMENTS)
