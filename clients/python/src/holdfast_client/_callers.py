"""Ways to ask Holdfast about a task: asynchronously, or synchronously."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import anyio
import httpx

from ._request import CANCEL_S

if TYPE_CHECKING:
    from ._transport import Transport


class Connection:
    """A response whose body is read as it arrives."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response

    async def read(self) -> bytes | None:
        """More of the body; None at its end."""
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    async def read_whole(self) -> bytes:
        """Also closes it."""
        pieces = []
        try:
            while (piece := await self.read()) is not None:
                pieces.append(piece)
        finally:
            await self.close()
        return b"".join(pieces)


class Caller:
    """Sends requests and waits."""

    async def open(self, transport: Transport[Any], request: httpx.Request) -> Connection:
        raise NotImplementedError

    async def wait(self, delay_s: float) -> None:
        raise NotImplementedError


class SyncConnection(Connection):
    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response)
        assert isinstance(response.stream, Iterable)
        self._body: Iterator[bytes] = iter(response.stream)

    async def read(self) -> bytes | None:
        return next(self._body, None)

    async def close(self) -> None:
        self.response.close()


class SyncCaller(Caller):
    """Its coroutines never wait, and neither do those of its connections."""

    async def open(self, transport: Transport[Any], request: httpx.Request) -> Connection:
        return SyncConnection(transport._inner.handle_request(request))

    async def wait(self, delay_s: float) -> None:
        time.sleep(delay_s)


class AsyncConnection(Connection):
    def __init__(self, response: httpx.Response) -> None:
        super().__init__(response)
        assert isinstance(response.stream, AsyncIterable)
        self._body: AsyncIterator[bytes] = response.stream.__aiter__()

    async def read(self) -> bytes | None:
        try:
            return await self._body.__anext__()
        except StopAsyncIteration:
            return None

    async def close(self) -> None:
        # A task that's being cancelled may close it.
        with anyio.move_on_after(CANCEL_S, shield=True):
            await self.response.aclose()


class AsyncCaller(Caller):
    async def open(self, transport: Transport[Any], request: httpx.Request) -> Connection:
        return AsyncConnection(await transport._inner.handle_async_request(request))

    async def wait(self, delay_s: float) -> None:
        await anyio.sleep(delay_s)
