"""Reviews a refund with steps of its own beside those of Claude: a named run, labels, verdicts by the app's own rules.

ANTHROPIC_API_KEY=... claudescope run -- python handmade_steps.py
"""

from __future__ import annotations

import os
import re
import time

import anthropic

import claudescope

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-haiku-5-5")
SYSTEM = "You review refunds by the shop's refund policy. Answer with the amount to pay in EUR and one reason."
POLICY = "Broken on arrival: the full price. Within 30 days: the price less 5 EUR for shipping. Later: nothing."
CLAIMS = (
    ("kettle, 39.90 EUR, broken on arrival", 39.90),
    ("stock pot, 89.00 EUR, sent back after 12 days", 84.00),
    ("cutting board, 28.50 EUR, sent back after 50 days", 0.00),
)


@claudescope.step("load policy")
def load_policy() -> str:
    time.sleep(0.02)  # where a real app would ask its database
    return POLICY


def propose(client: anthropic.Anthropic, claim: str, policy: str) -> float:
    reply = client.messages.create(
        model=MODEL,
        max_tokens=300,
        system=SYSTEM,
        messages=[{"role": "user", "content": f"Policy: {policy}\nClaim: {claim}"}],
    )
    text = "".join(block.text for block in reply.content if block.type == "text")
    found = re.search(r"\d+\.\d\d", text)
    return float(found.group()) if found else 0.0


def review(client: anthropic.Anthropic, claim: str, allowed: float) -> None:
    with claudescope.run("refund review", team="support"):
        amount = propose(client, claim, load_policy())
        with claudescope.step("check amount") as step:
            fits = abs(amount - allowed) < 0.005
            step.set_valid(fits, reason="" if fits else "not what the policy allows")
            step.set_confidence(0.95 if fits else 0.2)
    print(f"{claim}: {amount:.2f} EUR{'' if fits else f' (the policy says {allowed:.2f})'}", flush=True)


def main() -> None:
    client = anthropic.Anthropic()
    for claim, allowed in CLAIMS:
        review(client, claim, allowed)


if __name__ == "__main__":
    main()
