"""Stated confidence: what counts, with its value, and what must not count."""

from __future__ import annotations

import time

import pytest
from opentelemetry.trace import INVALID_SPAN

from claudescope.assess.protocol import Confidence
from claudescope.assess.verbalised import Verbalised, stated_confidence
from claudescope.steps.model import Call, Chain, Step


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("confidence: 0.8", 0.8),
        ("Confidence: 80%", 0.8),
        ("**Confidence:** 0.85", 0.85),
        ("**Confidence**: 85 %", 0.85),
        ("- Confidence score: .75", 0.75),
        ("Confidence (0-1): 0.6", 0.6),
        ("The answer is 42 (confidence: 0.9).", 0.9),
        ("Answer: Paris. Confidence: about 95 percent.", 0.95),
        ("Confidence: 8/10", 0.8),
        ("Confidence: 85/100", 0.85),
        ("Confidence: 0,7", 0.7),
        ("Confidence: 100%", 1.0),
        ("Confidence: 1.0", 1.0),
        ("Confidence: 0.0", 0.0),
        ("Overall confidence: 70%", 0.7),
        ("My confidence is 0.8.", 0.8),
        ("My confidence in this answer is roughly 70%.", 0.7),
        ("I'm 90 % sure", 0.9),
        ("I’m about 90% sure that it is Lyon.", 0.9),
        ("I am 75% confident in it.", 0.75),
        ("I'd say I'm 60% certain.", 0.6),
        ("It is Lyon (90% sure).", 0.9),
        ("90 % sure it is Lyon", 0.9),
        ("I have 90% confidence in this.", 0.9),
        ("<confidence>0.8</confidence>", 0.8),
        ("<answer>4</answer>\n<confidence> 80% </confidence>", 0.8),
        ('{"answer": 4, "confidence": 0.8}', 0.8),
        ('{"answer": 4, "confidence": "80%"}', 0.8),
        ('```json\n{"answer": 4, "confidence": 0.8}\n```', 0.8),
        ("置信度：0.8", 0.8),
        ("答案是四。置信度：80%", 0.8),
        ("信心 80%", 0.8),
        ("信心：0.9", 0.9),
        ("**置信度**：0.8", 0.8),
        ("我有80%的把握。", 0.8),
        ("我大约90%确定答案是四。", 0.9),
        ("確信度: 0.7", 0.7),
        ("確信度は70%", 0.7),
        ("신뢰도: 80%", 0.8),
        ("Confidence: 0.4\nOn reflection.\nConfidence: 0.9", 0.9),
        ("I'm 50% sure. No, wait. Confidence: 0.9", 0.9),
        ("Confidence: 0.9, but then I'm 50% sure", 0.5),
    ],
)
def test_counts(text: str, value: float) -> None:
    assert stated_confidence(text) == pytest.approx(value, abs=1e-12)
    if "{" not in text:
        # Wherever it stands in a long text, whose other numbers mean nothing.
        numbers = "12 0.5 80% " * 50
        assert stated_confidence(f"{numbers}\n{text}\n{numbers}") == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The 95% confidence interval is [1, 2].",
        "Confidence interval: 95%",
        "At a confidence level of 95%, we reject it.",
        "confidence level: 95%",
        "Confidence: 95% CI [0.1, 0.4]",
        "Confidence: 95% confidence interval",
        "with 95% confidence, the mean lies in it",
        "90 % of users are sure that it works.",
        "90% sure users",
        "I'm not 90% sure",
        "If I'm 90% sure, I answer.",
        'He said "I\'m 90% sure" and left.',
        "He is 90% sure of it.",
        "Confidence: 120%",
        "I'm 110% sure",
        "Confidence: 1.2.3",
        "confidence 1.2 was released",
        "Confidence: 80-90%",
        "Confidence: 0.8-0.9",
        "Confidence: 1/5",
        "Confidence: 1",
        "Confidence: 85",
        "Confidence: 2.5",
        "Confidence: high",
        "`confidence: 0.8`",
        "```yaml\nconfidence: 0.8\n```",
        "```python\ninterval(\nconfidence=0.95, df=3)\n```",
        "The detector's confidence is 0.93.",
        "set confidence: 0.5 in the file",
        'Reply with "Confidence: 0.8" at the end.',
        '{"entities": [{"name": "x", "confidence": 0.9}]}',
        '{"confidence": 85}',
        '{"confidence": true}',
        '{"confidence": "high"}',
        "消费者信心指数：98.2",
        "95%置信区间",
        "在95%的置信度下",
        "置信度为95%的置信区间",
        "置信度：95%置信区间",
        "confidence is key; be sure and certain",
        "版本1.0确定发布",
        "The pressure is 0.8 and I am confident.",
        "| confidence: 0.8 | x |\n|---|---|\n| Confidence: 0.9 | y |",
    ],
)
def test_does_not_count(text: str) -> None:
    assert stated_confidence(text) is None


def test_only_thinking_and_text() -> None:
    call = Call(Chain(), 0, INVALID_SPAN, owned=False)
    estimator = Verbalised()

    def estimate(kind: str) -> Confidence | None:
        return estimator.estimate(Step(kind, 0, 1, "measured", text="Confidence: 0.8"), call)

    assert estimator.name == "verbalised"
    assert estimate("text") == estimate("thinking") == Confidence(0.8, calibrated=False)
    assert estimate("tool_use") is None


@pytest.mark.parametrize(
    "unit",
    [
        "confidence",
        "confidence: ",
        "I'm 9",
        "I am about ",
        "**",
        "0",
        "999 ",
        " ",
        "我有",
        "置信度：",
        "<confidence>",
        "my confidence in ",
        "\n- **confidence**: ",
        "(0-1)",
        "sure ",
        "1.",
        '{"confidence": ',
        "`confidence: 0.8",
        "$0.8 sure ",
    ],
)
def test_time_is_linear(unit: str) -> None:
    def cost(size: int) -> float:
        text = ("sure " + unit * (size // len(unit) + 1))[:size]
        best = float("inf")
        for _ in range(3):
            before = time.thread_time()
            stated_confidence(text)
            best = min(best, time.thread_time() - before)
        return best

    # A quadratic part would make ten times the text a hundred times as dear.
    assert cost(100_000) < 25 * cost(10_000) + 0.005
