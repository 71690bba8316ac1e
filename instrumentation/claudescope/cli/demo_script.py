"""What the stand-in answers to the examples in ``claudescope demo``: plausible, and wrong now and then.

The reply to a request depends on its content and on how many conversations of its kind came before, so a demo is the
same each time but for the order in which the examples' threads come. Planted: tool inputs that do not fit the schema,
answers cut off at ``max_tokens``, an overloaded API (529) and low confidence. A failing tool and a slow reader are
the examples' own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ..testing.blocks import text, thinking, tool_use
from ..testing.faults import HTTPFault
from ..testing.script import Pace, Reply, say

__all__ = ["PACE", "DemoScript"]

PACE: Final = Pace(first=0.35, delta=0.025, block=0.1, chunk=12, jitter=0.5)

_OVERLOADED: Final = HTTPFault(529, retry_after=0.4, attempts=1)


class DemoScript:
    """The reply to one request body. One object serves one stand-in, which calls it on its own thread."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def __call__(self, request: dict[str, Any]) -> Reply:
        """The reply; a request that no example sends gets a plain one."""
        system = str(request.get("system", ""))
        for word, reply in _REPLIES.items():
            if word in system:
                return reply(request, self._count)
        return say("I can only play my part in the demo. Confidence: 0.5")

    def _count(self, what: str) -> int:
        """How often ``what`` has come, this time included."""
        self._seen[what] += 1
        return self._seen[what]


Count = Callable[[str], int]


def _turn(request: dict[str, Any]) -> int:
    """How many answers the conversation holds already."""
    return sum(message["role"] == "assistant" for message in request["messages"])


def _opening(request: dict[str, Any]) -> str:
    return str(request["messages"][0]["content"])


# ------------------------------------------------------------------------------------------------ support agent


def _support(request: dict[str, Any], count: Count) -> Reply:
    orders = re.findall(r"A-\d{4}", _opening(request)) or ["A-1042"]
    if _turn(request) == 0:
        lead = "I will look up both orders." if len(orders) > 1 else f"I will look up order {orders[0]}."
        reply = say(lead, *(tool_use("get_order", {"order_id": order}) for order in orders))
        return reply.failing(_OVERLOADED) if count("question") % 5 == 2 else reply
    if "refund" in _opening(request):
        return _refund(request, orders[0], count)
    return _parcel(request, orders)


def _refund(request: dict[str, Any], order: str, count: Count) -> Reply:
    if _turn(request) == 1:
        if count("refund") % 2:
            # Planted: the schema asks for a number and a reason.
            return say("The kettle cost 39.90.", tool_use("refund", {"order_id": order, "amount": "39,90 EUR"}))
        return say("The kettle cost 39.90.", _paid(order))
    if _is_error(request):
        return say("The amount has to be a number, and a reason is needed.", _paid(order))
    return say(f"I am sorry about the kettle. 39.90 EUR of order {order} are on their way back.\n\nConfidence: 0.97")


def _paid(order: str) -> Any:
    return tool_use("refund", {"order_id": order, "amount": 39.9, "reason": "arrived broken"})


def _parcel(request: dict[str, Any], orders: list[str]) -> Reply:
    if _turn(request) == 1:
        parcel = "QZ-7701" if "A-1045" in orders else "PX-5501"
        return say(f"Now the parcel {parcel}.", tool_use("track_parcel", {"parcel": parcel}))
    if _is_error(request):
        return say(
            "The carrier does not answer just now.\n\nMost parcels on this route take three days, so it may come on"
            " Thursday. I would rather ask again tomorrow.\n\nConfidence: 0.35"
        )
    return say(
        "Order A-1042, the chef's knife, is in the delivery van and comes today by 18:00.\n\nOrder A-1043, the cutting"
        " board, is packed and has not left the warehouse.\n\nConfidence: 0.92"
    )


def _is_error(request: dict[str, Any]) -> bool:
    content = request["messages"][-1]["content"]
    return any(isinstance(block, dict) and block.get("is_error") is True for block in content)


# ------------------------------------------------------------------------------------------------ maths tutor


class _Solution(NamedTuple):
    thought: str
    answer: str
    check: str


