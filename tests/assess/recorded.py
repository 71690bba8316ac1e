"""The recorded exchanges under ``../shared/cassettes``: requests with the whole messages that answered them."""

from __future__ import annotations

import base64
import gzip
import json
import os
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[3] / "shared" / "cassettes"


class Exchange(NamedTuple):
    file: str
    request: dict[str, Any]
    message: dict[str, Any]
    """The message as the API gave it; for a stream put together from its events."""
    raw_inputs: dict[int, str]
    """Streamed tool inputs as they came, by block index."""
    texts: dict[int, list[str]]
    """The pieces of streamed text and thinking, by block index."""


def folder() -> Path:
    if not ROOT.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"{ROOT} is missing")
        pytest.skip("no recorded exchanges beside the repository")
    return ROOT


def _interactions(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".json":
        data = json.loads(path.read_text("utf-8"))
        return data if isinstance(data, list) else data.get("interactions", [])
    if path.suffix in (".txt", ".sse"):
        return [{"request": {}, "response": {"body": path.read_text("utf-8")}}]
    if os.environ.get("CI") != "true":
        pytest.importorskip("yaml")
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return (yaml.load(path.read_bytes(), Loader=loader) or {}).get("interactions", [])


def _body(part: dict[str, Any]) -> Any:
    if "parsed_body" in part:
        return part["parsed_body"]
    body = part.get("body", part.get("content"))
    if isinstance(body, dict) and "string" in body:
        body = body["string"]
    if isinstance(body, dict) and "base64_string" in body:
        body = base64.b64decode(body["base64_string"])
    if isinstance(body, dict) and "encoding" in body:
        body = body.get("data", body)
    if isinstance(body, bytes):
        if body[:2] == b"\x1f\x8b":
            body = gzip.decompress(body)
        elif body[:1] == b"\x78":
            body = zlib.decompress(body)
        body = body.decode("utf-8", "replace")
    if isinstance(body, str) and body.lstrip().startswith(("{", "[")):
        try:
            body = json.loads(body)
        except ValueError:
            return body
    return body


def _from_events(body: str) -> tuple[dict[str, Any], dict[int, str], dict[int, list[str]]] | None:
    message: dict[str, Any] = {}
    raw: dict[int, str] = {}
    texts: dict[int, list[str]] = {}
    for line in body.splitlines():
        if not line.startswith("data:"):
            continue
        try:
            event = json.loads(line[5:])
        except ValueError:
            continue
        kind = event.get("type")
        if kind == "message_start":
            message = dict(event["message"], content=[])
        elif kind == "content_block_start":
            message["content"].append(dict(event["content_block"]))
        elif kind == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            if "partial_json" in delta:
                raw[event["index"]] = raw.get(event["index"], "") + delta["partial_json"]
            for name in ("text", "thinking", "content"):
                if isinstance(delta.get(name), str):
                    block[name] = (block.get(name) or "") + delta[name]
                    texts.setdefault(event["index"], []).append(delta[name])
        elif kind == "message_delta":
            message["stop_reason"] = event["delta"].get("stop_reason")
    for index, text in raw.items():
        try:
            message["content"][index]["input"] = json.loads(text or "{}")
        except ValueError:
            message["content"][index]["input"] = text
    return (message, raw, texts) if message.get("content") else None


@cache
def exchanges() -> tuple[Exchange, ...]:
    return tuple(_exchanges())


def _exchanges() -> Iterator[Exchange]:
    root = folder()
    for path in sorted(root.rglob("*")):
        if path.suffix not in (".yaml", ".json", ".txt", ".sse"):
            continue
        for interaction in _interactions(path):
            request = _body(interaction.get("request", {}))
            answer = _body(interaction.get("response", {}))
            raw: dict[int, str] = {}
            texts: dict[int, list[str]] = {}
            if isinstance(answer, str) and "event:" in answer:
                whole = _from_events(answer)
                if whole is None:
                    continue
                answer, raw, texts = whole
            if not isinstance(answer, dict) or answer.get("type") != "message" or not answer.get("content"):
                continue
            yield Exchange(
                str(path.relative_to(root)), request if isinstance(request, dict) else {}, answer, raw, texts
            )
