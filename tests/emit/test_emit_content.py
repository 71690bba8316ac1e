import hashlib
import json

import pytest
from opentelemetry.trace import INVALID_SPAN

from claudescope.emit.content import call_content, capped, request_sha256, step_content
from claudescope.redact import redact
from claudescope.steps.model import Call, Chain, Step

KEY = "sk-" + "ant-api03-" + "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF"


def make_call(body=None, **fields):
    request = None if body is None else json.dumps(body).encode()
    return Call(chain=Chain(), started=0, span=INVALID_SPAN, owned=True, request=request, **fields)


def make_step(text):
    return Step(kind="text", started=0, ended=1, latency_source="measured", text=text)


def test_off_has_nothing_but_the_hash_of_the_request(settings):
    call = make_call({"messages": [{"role": "user", "content": KEY}]}, blocks=[{"type": "text", "text": "hi"}])
    for mode in ("off", "hash"):
        assert call_content(call, settings(content=mode)) == {}
    assert step_content(make_step("hi"), settings(content="off")) == {}
    assert request_sha256(call) == "sha256:" + hashlib.sha256(call.request).hexdigest()
    assert request_sha256(make_call()) is None


def test_hash(settings):
    assert step_content(make_step("né"), settings(content="hash")) == {
        "claudescope.step.text.sha256": "sha256:" + hashlib.sha256("né".encode()).hexdigest(),
        "claudescope.step.text.length": 2,
    }
    assert step_content(make_step("\ud800"), settings(content="hash"))["claudescope.step.text.length"] == 1


def test_full_is_redacted_and_capped(settings):
    full = settings(content="full", content_max=20)
    assert step_content(make_step(f"use {KEY}"), settings(content="full", content_max=100)) == {
        "claudescope.step.text": "use [redacted:anthropic_key]"
    }
    assert step_content(make_step("x" * 25), full) == {"claudescope.step.text": "x" * 20 + "[cut: 5 of 25 characters]"}
    assert step_content(make_step("x" * 20), full) == {"claudescope.step.text": "x" * 20}
    assert step_content(make_step(""), full) == {}


@pytest.mark.parametrize("before", [0, 5, 15, 19, 20, 8_190, 8_205, 8_215, 40_000])
def test_a_secret_across_the_cut_is_not_shown_in_part(before):
    text = "." * before + KEY + "." * 30_000
    shown = capped(text, 20)
    assert not any(piece in shown for piece in (KEY[:12], "ant-", "aB3dE5"))
    assert shown.endswith(f" of {len(text)} characters]")
    # many secrets shrink the text: what was beyond the margin must not move into view
    dense = capped((KEY + " ") * 2_000, 500)
    assert "aB3" not in dense
    assert "sk-" not in dense


def test_messages_in_the_genai_format(settings):
    body = {
        "system": [{"type": "text", "text": "Be kind."}],
        "messages": [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "redacted_thinking", "data": "xyz"},
                    {"type": "text", "text": "Let me look."},
                    {"type": "tool_use", "id": "t1", "name": "login", "input": {"password": "pw1", "n": 3, "l": ["a"]}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": f"key {KEY}"}]},
            {
                "role": "user",
                "content": [
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                    {"type": "image", "source": {"type": "url", "url": "https://u:hunter2@e.example/i.png"}},
                ],
            },
        ],
    }
    blocks = [{"type": "text", "text": "Done."}, {"type": "new_kind", "payload": "?"}]
    found = call_content(make_call(body, blocks=blocks, stop_reason="end_turn"), settings(content="full"))
    assert json.loads(found["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be kind."}]
    assert json.loads(found["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Hi"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "hm"},
                {"type": "redacted_thinking"},
                {"type": "text", "content": "Let me look."},
                {
                    "type": "tool_call",
                    "id": "t1",
                    "name": "login",
                    "arguments": {"password": "[redacted:secret]", "n": 3, "l": ["a"]},
                },
            ],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "t1", "response": "key [redacted:anthropic_key]"}],
        },
        {
            "role": "user",
            "parts": [
                {"type": "blob", "modality": "image", "mime_type": "image/png"},
                {"type": "uri", "modality": "image", "uri": "https://u:[redacted:password]@e.example/i.png"},
            ],
        },
    ]
    assert json.loads(found["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "Done."}, {"type": "new_kind"}],
            "finish_reason": "end_turn",
        }
    ]


def test_binary_data_in_a_tools_result_is_dropped(settings):
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    content = [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": source}]}]
    found = call_content(make_call({"messages": [{"role": "user", "content": content}]}), settings(content="full"))
    assert "AAAA" not in found["gen_ai.input.messages"]


@pytest.mark.parametrize(
    "body", [{}, {"messages": "x"}, {"messages": [1, {"content": 5}]}, {"system": 5}, {"messages": None}]
)
def test_strange_bodies_are_survived(body, settings):
    call_content(make_call(body, blocks=[{"type": None}, {}]), settings(content="full"))


def test_no_secret_in_the_attributes_of_a_call_in_full(settings):
    """Positive control: without redaction each secret would be there."""
    texts = [f"a {KEY} b", "password=hunter2x", "Authorization: Bearer " + KEY]
    body = {"messages": [{"role": "user", "content": text} for text in texts], "system": KEY}
    raw = json.dumps(body)
    assert KEY in raw
    assert "hunter2x" in raw
    shown = "".join(map(str, call_content(make_call(body), settings(content="full")).values()))
    assert KEY[10:] not in shown
    assert "hunter2x" not in shown
    assert redact(shown) == shown


def test_half_a_surrogate_pair_is_replaced(settings):
    """JSON can spell it (a cut emoji), UTF-8 cannot: the span would not be exported."""
    full = settings(content="full")
    call = make_call({"messages": [{"role": "user", "content": "cut \ud83d"}]})
    assert "cut ?" in call_content(call, full)["gen_ai.input.messages"]
    assert step_content(make_step("cut \ud83d 中"), full) == {"claudescope.step.text": "cut ? 中"}


def test_deep_nesting_is_cut(settings):
    nested = []
    for _ in range(400):
        nested = [{"type": "tool_result", "tool_use_id": "x", "content": nested}]
    call = make_call({"messages": [{"role": "user", "content": nested}]})
    shown = call_content(call, settings(content="full"))["gen_ai.input.messages"]
    assert "[cut: nested over 64 levels]" in shown
    assert shown.count("tool_result") == 32  # a list and an object a block: 64 / 2