_SOLUTIONS: Final = {
    "train": _Solution(
        "1. Mean speed is the whole distance over the whole time.\n2. The distance is 126 + 84 = 210 km.\n"
        "3. The time is 1.5 + 1 = 2.5 h.\n4. 210 / 2.5 = 84 km/h. The mean of the two speeds happens to be 84 as well,"
        " since 126 / 1.5 = 84.",
        "1. Add the distances: 126 km + 84 km = 210 km.\n2. Add the times: 1.5 h + 1 h = 2.5 h.\n"
        "3. Divide: 210 km / 2.5 h = 84 km/h.\n\n**84 km/h**\n\nI am 98 % sure.",
        "Both legs are driven at 84 km/h: 126 / 1.5 = 84 and 84 / 1 = 84.\n\nEqual speeds give the same mean, so the"
        " answer holds. I am 99 % sure.",
    ),
    "odd": _Solution(
        "Step 1: The sums of the first odd numbers are 1, 4, 9, 16: squares.\nStep 2: So the sum of the first n odd"
        " numbers is n * n.\nStep 3: For n = 40 that is 40 * 40 = 1600.",
        "1. The first odd numbers add up to squares: 1, 1 + 3 = 4, 4 + 5 = 9.\n2. The sum of the first n of them is"
        " n * n.\n3. 40 * 40 = 1600.\n\n**1600**\n\nI am 97 % sure.",
        "The first is 1 and the last is 79, so their mean is 40.\n\n40 numbers of mean 40 add up to 1600, as before."
        " I am 99 % sure.",
    ),
    "jar": _Solution(
        "1. There are 8 balls, 3 of them red.\n2. The first is red with 3/8.\n3. Is the second one 3/8 too? Only if the"
        " first goes back, and the problem does not say so.\n4. 3/8 * 3/8 = 9/64, about 0.14. I am 40 % sure.",
        "1. The first ball is red with probability 3/8.\n2. The second is red with probability 3/8.\n3. Together:"
        " 3/8 * 3/8 = 9/64.\n\n**9/64**\n\nI am 45 % sure.",
        "Count the pairs: 8 * 7 / 2 = 28 pairs, of which 3 * 2 / 2 = 3 are red.\n\nThat is 3/28 and not 9/64: the"
        " first ball does not go back. The answer is **3/28**. I am 90 % sure.",
    ),
}


def _tutor(request: dict[str, Any], count: Count) -> Reply:
    problem = _opening(request)
    solution = next((found for word, found in _SOLUTIONS.items() if word in problem), _SOLUTIONS["train"])
    if _turn(request) > 0:
        return say(
            thinking("I should not repeat the same path.\n\nA second way would show a mistake."), text(solution.check)
        )
    if count("problem") % 7 == 6:
        # Planted: the answer is cut off where the result should come.
        cut = solution.answer[: solution.answer.index("**")].rstrip()
        return say(thinking(solution.thought), text(cut), stop_reason="max_tokens")
    return say(thinking(solution.thought), text(solution.answer))


# ------------------------------------------------------------------------------------------------ batch summariser

_SUMMARIES: Final = {
    "minutes": ("Ada, Ben and Chi met on 12 May.", "The store moves to the new hall.", "The move is put off to July."),
    "incident": ("Payments failed from 09:14 to 09:31.", "The connections had run out.", "212 orders were lost."),
    "review": ("The blender is quiet and strong.", "The lid leaks after a month.", "Nobody answers the phone."),
    "contract": ("Delivery takes up to 10 working days.", "A late day costs 0.5 %.", "The most is 5 %."),
    "survey": ("480 customers were asked.", "61 % would order again.", "15 % gave no answer."),
    "recall": ("Batch 7731 is called back.", "Its valve is faulty.", "A new lid comes by post."),
}
_DOUBTED: Final = {"incident": 0.55, "review": 0.74}


def _summary(request: dict[str, Any], count: Count) -> Reply:
    found = re.search(r"name='(\w+)'", _opening(request))
    name = found.group(1) if found and found.group(1) in _SUMMARIES else "minutes"
    points = _SUMMARIES[name]
    times = count(name)
    if name == "contract" and times % 2:
        return say(f"- {points[0]}\n- {points[1][:9]}", stop_reason="max_tokens")  # planted: cut off in mid-sentence
    reply = say("\n".join(f"- {point}" for point in points) + f"\n\nConfidence: {_DOUBTED.get(name, 0.9)}")
    return reply.failing(_OVERLOADED) if name == "survey" and times % 3 == 1 else reply


# ------------------------------------------------------------------------------------------------ refund review


def _review(request: dict[str, Any], count: Count) -> Reply:
    claim = _opening(request).partition("Claim: ")[2]
    if "broken" in claim:
        return say("Pay 39.90 EUR: it arrived broken, so the full price goes back. Confidence: 0.95")
    if "12 days" in claim:
        if count("shipping") % 2:
            return say("Pay 89.00 EUR: it came back within 30 days. Confidence: 0.8")  # planted: shipping forgotten
        return say("Pay 84.00 EUR: 89.00 less 5 for shipping. Confidence: 0.93")
    return say("Pay 0.00 EUR: 50 days are over the limit of 30. Confidence: 0.9")


_REPLIES: Final[dict[str, Callable[[dict[str, Any], Count], Reply]]] = {
    "support agent": _support,
    "maths tutor": _tutor,
    "Summarise the document": _summary,
    "refund policy": _review,
}
"""By a phrase of the example's system prompt."""
