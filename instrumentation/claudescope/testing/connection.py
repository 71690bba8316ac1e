"""HTTP/1.1 on an asyncio connection: requests as they came, and answers that may stop anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["BadRequestError", "Connection", "Request"]

Headers = Iterable[tuple[str, str]]

_MAX_BODY = 64 * 2**20


class BadRequestError(Exception):
    """The bytes on the connection are no HTTP/1.1 request, or one above 64 MiB."""


@dataclass(frozen=True)
class Request:
    """A request as it came: ``target`` is the raw path and query, ``headers`` all of them in order, as spelled."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def path(self) -> str:
        """The path, decoded, without the query."""
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> str:
        """The raw query, without ``?``."""
        return urlsplit(self.target).query

    def header(self, name: str) -> list[str]:
        """Every value of a header, in order; its case does not matter."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @cached_property
    def json(self) -> Any:
        """The body as JSON. Raises ValueError when it is none."""
        return json.loads(self.body)


class Connection:
    """One client's connection: reads a request at a time, writes its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> Request | None:
        """The next request, or None when the client has closed the connection. Raises BadRequestError."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        except asyncio.LimitOverrunError:
            raise BadRequestError("headers above 64 KiB") from None
        first, *lines = head[:-4].decode("latin-1").split("\r\n")
        try:
            method, target, version = first.split(" ")
            headers = tuple((name, value.strip()) for name, value in (line.split(":", 1) for line in lines))
        except ValueError:
            raise BadRequestError("no HTTP request line or header") from None
        if not version.startswith("HTTP/1."):
            raise BadRequestError(f"{version} is not spoken here")
        request = Request(method, target, headers, b"")
        if request.header("expect"):
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return Request(method, target, headers, await self._body(request))

    async def _body(self, request: Request) -> bytes:
        if "chunked" in ",".join(request.header("transfer-encoding")).lower():
            parts: list[bytes] = []
            while size := await self._chunk_size():
                if sum(map(len, parts)) + size > _MAX_BODY:
                    raise BadRequestError("body above 64 MiB")
                parts.append(await self._reader.readexactly(size))
                await self._reader.readline()
            while (await self._reader.readline()).strip():
                pass  # trailers
            return b"".join(parts)
        length = (request.header("content-length") or ["0"])[0]
        if not length.isdigit() or int(length) > _MAX_BODY:
            raise BadRequestError(f"content-length {length}")
        return await self._reader.readexactly(int(length))

    async def _chunk_size(self) -> int:
        line = await self._reader.readline()
        try:
            return int(line.split(b";")[0], 16)
        except ValueError:
            raise BadRequestError("no chunk size") from None

    def _head(self, status: int, headers: Headers) -> bytes:
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "Unknown"
        lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def answer(self, status: int, headers: Headers, body: bytes, *, part: int | None = None) -> None:
        """A whole answer; with ``part``, only that many bytes of the announced body."""
        head = self._head(status, [*headers, ("content-length", str(len(body)))])
        self._writer.write(head + body[: len(body) if part is None else part])
        await self._writer.drain()

    async def write(self, data: bytes) -> None:
        """Sends bytes as they stand."""
        self._writer.write(data)
        await self._writer.drain()

    async def start(self, status: int, headers: Headers) -> None:
        """Starts an answer in chunks."""
        self._writer.write(self._head(status, [*headers, ("transfer-encoding", "chunked")]))
        await self._writer.drain()

    async def chunk(self, data: bytes) -> None:
        """Sends one chunk at once; an empty one ends the answer."""
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    def abort(self) -> None:
        """Ends the connection at once; what has not gone out is lost."""
        self._writer.transport.abort()

    def reset(self) -> None:
        """Makes the coming close a TCP reset."""
        sock = self._writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def close(self) -> None:
        """Ends the connection, after what was written has gone out."""
        with contextlib.suppress(OSError, RuntimeError):  # where the connection is gone already
            self._writer.write_eof()  # reaches the client even while a forked child holds the same socket
        self._writer.close()
        try:
            await self._writer.wait_closed()
        except (OSError, asyncio.CancelledError):
            self._writer.transport.abort()
